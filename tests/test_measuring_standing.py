"""Comparisons within repetitions, and what counts as a lead."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.measuring.plan import AUTO, PLAIN, Way
from tokforge_models.measuring.standing import Standings, complexity, is_clear, margin
from tokforge_models.measuring.trials import (
    Candidate,
    Cell,
    Decode,
    Decoded,
    Known,
    Setup,
    Tried,
)
from tokforge_models.resolution.measurement import TIE
from tuning_kit import DRAFT, SHIPPED, question

ASKED = question()
PAIR = ASKED.shipped
FAST = Candidate(Setup(replace(SHIPPED, threads=2), DRAFT), Way("model", 3))
NEAR = Candidate(PAIR, Way("model", 2))


def decoded(candidate: Candidate, *speeds: float) -> list[Tried]:
    """Two workloads, one twice as fast as the other; a repetition for each speed."""
    return [
        Tried(
            Decode(candidate, turn),
            Decoded((Cell("prose", 100, 100 / speed), Cell("code", 100, 50 / speed))),
            1.0,
        )
        for turn, speed in enumerate(speeds)
    ]


def standings(*tried: list[Tried]) -> Standings:
    return Standings(ASKED, Known([each for some in tried for each in some]))


def test_a_device_that_slows_down_slows_all_alike() -> None:
    found = standings(decoded(ASKED.base, 10, 5, 2), decoded(FAST, 12, 6, 2.4))
    standing = found.of(FAST)
    assert standing is not None
    assert standing.ratio == pytest.approx(1.2)
    assert standing.speed == pytest.approx(6 * 2**0.5)
    assert standing.repetitions == 3
    assert found.choose([ASKED.base, FAST]) == FAST
    assert found.of(NEAR) is None


def test_only_common_repetitions_and_workloads_are_compared() -> None:
    lone = [Tried(Decode(FAST, 2), Decoded((Cell("prose", 10, 0.01),)), 1.0)]
    found = standings(decoded(ASKED.base, 10, 10), decoded(FAST, 20), lone)
    standing = found.of(FAST)
    assert standing is not None
    assert (standing.ratio, standing.repetitions) == (pytest.approx(2.0), 1)
    # One repetition is not enough to leave what is shipped for.
    assert found.choose([ASKED.base, FAST]) == ASKED.base
    assert found.choose([FAST]) is None


def test_a_lead_within_the_noise_is_none() -> None:
    found = standings(decoded(ASKED.base, 10, 10, 10), decoded(FAST, 10.15, 10.15, 10.15))
    assert found.choose([ASKED.base, FAST]) == ASKED.base
    clear = standings(decoded(ASKED.base, 10, 10, 10), decoded(FAST, 10.3, 10.3, 10.3))
    assert clear.choose([ASKED.base, FAST]) == FAST
    unsure = standings(decoded(ASKED.base, 10, 10, 10), decoded(FAST, 8, 10.3, 13))
    assert unsure.choose([ASKED.base, FAST]) == ASKED.base


def test_of_those_that_tie_the_one_that_changes_least_is_taken() -> None:
    found = standings(decoded(ASKED.base, 10, 10), decoded(FAST, 15.1, 15.1), decoded(NEAR, 15, 15))
    assert found.order([ASKED.base, NEAR, FAST]) == [FAST, NEAR, ASKED.base]
    assert found.choose([ASKED.base, NEAR, FAST]) == NEAR


def test_what_changes_more() -> None:
    order = [
        Candidate(PAIR, AUTO),
        Candidate(PAIR, PLAIN),
        Candidate(PAIR, Way("model", 2)),
        Candidate(PAIR, Way("model", 3)),
        FAST,
        Candidate(replace(FAST.setup, draft=replace(DRAFT, threads=2)), AUTO),
    ]
    assert sorted(order, key=lambda each: complexity(each, ASKED)) == order


def test_when_more_repetitions_would_change_nothing() -> None:
    assert not is_clear((0.9,))
    assert is_clear((1.0, 1.0, 1.0))
    assert not is_clear((0.8, 1.0, 1.2))
    assert is_clear((0.5, 0.7, 0.4, 0.6, 0.5))


@given(st.lists(st.floats(0.1, 10.0), max_size=9))
def test_a_margin_is_never_less_than_a_tie_nor_hides_a_tenth(ratios: list[float]) -> None:
    assert TIE <= margin(ratios) <= 0.1


speeds = st.lists(st.floats(1.0, 100.0), min_size=1, max_size=6)


@given(speeds, speeds, speeds)
def test_the_choice_is_never_slower_than_what_is_shipped(base, near, fast) -> None:
    found = standings(decoded(ASKED.base, *base), decoded(NEAR, *near), decoded(FAST, *fast))
    chosen = found.choose([ASKED.base, NEAR, FAST])
    if chosen is None:
        assert len(base) < 2
        return
    standing = found.of(chosen)
    assert standing is not None
    assert standing.ratio >= 1.0
