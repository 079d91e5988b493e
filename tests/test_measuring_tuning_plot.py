"""Pictures of tunes: they are drawn of whatever was measured, the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from test_measuring_tuned import tuned_by
from tokforge_models.measuring.trials import Setup
from tokforge_models.measuring.tuning_plot import draw
from tuning_kit import SHIPPED, Device


def test_a_tune_is_drawn_the_same_each_time(tmp_path: Path) -> None:
    tuned = tuned_by(Device(chance=0.8, noise=0.05))
    for name in ("a.svg", "b.svg"):
        draw(tuned, tmp_path / name)
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    for word in ("demo with small", "threads 2", "measured", "times shipped"):
        assert word in text


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_tune_that_hardly_began_is_drawn(tmp_path: Path, most: int) -> None:
    draw(tuned_by(Device(), most=most), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_target_alone_is_drawn(tmp_path: Path) -> None:
    draw(tuned_by(Device(), shipped=Setup(SHIPPED)), tmp_path / "a.svg")
    assert "no draft" in (tmp_path / "a.svg").read_text()
