"""Pictures of benches."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from measuring_kit import EXAMPLE, sample
from tokforge_models.errors import Refused, UsageError
from tokforge_models.measuring.plan import AUTO, PLAIN, Way
from tokforge_models.measuring.plot import check_plot, draw
from tokforge_models.measuring.report import pair_report


def test_a_name_that_is_no_pictures_is_refused() -> None:
    with pytest.raises(UsageError, match=r"\.png or \.svg"):
        check_plot(Path("speed.pdf"))


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(Refused) as caught:
        check_plot(Path("speed.png"))
    assert "tokforge-models[plot]" in caught.value.hint


def test_the_picture_names_pair_and_workloads_and_is_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    samples = [
        sample(way, speed, workload=workload)
        for workload in ("prose", "code")
        for way, speed in ((PLAIN, 10.0), (Way("model", 2), 15.0), (AUTO, 16.0))
    ]
    pair = pair_report(samples, draft=None, lookup=False, peak_bytes=None)
    report = replace(EXAMPLE, pairs=(pair,))
    for name in ("one.svg", "other.svg", "one.png"):
        draw(report, tmp_path / name)
    text = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "other.svg").read_text(encoding="utf-8")
    for word in ("a with no draft", "prose", "code", "auto", "plain"):
        assert word in text
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
