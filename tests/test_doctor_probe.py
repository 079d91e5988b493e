"""Looking at a machine: children that die, folders that refuse, addresses with secrets."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo_pair import needs_mnn
from tokforge_models.cli.app import run
from tokforge_models.doctor.facts import EXTRAS, Facts
from tokforge_models.doctor.probe import address, import_fault, network_settings, probe
from tokforge_models.errors import StorageError
from tokforge_models.store.store import Store

SECRET = "hunter2"


def looked(*layers: Path) -> Facts:
    return probe(layers, ask_backends=lambda: {"cpu": "here"}, free_memory=lambda: 5)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('The device supports: nothing')", None),
        ("import no_such_module_at_all", "No module named 'no_such_module_at_all'"),
        ("raise SystemExit(3)", "exit code 3"),
        pytest.param(
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "ends the process (SIGKILL)",
            marks=pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal"),
        ),
    ],
)
def test_how_a_child_ended(code: str, said: str | None) -> None:
    fault = import_fault(code)
    assert fault is None if said is None else said in str(fault)


@needs_mnn
def test_mnn_can_be_imported_here() -> None:
    assert import_fault() is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://hub.example", "https://hub.example"),
        (f"http://me:{SECRET}@proxy.example:3128", "http://proxy.example:3128"),
        (f"me:{SECRET}@proxy.example:3128", "proxy.example:3128"),
        ("proxy.example:3128", "proxy.example:3128"),
        (f"https://hub.example/{SECRET}?key={SECRET}#{SECRET}", "https://hub.example"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        (f"http://me:{SECRET}", "is set, and is no address"),
        (f"http://[{SECRET}", "is set, and is no address"),
        ("///", "is set, and is no address"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(text: str, shown: str) -> None:
    assert address(text) == shown


@given(
    st.sampled_from(["", "http://", "https://", "socks5h://", "//"]),
    st.text(max_size=12),
    # What ends a host makes a host of what comes before it; a password must have it quoted.
    st.text(st.characters(exclude_characters="/?#\\"), max_size=12),
)
def test_no_password_is_ever_shown(scheme: str, user: str, password: str) -> None:
    quoted = quote(user, safe="")
    assert SECRET not in address(f"{scheme}{quoted}:{SECRET}{password}@host.example:80")


def test_settings_of_the_network_hold_no_secret() -> None:
    environment = {
        "HF_TOKEN": SECRET,
        "MODELSCOPE_API_TOKEN": SECRET,
        "HF_ENDPOINT": f"https://{SECRET}@hub.example/{SECRET}",
        "HF_HUB_OFFLINE": "1",
        "MODELSCOPE_ENDPOINT": "",
    }
    proxies = {"https": f"http://u:{SECRET}@proxy:1", "no": "localhost"}
    assert network_settings(environment, proxies) == {
        "HF_ENDPOINT": "https://hub.example",
        "https proxy": "http://proxy:1",
        "HF_HUB_OFFLINE": "1",
        "HF_TOKEN": "is set",
        "MODELSCOPE_API_TOKEN": "is set",
    }


def test_an_empty_machine(home: Path) -> None:
    facts = looked()
    assert facts.home.path == home
    assert not facts.home.exists
    assert facts.home.write_fault is None
    assert facts.home.free_bytes
    assert (facts.bundles, facts.profiles, facts.store_faults) == ((), (), ())
    assert facts.registry_problems == ()
    assert (facts.free_memory, facts.python.is_64_bit) == (5, True)
    assert not home.exists()


def test_a_bundle_is_seen(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pull", "demo-draft"]) == 0
    (bundle,) = looked().bundles
    assert (bundle.id, bundle.state) == ("demo-draft", "ready")


def test_a_registry_that_is_not_valid(home: Path, tmp_path: Path) -> None:
    layer = tmp_path / "layer.yaml"
    layer.write_text("schema: 2\n", encoding="utf-8")
    facts = looked(layer)
    assert facts.layers[-1] == layer
    assert [problem.file for problem in facts.registry_problems] == [str(layer)]
    (gone,) = looked(tmp_path / "none.yaml").registry_problems
    assert gone.file == str(tmp_path / "none.yaml")


def test_a_home_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    monkeypatch.setenv("TOKFORGE_HOME", str(tmp_path / "file" / "home"))
    assert looked().home.write_fault


def test_what_may_not_be_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    for name in ("pins.json", "good.json"):
        (home / name).write_text("{}", encoding="utf-8")
    # Nothing is forbidden to root, who runs tests too.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "pins.json")
    assert looked().home.unreadable == (home / "pins.json",)


def test_a_store_that_cannot_be_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(store: Store) -> NoReturn:
        raise StorageError("cannot read bundles: Permission denied")

    monkeypatch.setattr(Store, "statuses", refuse)
    monkeypatch.setattr(Store, "installed", refuse)
    facts = looked()
    assert facts.store_faults == ("cannot read bundles: Permission denied",)
    assert facts.bundles == ()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_home_that_all_may_write(home: Path) -> None:
    home.mkdir()
    home.chmod(0o777)
    assert looked().home.is_open
    home.chmod(0o755)
    assert not looked().home.is_open


def test_the_extras_are_those_of_the_project() -> None:
    root = Path(__file__).resolve().parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {
        extra: {re.split(r"[<>=;~\[ ]", text)[0] for text in texts}
        for extra, texts in project["optional-dependencies"].items()
        if extra != "dev"
    }
    assert {extra: set(packages) for extra, packages in EXTRAS.items()} == declared
