"""Two benches side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measuring_kit import EXAMPLE, reports
from tokforge_models.measuring.comparing import compare
from tokforge_models.measuring.plan import PLAIN
from tokforge_models.measuring.report import PairReport, Report, Row

OPPOSITE = {"faster": "slower", "slower": "faster", "same": "same", "noisy": "noisy"}


def with_speeds(report: Report, *speeds: float) -> Report:
    row = Row("prose", PLAIN, 20, speeds, (), (), (), (), (), 0, 0)
    return replace(report, pairs=(PairReport(None, False, (row,), (), None, None),))


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((100, 100, 100), (104, 104, 104), "same"),
        ((100, 100, 100), (110, 110, 110), "faster"),
        ((110, 110, 110), (100, 100, 100), "slower"),
        ((100, 100, 100), (150, 200, 250), "noisy"),
        ((100,), (200,), "noisy"),
    ],
)
def test_verdicts(before, after, verdict) -> None:
    found = compare(with_speeds(EXAMPLE, *before), with_speeds(EXAMPLE, *after))
    assert [change.verdict for change in found.changes] == [verdict]


@given(reports)
def test_a_bench_beside_itself_has_no_change(report: Report) -> None:
    # Two pairs of one draft cannot come from one bench.
    report = replace(report, pairs=report.pairs[:1])
    found = compare(report, report)
    assert found.differences == ()
    assert {change.verdict for change in found.changes} <= {"same", "noisy"}
    assert all(change.change == 0 for change in found.changes)


speeds = st.lists(st.floats(50, 150), min_size=2, max_size=5)


@given(speeds, speeds)
def test_the_order_turns_the_verdict_around(one, other) -> None:
    there = compare(with_speeds(EXAMPLE, *one), with_speeds(EXAMPLE, *other)).changes[0]
    back = compare(with_speeds(EXAMPLE, *other), with_speeds(EXAMPLE, *one)).changes[0]
    assert back.verdict == OPPOSITE[there.verdict]


def test_other_conditions_and_missing_rows_are_told() -> None:
    report = EXAMPLE
    one = with_speeds(report, 100, 100, 100)
    other = replace(with_speeds(report, 100, 100, 100), mnn="4.0", tokens=report.tokens + 1)
    found = compare(one, other)
    assert found.differences == (
        "MNN: 3.6.1, then 4.0",
        f"tokens of an answer: {report.tokens}, then {report.tokens + 1}",
    )
    assert compare(one, replace(one, pairs=())).missing == 1
