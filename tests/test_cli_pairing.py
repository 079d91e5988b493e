"""`tokforge resolve` as a command: the contract's document, and the words for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tiny_bundle import write_tiny_bundle
from tokforge_models.cli.app import run

SETTINGS = {"backend", "threads", "precision", "memory", "power", "sampler", "dynamic_option"}


@pytest.fixture(autouse=True)
def _own_store(home: Path) -> None:
    pass


def test_the_document_keeps_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["resolve", "qwen3-14b", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["target"] == "qwen3-14b"
    assert document["draft"] == "acceleration-pack-qwen3-0.6b"
    assert document["rule"] == "qwen3-14b"
    assert document["lookup"] is True
    assert set(document["settings"]) == {"target", "draft", "d"}
    assert set(document["settings"]["target"]) == SETTINGS
    assert set(document["settings"]["draft"]) == SETTINGS
    applied = [step["rule"] for step in document["trace"] if step["applied"]]
    assert applied == ["qwen3-14b"]
    assert all(set(step) == {"rule", "applied", "why"} for step in document["trace"])


@pytest.mark.parametrize(
    ("words", "draft", "lookup"),
    [
        (["qwen3-8b", "--platform", "ios"], None, True),
        (["qwen3-8b", "--ram-gb", "3"], None, True),
        (["qwen3-8b", "--ram-gb", "3.5"], "acceleration-pack-qwen3-0.6b", True),
        (["Qwen3 30B A3B (MNN)"], None, False),
        (["qwen3.5-4b"], None, False),
        (["qwen3-0.6b"], None, True),
        (["taobao-mnn/Qwen3-4B-MNN"], "acceleration-pack-qwen3-0.6b", True),
        (["qwen3-4b", "--draft", "none"], None, False),
    ],
)
def test_flags_of_the_device_and_the_draft(
    words: list[str], draft: str | None, lookup: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["resolve", *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["draft"], document["lookup"]) == (draft, lookup)
    assert document["reason"]


def test_a_device_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device = tmp_path / "phone.json"
    device.write_text('{"platform": "ios", "ram_gb": 8}', encoding="utf-8")
    assert run(["resolve", "qwen3-8b", "--device", str(device), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["draft"] is None


def test_explain_shows_every_rule_and_who_disagrees(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["resolve", "qwen3-4b", "--explain"]) == 0
    printed = capsys.readouterr().out
    assert "* qwen3-4b:" in printed
    assert "  qwen3.5-off:" in printed
    assert "runtime_config.json" in printed
    assert "settings (d auto, recommended 3)" in printed


def test_a_target_of_an_unknown_vocabulary_resolves_to_no_draft(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_tiny_bundle(tmp_path / "new")
    (folder / "tokenizer.mtok").write_bytes(b"430 99\n3 1 0\n0 1 2 2\nrest\n")
    for draft, code in (("auto", 0), ("none", 0), ("lookup", 7), ("demo-draft", 7)):
        assert run(["resolve", str(folder), "--draft", draft, "--json"]) == code
        document = json.loads(capsys.readouterr().out)
        if code == 0:
            assert document["draft"] is None
            assert not document["lookup"]
            assert any("without a draft" in note for note in document["notes"])
