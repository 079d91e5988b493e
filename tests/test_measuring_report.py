"""From decoded texts to rows: pooled, compared in the same repetition, counted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measuring_kit import sample, statistics
from tokforge_models.measuring.plan import PLAIN, Way
from tokforge_models.measuring.report import PairReport, RoundCost, pair_report

D2 = Way("model", 2)


def made(samples) -> PairReport:
    return pair_report(samples, draft=None, lookup=False, peak_bytes=None)


def test_a_speed_is_all_tokens_over_all_seconds() -> None:
    samples = [sample(PLAIN, 10.0), sample(PLAIN, 40.0, prompt=1)]
    (row,) = made(samples).rows
    # 20 tokens in 1 s and 0.25 s.
    assert row.speeds == (16.0,)
    assert row.ratios == (1.0,)


def test_ratios_are_of_one_repetition() -> None:
    # Twice as fast in each, while the device became half as fast.
    samples = [
        sample(way, speed, repetition=turn)
        for turn, slow in enumerate((1.0, 2.0))
        for way, speed in ((PLAIN, 10.0 / slow), (D2, 20.0 / slow))
    ]
    row = made(samples).row("prose", D2)
    assert row.ratios == (2.0, 2.0)
    assert row.speed == 15.0


def test_a_repetition_counts_once_all_its_prompts_were_decoded() -> None:
    samples = [
        sample(way, 10.0, prompt=prompt, repetition=turn)
        for turn in range(2)
        for prompt in range(2)
        for way in (PLAIN, D2)
    ]
    report = made(samples[:-1])
    assert len(report.row("prose", PLAIN).speeds) == 2
    assert len(report.row("prose", D2).speeds) == len(report.row("prose", D2).ratios) == 1


def test_texts_are_compared_with_the_plain_text_of_their_prompt() -> None:
    samples = [
        sample(PLAIN, 10.0, ids=(1, 2)),
        sample(PLAIN, 10.0, prompt=1, ids=(7,)),
        sample(D2, 10.0, ids=(1, 2)),
        sample(D2, 10.0, prompt=1, ids=(8,)),
        sample(D2, 10.0, prompt=2, ids=(9,)),
    ]
    row = made(samples).row("prose", D2)
    assert (row.same, row.of) == (1, 2)


def test_a_prompt_that_the_cache_held_tells_nothing_of_prefill() -> None:
    cold, warm = sample(PLAIN, 10.0), sample(PLAIN, 10.0, repetition=1)
    warm = replace(warm, stats=statistics(11, prefilled=1))
    (row,) = made([cold, warm]).rows
    assert row.prefill_speeds == (80.0,)
    assert row.first_token_seconds == (0.6,)


def test_an_answer_of_one_token_has_no_speed() -> None:
    short = replace(sample(PLAIN, 10.0), stats=statistics(1))
    report = made([short])
    assert report.rows[0].speed is None
    assert report.overall(PLAIN) is None


def test_costs_are_medians_of_rounds() -> None:
    samples = [
        replace(
            sample(way, 1.0),
            stats=statistics(11, rounds=4, verify=4 * verify, draft=4 * draft),
        )
        for way, verify, draft in ((PLAIN, 1.0, 0.0), (D2, 1.5, 0.2), (D2, 1.7, 0.4), (D2, 9, 0.3))
    ]
    costs = made(samples).costs
    assert costs[0] == RoundCost(0, 1.0, 0.0)
    assert costs[1].d == 2
    assert costs[1].verify_seconds == pytest.approx(1.7)
    assert costs[1].draft_seconds == pytest.approx(0.3)


def test_acceptance_is_added_by_place() -> None:
    counts = [((5, 4), (3, 1)), ((2,), (2,))]
    samples = [
        replace(sample(D2, 1.0), stats=statistics(11, drafted=drafted, accepted=accepted))
        for drafted, accepted in counts
    ]
    (row,) = made(samples).rows
    assert (row.drafted, row.accepted) == ((7, 4), (5, 1))


@given(st.lists(st.floats(0.5, 2.0), min_size=3, max_size=12), st.floats(1.0, 50.0))
def test_a_drift_that_all_share_shows_and_leaves_the_ratio(slow, base) -> None:
    slow = sorted(slow)
    samples = [
        sample(way, speed / slow[turn], repetition=turn)
        for turn in range(len(slow))
        for way, speed in ((PLAIN, base), (D2, 1.5 * base))
    ]
    report = made(samples)
    assert report.overall(D2) == pytest.approx(1.5)
    assert report.drift is not None
    assert report.drift <= 1e-9


def test_a_cell_decoded_once_says_nothing_of_drift() -> None:
    samples = [sample(PLAIN, 10.0, prompt=prompt) for prompt in range(9)]
    assert made(samples).drift is None
