"""`tokforge ls|show|pull|verify|import|export|rm` as commands."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from command import COMMAND, start, tokforge
from store_kit import make_files, write_files
from tokforge_models.cli.app import run
from tokforge_models.store.store import Store

LAYER = """\
schema: 1
bundles:
  mine:
    name: Mine
    role: chat
    family: test
    sources: ["path:{folder}"]
    revision: "1"
"""


@pytest.fixture
def layer(home: Path, tmp_path: Path) -> Path:
    """A registry file with one bundle of 24 MiB, three segments, in a folder."""
    folder = write_files(tmp_path / "source", make_files(weight_bytes=24 << 20))
    file = tmp_path / "layer.yaml"
    file.write_text(LAYER.format(folder=folder.as_posix()), encoding="utf-8")
    return file


def answer(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    assert run([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_ls_lists_the_registry_and_what_was_imported(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_files(tmp_path / "source", make_files())
    answer(capsys, "import", str(folder), "--as", "my-own", "--role", "draft")
    rows = answer(capsys, "ls")
    assert all(
        set(row) == {"id", "role", "state", "bytes", "partial_bytes", "path"} for row in rows
    )
    by_id = {row["id"]: row for row in rows}
    assert by_id["qwen3-8b"]["state"] == "absent"
    assert by_id["qwen3-8b"]["path"] is None
    assert by_id["my-own"]["state"] == "ready"
    assert by_id["my-own"]["role"] == "draft"
    assert Path(by_id["my-own"]["path"]).is_dir()


def test_show_is_the_entry_and_what_is_here(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    shown = answer(capsys, "show", "Acceleration Pack: Qwen3-0.6B 40k")
    assert shown["id"] == "acceleration-pack-qwen3-0.6b"
    assert shown["revision"] == "1f8c1902b92c486b3bda8f5b5a8db2a8554acdc5"
    required = [file["path"] for file in shown["files"] if file["role"] == "required"]
    assert len(required) == 7
    assert run(["show", "qwen3-8b"]) == 0
    assert "ecab3e87c0ca98a6e34795ba6779c5979b156b705c09b6df4b3e59c938576d4b" in (
        capsys.readouterr().out
    )


def test_show_says_whose_word_the_pins_rest_on(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", "qwen3-8b"]) == 0
    assert "CircleAI" in capsys.readouterr().out


def test_pull_verify_export_rm(
    layer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--registry", str(layer))
    plan = answer(capsys, "pull", "mine", "--dry-run", *words)["bundles"][0]
    assert plan["missing_bytes"] > 24 << 20
    assert answer(capsys, "ls", *words)[-1]["state"] == "absent"

    (pulled,) = answer(capsys, "pull", "mine", *words)["bundles"]
    assert set(pulled) >= {
        *("id", "state", "source", "revision", "path"),
        *("bytes_fetched", "bytes_reused", "seconds"),
    }
    assert (pulled["state"], pulled["bytes_fetched"]) == ("ready", plan["missing_bytes"])
    (again,) = answer(capsys, "pull", "mine", *words)["bundles"]
    assert (again["bytes_fetched"], again["bytes_reused"]) == (0, pulled["bytes_fetched"])

    report = answer(capsys, "verify", "mine", "--full", *words)
    assert report["ok"]
    weights = Path(pulled["path"]) / "llm.mnn.weight"
    with weights.open("r+b") as file:
        file.seek(9 << 20)
        file.write(b"damage")
    report = answer(capsys, "verify", "mine", *words, code=5)
    assert not report["ok"]
    (bad,) = [file for file in report["bundles"][0]["files"] if not file["ok"]]
    assert bad["path"] == "llm.mnn.weight"
    assert bad["expected"] != bad["actual"]
    assert answer(capsys, "verify", "mine", "--repair", *words)["ok"]

    exported = answer(capsys, "export", "mine", str(tmp_path / "phone"), *words)
    assert sorted(exported["files"]) == sorted(path.name for path in (tmp_path / "phone").iterdir())
    assert answer(capsys, "rm", "mine", *words)["bundles"][0]["bytes_freed"] > 24 << 20
    assert answer(capsys, "ls", *words)[-1]["state"] == "absent"


def test_a_pull_killed_half_way_is_named_and_finished(layer: Path, home: Path) -> None:
    process = start("pull", "mine", "--registry", str(layer))
    part = home / "bundles/mine/1/.tokforge"
    while not (journal := part / "journal").exists() or journal.stat().st_size < 600:
        if process.poll() is not None:
            pytest.fail("the pull ended before it could be killed")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (row,) = [
        row
        for row in tokforge("ls", "--registry", str(layer), "--json").document
        if row["id"] == "mine"
    ]
    assert row["state"] == "partial"
    assert row["partial_bytes"] > 0
    (pulled,) = tokforge("pull", "mine", "--registry", str(layer), "--json").document["bundles"]
    assert pulled["state"] == "ready"
    assert pulled["bytes_reused"] >= row["partial_bytes"]


def test_one_bundle_that_fails_does_not_stop_the_others(
    layer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = ("acceleration-pack-qwen3-0.6b-14b-paired", "mine")
    bundles = answer(capsys, "pull", *ids, "--registry", str(layer), code=4)["bundles"]
    by_id = {bundle["id"]: bundle for bundle in bundles}
    assert by_id["mine"]["state"] == "ready"
    assert "tokforge import" in by_id[ids[0]]["error"]["hint"]


def test_pull_for_a_target_brings_its_draft(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundles = answer(capsys, "pull", "--for", "demo-chat")["bundles"]
    assert [bundle["id"] for bundle in bundles] == ["demo-chat", "demo-draft"]


def test_an_imported_paired_pack_becomes_the_drafts_of_14b(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    special = "acceleration-pack-qwen3-0.6b-14b-paired"
    assert answer(capsys, "resolve", "qwen3-14b")["draft"] == "acceleration-pack-qwen3-0.6b"
    source = Path(answer(capsys, "pull", "demo-draft")["bundles"][0]["path"])
    folder = shutil.copytree(source, tmp_path / "pack", ignore=shutil.ignore_patterns(".*"))
    answer(capsys, "import", str(folder), "--as", special)
    document = answer(capsys, "resolve", "qwen3-14b")
    assert (document["draft"], document["rule"]) == (special, "qwen3-14b-paired")


def test_import_names_everything_that_is_missing(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = make_files()
    del files["llm.mnn.weight"], files["tokenizer.txt"]
    folder = write_files(tmp_path / "half", files)
    message = answer(capsys, "import", str(folder), "--as", "half", code=5)["error"]["message"]
    assert "llm.mnn.weight" in message
    assert "tokenizer" in message


def test_progress_of_a_pipe_is_silent(layer: Path) -> None:
    ended = tokforge("pull", "mine", "--registry", str(layer), "--json")
    assert ended.err == ""
    assert COMMAND[0] not in ended.out


def test_rm_goes_on_behind_one_that_is_in_use(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_files(tmp_path / "source", make_files())
    for id in ("one", "two", "three"):
        answer(capsys, "import", str(folder), "--as", id)
    with Store().claim("two", "tokforge run two"):
        document = answer(capsys, "rm", "one", "two", "three", code=7)
    assert [one["id"] for one in document["bundles"]] == ["one", "two", "three"]
    assert document["bundles"][0]["bytes_freed"] > 0
    assert document["error"] == document["bundles"][1]["error"]
    assert "tokforge run two" in document["error"]["message"]
    assert Store().revisions("three") == ()
