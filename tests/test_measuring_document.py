"""The document of a bench: read as it was written, refused where it is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from measuring_kit import reports
from tokforge_models.errors import RegistryError
from tokforge_models.measuring.document import as_document, read_report
from tokforge_models.measuring.report import Report


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(reports)
def test_what_is_written_is_read(tmp_path: Path, report: Report) -> None:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(as_document(report), indent=2), encoding="utf-8")
    assert read_report(path) == report


def test_a_stopped_bench_is_read_with_its_error(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    document = {
        "schema": 1, "measured_at": "2026-12-01T10:00:00+00:00", "complete": False,
        "tokforge": "0.1.0", "mnn": "3.6.1", "device": {"platform": "linux"},
        "target": {"id": "a", "content": None, "settings": {}}, "tokens": 8, "repetitions": 1,
        "pairs": [], "skipped": [], "error": {"kind": "interrupted", "message": "m", "hint": ""},
    }  # fmt: skip
    path.write_text(json.dumps(document), encoding="utf-8")
    assert not read_report(path).complete


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    row = {"workload": "prose", "way": {"drafter": "magic", "d": 99}, "speeds": ["fast"], "x": 1}
    document = {"schema": 2, "measured_at": "today", "pairs": [{"rows": [row], "costs": []}]}
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(RegistryError) as caught:
        read_report(path)
    keys = {problem.key for problem in caught.value.problems}
    assert keys >= {
        "schema",
        "measured_at",
        "tokforge",
        "device",
        "target",
        "pairs.0.rows.0.way.drafter",
        "pairs.0.rows.0.way.d",
        "pairs.0.rows.0.speeds",
        "pairs.0.rows.0.x",
    }


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="no such file"):
        read_report(tmp_path / "none.json")
