"""`tokforge doctor`: its document, its exit codes, and that it fails on nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from command import tokforge
from demo_pair import needs_mnn
from profile_kit import FAST
from tokforge_models.cli.app import run
from tokforge_models.cli.doctor import exit_code
from tokforge_models.doctor.findings import Finding, Kind, Level
from tokforge_models.store.measurements import Measurements


@pytest.fixture
def no_engine(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of one's own, on a machine whose MNN is good."""
    monkeypatch.setattr("tokforge_engine.backends.backends", lambda: {"cpu": "here"})
    monkeypatch.setattr("tokforge_models.doctor.probe.import_fault", lambda: None)
    monkeypatch.setattr("tokforge_models.doctor.probe.installed_mnn", lambda: "3.6.1")
    return home


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict]:
    code = run(["doctor", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@needs_mnn
def test_the_real_machine(home: Path) -> None:
    ended = tokforge("doctor", "--json", env={"HF_TOKEN": "hunter2"})
    assert ended.code == 0, ended.out
    document = ended.document
    assert document["ok"]
    assert document["backends"]["cpu"] == "here"
    assert document["device"]["platform"]
    assert document["network"]["HF_TOKEN"] == "is set"
    assert "hunter2" not in ended.out + ended.err
    assert not home.exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_an_mnn_that_kills_its_process_is_one_problem(home: Path, tmp_path: Path) -> None:
    module = tmp_path / "broken" / "MNN" / "__init__.py"
    module.parent.mkdir(parents=True)
    module.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", encoding="utf-8")
    about = tmp_path / "broken" / "MNN-3.6.1.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text("Metadata-Version: 2.1\nName: MNN\nVersion: 3.6.1\n", encoding="utf-8")
    ended = tokforge("doctor", "--json", env={"PYTHONPATH": str(tmp_path / "broken")})
    assert ended.code == 8
    (problem,) = [each for each in ended.document["findings"] if each["level"] == "problem"]
    assert problem["text"] == ("3.6.1 cannot be used: importing it ends the process (SIGSEGV)")


def test_for_people(no_engine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pull", "demo-chat"]) == 0
    capsys.readouterr()
    assert run(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "demo-chat" in printed
    assert printed.splitlines()[-1].startswith("0 problems, ")


def test_a_faulty_registry_is_told_where_others_would_fail(
    no_engine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layer = tmp_path / "layer.yaml"
    layer.write_text("schema: 1\nwrong: 1\n", encoding="utf-8")
    code, document = told(capsys, "--registry", str(layer))
    assert (code, document["ok"]) == (7, False)
    (problem,) = [each for each in document["findings"] if each["level"] == "problem"]
    assert problem["next"] == f"tokforge registry lint {layer}"


def test_a_damaged_bundle(no_engine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pull", "demo-draft"]) == 0
    (weights,) = no_engine.rglob("llm.mnn.weight")
    weights.unlink()
    capsys.readouterr()
    code, document = told(capsys)
    assert code == 5
    assert document["bundles"] == {"demo-draft": "damaged"}


def test_a_profile_and_a_file_that_is_none(
    no_engine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Measurements(no_engine).save(FAST)
    (no_engine / "measurements" / "x.json").write_text("[", encoding="utf-8")
    code, document = told(capsys)
    assert code == 0
    (profile,) = document["profiles"]
    assert profile["file"] == str(file)
    assert profile["ratio"] == 1.25
    assert profile["expired"]
    notes = [each["text"] for each in document["findings"] if each["subject"] == "profile"]
    assert len(notes) == 2
    assert any("left out" in text for text in notes)


@pytest.mark.parametrize(
    ("home", "code"),
    [("file", 6), ("file/below", 6), ("x" * 5000, 6), ("~nobody-of-that-name/x", 2)],
)
def test_a_home_that_cannot_be(
    no_engine: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    home: str,
    code: int,
) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    monkeypatch.setenv("TOKFORGE_HOME", home if home[0] == "~" else str(tmp_path / home))
    assert told(capsys)[0] == code


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_problem_has_its_exit_code(kind: Kind) -> None:
    codes = {"engine": 8, "storage": 6, "integrity": 5, "registry": 7}
    assert exit_code(Finding("x", Level.PROBLEM, "y", kind=kind)) == codes[kind]
