"""`tokforge resolve` as a command: the contract's document, and the words for people."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profile_kit import FAST
from tiny_bundle import write_tiny_bundle
from tokforge_models.bundle import Settings
from tokforge_models.cli.app import run
from tokforge_models.cli.world import World
from tokforge_models.device_probe import probe_device
from tokforge_models.store.measurements import Measurements

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


PACK = "acceleration-pack-qwen3-0.6b"
STAND_INS = f"""\
schema: 1
bundles:
  qwen3-1.7b:
    {{replace: true, name: Chat, role: chat, family: qwen3, sources: ['package:demo-chat']}}
  {PACK}:
    {{replace: true, name: Draft, role: draft, family: qwen3, sources: ['package:demo-draft']}}
"""


def test_before_a_measurement_after_a_gain_and_after_a_loss(
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer = tmp_path / "stand-ins.yaml"
    layer.write_text(STAND_INS, encoding="utf-8")
    monkeypatch.setattr("tokforge_models.device_probe.installed_mnn", lambda: "3.6.1")
    assert run(["pull", "qwen3-1.7b", PACK, "--registry", str(layer)]) == 0
    capsys.readouterr()

    def answer(*words: str) -> dict[str, Any]:
        assert run(["resolve", "qwen3-1.7b", "--registry", str(layer), "--json", *words]) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    before = answer()
    assert (before["draft"], before["rule"]) == (None, None)
    assert "tokforge bench qwen3-1.7b --save makes one" in before["reason"]

    contents = World.open([layer]).resolve("qwen3-1.7b").contents
    pair = replace(
        FAST,
        device=probe_device(),
        target=contents["qwen3-1.7b"],
        draft=contents[PACK],
        plain=32.4,
        paired=41.2,
        d=3,
    )
    kept = Measurements(home)
    file = kept.save(pair)
    gain = answer()
    assert (gain["draft"], gain["rule"]) == (PACK, "qwen3-1.7b-measured")
    assert gain["settings"]["d"] == 3
    figures = "41.2 tokens a second with it, 32.4 without (1.27 times), measured here on 2026-12-01"
    assert f"{PACK}: {figures}" in gain["notes"]

    assert kept.save(replace(pair, plain=45.0)) == file
    loss = answer()
    assert (loss["draft"], loss["rule"]) == (None, None)
    assert "41.2 tokens a second with it, 45.0 without (0.92 times)" in loss["reason"]
    assert loss["lookup"]
    asked = answer("--draft", PACK)
    assert asked["draft"] == PACK
    assert any("(0.92 times)" in note for note in asked["notes"])

    kept.save(replace(pair, draft=None, draft_settings=Settings(), lookup=False))
    alone = answer()
    assert (alone["draft"], alone["lookup"], alone["settings"]["d"]) == (None, False, 0)

    kept.save(replace(pair, mnn="3.5.0"))
    expired = answer()
    assert expired["draft"] is None
    assert "measured with MNN 3.5.0, this is 3.6.1: measure again" in expired["reason"]

    file.write_text("{}", encoding="utf-8")
    faulty = answer()
    assert faulty["draft"] is None
    assert any(
        "a measurement is left out" in note and str(file) in note for note in faulty["notes"]
    )
