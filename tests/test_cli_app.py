"""The command tree: help, errors as sentences, exit codes, and what is imported when."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command import COMMAND, tokforge
from tokforge_models.cli.app import run

COMMANDS = (
    *("demo", "run", "resolve", "ls", "show", "pull", "verify", "import", "export", "rm"),
    *("registry", "registry lint", "registry path"),
)
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


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), "--help"]) == 0
    assert "Usage: tokforge" in capsys.readouterr().out


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


def test_a_closed_pipe_is_no_error(home: Path) -> None:
    command = " ".join(COMMAND)
    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} registry lint | true"],
        capture_output=True,
        check=False,
    )
    assert ended.stderr == b""


def test_an_unreadable_store_is_a_sentence(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    ended = tokforge("pull", "demo-chat", env={"TOKFORGE_HOME": str(blocked)})
    assert ended.code == 6
    assert ended.err.startswith("tokforge: ")
    assert "Traceback" not in ended.err
