"""Tables say what was measured, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from measuring_kit import EXAMPLE, reports, sample
from tokforge_models.measuring.comparing import compare
from tokforge_models.measuring.plan import PLAIN, Way
from tokforge_models.measuring.report import Report, pair_report
from tokforge_models.measuring.tables import comparison, headline, markdown, tables


def speeds_of(*plain: float) -> str:
    samples = [
        sample(way, factor * speed, repetition=turn)
        for turn, speed in enumerate(plain)
        for way, factor in ((PLAIN, 1.0), (Way("model", 2), 1.5))
    ]
    pair = pair_report(samples, draft=None, lookup=False, peak_bytes=123_000_000)
    report = replace(EXAMPLE, pairs=(pair,))
    return markdown(tables(report)[0])


def test_speed_ratio_and_memory() -> None:
    text = speeds_of(10.0, 10.0, 10.0)
    assert "| plain | 10 | 3 of 3 | 1.00x |" in text
    assert "| d 2 | 15 1.50x | 3 of 3 | 1.50x |" in text
    assert "memory at its peak: 123 MB" in text
    assert "noisy" not in text


def test_noise_and_drift_are_said() -> None:
    text = speeds_of(10.0, 9.0, 8.0)
    assert "13.5 1.50x noisy" in text
    assert "the device became 20% slower" in text


def test_the_headline_tells_what_is_missing() -> None:
    lines = headline(replace(EXAMPLE, complete=False))
    assert any(line.startswith("interrupted") for line in lines)


@given(reports)
def test_every_row_has_a_cell_for_each_column(report: Report) -> None:
    for table in (*tables(report), comparison(compare(report, report))):
        assert all(len(row) == len(table.header) for row in table.rows)
        lines = markdown(table).split("\n")
        assert sum(line.startswith("| ") for line in lines) == len(table.rows) + 2
