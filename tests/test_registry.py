"""The registry: the built-in file, layers, names, and what the public record says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tokforge_models.bundle import FileRole, Role, Source
from tokforge_models.errors import RegistryError, UnknownBundle
from tokforge_models.registry import registry as module
from tokforge_models.registry.registry import (
    WEIGHT_FILE,
    Registry,
    builtin_registry_path,
    default_config_dir,
    lint,
    unlisted,
)

PACK = "acceleration-pack-qwen3-0.6b"
PAIRED = "acceleration-pack-qwen3-0.6b-14b-paired"
V3 = "1f8c1902b92c486b3bda8f5b5a8db2a8554acdc5"


@pytest.fixture(scope="module")
def builtin(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return Registry.load(config_dir=tmp_path_factory.mktemp("config"))


def layer(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text("schema: 1\n" + text, encoding="utf-8")
    return path


def test_the_builtin_file_has_no_problems() -> None:
    assert lint(builtin_registry_path()) == ()


def test_every_entry_that_facts_exist_for(builtin: Registry) -> None:
    assert set(builtin.bundles) == {
        "demo-chat", "demo-draft", PACK, PAIRED,
        "qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-14b", "qwen3-30b-a3b",
        "qwen3.5-0.8b", "qwen3.5-2b", "qwen3.5-4b", "qwen3.5-9b", "qwen3.5-35b-a3b",
    }  # fmt: skip


def test_every_rule_and_pin_rests_on_a_statement(builtin: Registry) -> None:
    assert all(rule.statement in builtin.statements for rule in builtin.rules)
    for bundle in builtin.bundles.values():
        if any(file.sha256 for file in bundle.files) and bundle.family != "demo":
            assert bundle.pins_from in builtin.statements


def test_the_pack_is_what_its_card_says(builtin: Registry) -> None:
    pack = builtin.bundles[PACK]
    assert pack.role is Role.DRAFT
    assert pack.revision == V3
    assert pack.sources == (Source("hf", "darkmaniac7/TokForge-AccelerationPack-Draft", V3),)
    required = {file.path for file in pack.files if file.role is FileRole.REQUIRED}
    assert required == {
        "llm.mnn", "llm.mnn.weight", "llm_config.json", "config.json",
        "config_cpu.json", "draft_config_cpu.json", "tokenizer.txt",
    }  # fmt: skip
    assert len(pack.files) == 10
    assert not any(file.sha256 for file in pack.files)
    sizes = {file.path: (file.size, file.about_bytes) for file in pack.files}
    assert sizes["config_cpu.json"] == (211, None)
    assert sizes["llm.mnn.weight"] == (None, 336_000_000)
    assert (pack.d, pack.settings.threads, pack.settings.sampler) == (3, 2, "greedy")
    assert pack.published_for == ("android",)
    assert pack.needs.min_ram_gb == 4


def test_the_paired_pack_has_no_address(builtin: Registry) -> None:
    assert builtin.bundles[PAIRED].sources == ()
    assert builtin.bundles[PAIRED].files == ()


def test_what_is_only_for_reading_is_not_required(builtin: Registry) -> None:
    for bundle in builtin.bundles.values():
        for file in bundle.files:
            if file.path in {"llm.mnn.json", "export_args.json"}:
                assert file.role is FileRole.REFERENCE


def test_known_totals_agree_with_the_pins(builtin: Registry) -> None:
    totals = {
        "qwen3-0.6b": 454_470_710,
        "qwen3-1.7b": 1_235_520_567,
        "qwen3-4b": 2_713_763_864,
        "qwen3-8b": 5_510_447_174,
        "qwen3-14b": 9_435_188_107,
        "qwen3-30b-a3b": 17_748_780_498,
        "qwen3.5-0.8b": 547_645_481,
        "qwen3.5-2b": 1_386_691_327,
        "qwen3.5-4b": 2_845_944_094,
    }
    for name, total in totals.items():
        files = builtin.bundles[name].files
        assert sum(file.size or 0 for file in files) == total
        assert all(file.sha256 for file in files)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("qwen3-8b", "qwen3-8b"),
        ("Qwen3 8B", "qwen3-8b"),
        ("Qwen3 8B (MNN)", "qwen3-8b"),
        ("Qwen3-8B-MNN", "qwen3-8b"),
        ("qwen3_8b", "qwen3-8b"),
        ("taobao-mnn/Qwen3-8B-MNN", "qwen3-8b"),
        ("MNN/Qwen3-8B-MNN", "qwen3-8b"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("QWEN3.5 35B A3B", "qwen3.5-35b-a3b"),
        ("Acceleration Pack: Qwen3-0.6B 40k", PACK),
        ("acceleration pack", PACK),
        ("darkmaniac7/TokForge-AccelerationPack-Draft", PACK),
        ("Acceleration Pack: Qwen3-0.6B 14B-paired", PAIRED),
    ],
)
def test_names_that_people_type(builtin: Registry, name: str, found: str) -> None:
    assert builtin.find(name).id == found


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("qwen3-8bb", "qwen3-8b"),
        ("qwen-3-14b", "qwen3-14b"),
        ("acelleration-pack", PACK),
        ("demochat", "demo-chat"),
    ],
)
def test_a_near_miss_is_answered_with_suggestions(
    builtin: Registry, name: str, suggestion: str
) -> None:
    with pytest.raises(UnknownBundle) as caught:
        builtin.find(name)
    assert caught.value.exit_code == 3
    assert suggestion in caught.value.hint
    assert name in caught.value.message


@pytest.mark.parametrize("name", ["", "   ", "../../etc/passwd", "x" * 100_000, "\x00"])
def test_hostile_names_are_unknown(builtin: Registry, name: str) -> None:
    with pytest.raises(UnknownBundle) as caught:
        builtin.find(name)
    assert len(caught.value.message) < 500


def test_a_folder_is_recognised_by_its_weights(builtin: Registry) -> None:
    digest = "ecab3e87c0ca98a6e34795ba6779c5979b156b705c09b6df4b3e59c938576d4b"
    found = builtin.by_weight_sha256(digest.upper())
    assert found is not None
    assert found.id == "qwen3-8b"
    assert builtin.by_weight_sha256("0" * 64) is None


def test_weights_are_nobody_elses(builtin: Registry) -> None:
    digests = [
        file.sha256
        for bundle in builtin.bundles.values()
        for file in bundle.files
        if file.path == WEIGHT_FILE and file.sha256
    ]
    assert len(set(digests)) == len(digests) > 0


def test_layers_go_in_front_last_strongest(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    rule = "pairings:\n  - {{id: {0}, targets: [qwen3-8b], use: off, reason: r}}\n"
    user = layer(config, "registry.yaml", rule.format("user"))
    one = layer(tmp_path, "one.yaml", rule.format("one"))
    two = layer(tmp_path, "two.yaml", rule.format("two"))
    registry = Registry.load([one, two], config_dir=config)
    assert [rule.id for rule in registry.rules[:4]] == ["two", "one", "user", "demo"]
    assert registry.files == (builtin_registry_path(), user, one, two)


def test_a_layer_adds_and_replaces_bundles(tmp_path: Path) -> None:
    path = layer(
        tmp_path,
        "mine.yaml",
        "bundles:\n"
        "  mine: {name: Mine, role: chat, family: mine, sources: ['path:models/mine']}\n"
        "  qwen3-8b: {name: Ours, role: chat, family: qwen3, replace: true}\n",
    )
    registry = Registry.load([path], config_dir=tmp_path)
    assert registry.find("mine").sources == (Source("path", str(tmp_path / "models" / "mine")),)
    assert registry.bundles["qwen3-8b"].name == "Ours"
    assert registry.bundles["qwen3-8b"].defined_in == str(path)
    assert registry.find("Ours").id == "qwen3-8b"


def test_a_layer_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="no such file"):
        Registry.load([tmp_path / "none.yaml"], config_dir=tmp_path)


def test_a_folder_that_may_not_be_looked_into(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def forbidden(path: Path, **_: object) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", forbidden)
    with pytest.raises(RegistryError, match="a readable file"):
        Registry.load(config_dir=tmp_path)


def test_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOKFORGE_CONFIG_DIR", str(tmp_path))
    assert default_config_dir() == tmp_path
    layer(tmp_path, "registry.yaml", "pairings: [{id: u, family: demo, use: off, reason: r}]\n")
    assert Registry.load().rules[0].id == "u"
    monkeypatch.delenv("TOKFORGE_CONFIG_DIR")
    assert default_config_dir().name == "tokforge"


def test_an_unlisted_model_has_no_family() -> None:
    assert unlisted("my-model").role is Role.CHAT
    assert unlisted("my-model").family == ""


def test_the_file_is_found_in_a_wheel_and_in_a_tree(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "tokforge_models"
    package.mkdir()
    monkeypatch.setattr(module, "__file__", str(package / "registry" / "registry.py"))
    assert builtin_registry_path() == tmp_path / "registry.yaml"
    (package / "registry.yaml").write_text("schema: 1\n")
    assert builtin_registry_path() == package / "registry.yaml"


def test_loading_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tokforge_models import Registry;"
        f"Registry.load(config_dir=Path({str(tmp_path)!r}));"
        "print([m for m in ('MNN','numpy','huggingface_hub','requests','pydantic') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_documents_examples_are_right(tmp_path: Path) -> None:
    root = Path(__file__).parent.parent
    text = (root / "docs" / "registry.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    path = tmp_path / "registry.yaml"
    path.write_text(example, encoding="utf-8")
    assert lint(path) == ()
