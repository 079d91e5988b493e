"""The command tree: help, errors as sentences, exit codes, and what is imported when."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from command import COMMAND, tokforge
from tokforge_models.cli.app import COMMANDS, command_tree, run

ALL = sorted(name for names in COMMANDS.values() for name in names)
HEAVY = ("MNN", "numpy", "huggingface_hub", "requests", "yaml", "tqdm", "filelock")


def test_help_imports_nothing_heavy() -> None:
    code = f"""
import sys
from tokforge_models.cli.app import run
assert run(["--help"]) == 0
loaded = set({HEAVY}) & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("command", [*ALL, "registry lint", "registry path"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), "--help"]) == 0
    assert "Usage: tokforge" in capsys.readouterr().out


@pytest.mark.parametrize("module", COMMANDS)
def test_a_module_has_the_commands_that_the_table_says(module: str) -> None:
    tree = get_command(command_tree([COMMANDS[module][0]]))
    assert set(tree.commands) == set(COMMANDS[module])  # type: ignore[attr-defined]


def test_a_short_command_imports_its_own_module_alone() -> None:
    code = """
import sys
from tokforge_models.cli.app import run
assert run(["ls", "--json"]) == 0
loaded = {name.rpartition(".cli.")[2] for name in sys.modules if ".cli." in name}
assert "bundles" in loaded and not loaded & {"running", "chat", "check", "pulling"}, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tokforge-models ")


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (["frobnicate"], 2, "usage"),
        (["resolve"], 2, "usage"),
        (["resolve", "demo-chat", "--ram-gb", "many"], 2, "usage"),
        (["resolve", "demo-chat", "--platform", "beos"], 2, "usage"),
        (["pull"], 2, "usage"),
        (["run", "demo-chat", "hello", "-d", "many"], 2, "usage"),
        (["run", "demo-chat", " "], 2, "usage"),
        (["resolve", "qwen3-8"], 3, "unknown"),
        (["show", "nobody"], 3, "unknown"),
        (["pull", "nobody"], 3, "unknown"),
        (["run", "demo-chat", "hello"], 3, "unknown"),
        (["rm", "demo-chat"], 3, "unknown"),
        (["resolve", "acceleration-pack-qwen3-0.6b"], 7, "refused"),
        (["resolve", "qwen3-4b", "--draft", "demo-draft", "--platform", "ios"], 0, None),
        (["resolve", "./no/such/folder"], 3, "unknown"),
        (["pull", "acceleration-pack-qwen3-0.6b-14b-paired"], 4, "fetch"),
        (["registry", "lint", "no-such-file.yaml"], 7, None),
    ],
)
def test_one_document_and_one_exit_code(
    home: Path, words: list[str], code: int, kind: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--json"]) == code
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    if kind:
        assert document["error"]["kind"] == kind
        assert document["error"]["message"]
    assert "Traceback" not in printed.err

    assert run(words) == code
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    if kind:
        assert printed.out == ""
        assert printed.err.startswith("tokforge: ")


def test_a_near_miss_is_answered_with_suggestions(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["resolve", "qwen3-8"]) == 3
    assert "qwen3-8b" in capsys.readouterr().err


def test_a_faulty_layer_ends_every_command_with_its_problems(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layer = tmp_path / "mine.yaml"
    layer.write_text("schema: 1\nbundles:\n  x:\n    rolle: chat\n", encoding="utf-8")
    assert run(["ls", "--registry", str(layer), "--json"]) == 7
    message = json.loads(capsys.readouterr().out)["error"]["message"]
    assert f"{layer}:4" in message
    assert "rolle" in message


SHELL_COMMAND = shlex.join(COMMAND)


def shell(script: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of shell in which $T is the command."""
    return subprocess.run(
        ["bash", "-c", script.replace("$T", SHELL_COMMAND)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("words", ["ls", "ls --json", "--help", "registry lint", "show qwen3-8b"])
def test_a_reader_that_went_away_is_no_error(home: Path, words: str) -> None:
    ended = shell(f"$T {words} | true; exit ${{PIPESTATUS[0]}}")
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("$T ls >&-", 0),
        ("$T ls 2>&-", 0),
        ("$T ls <&-", 0),
        ("$T --help >&- 2>&-", 0),
        ("$T show nobody >&- 2>&- <&-", 3),
        ("$T show nobody 2>/dev/full", 3),
        ("$T pull demo-draft --json 2>&-", 0),
        ("$T run nobody <&-", 2),
        ("$T ls >/dev/full", 6),
        ("$T ls --json >/dev/full", 6),
        ("$T show nobody --json >/dev/full", 3),
    ],
)
def test_standard_streams_may_be_closed_or_full(home: Path, script: str, code: int) -> None:
    ended = shell(script)
    assert ended.returncode == code
    assert b"Traceback" not in ended.stdout + ended.stderr
    assert b"Exception ignored" not in ended.stderr


def test_an_interrupted_command_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tokforge_models.registry.registry.Registry.find", interrupted)
    assert run(["resolve", "demo-chat", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "interrupted"


@pytest.mark.parametrize("name", ["~nobody-of-that-name/x", "./~", "/"])
def test_odd_folders_are_sentences(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["resolve", name, "--json"]) in {3, 5}
    assert json.loads(capsys.readouterr().out)["error"]["message"]


@pytest.mark.parametrize("words", [["-d", "9" * 5000], ["-d", "-1"], ["-d", "16"], ["-d", "١"]])
def test_odd_draft_lengths_name_what_is_expected(
    home: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "demo-chat", "hello", *words]) == 2
    assert "auto or 0 to 15" in capsys.readouterr().err


def test_a_value_out_of_range_names_its_option(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "demo-chat", "hello", "--max-tokens", "0"]) == 2
    assert "--max-tokens" in capsys.readouterr().err


def test_an_unreadable_store_is_a_sentence(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    ended = tokforge("pull", "demo-chat", env={"TOKFORGE_HOME": str(blocked)})
    assert ended.code == 6
    assert ended.err.startswith("tokforge: ")
    assert "Traceback" not in ended.err
