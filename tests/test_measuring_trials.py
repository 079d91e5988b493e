"""Candidates and trials in words and by kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tokforge_engine.costs import Costs
from tokforge_models.measuring.plan import AUTO, LOOKUP, PLAIN, Way
from tokforge_models.measuring.trials import (
    Candidate,
    Decode,
    Failed,
    Judge,
    Judged,
    Known,
    Load,
    Loaded,
    Setup,
    Tried,
    changed,
    describe,
    describe_trial,
    with_threads,
)
from tuning_kit import DRAFT, SHIPPED, question

PAIR = Setup(SHIPPED, DRAFT)
OTHER = Setup(replace(SHIPPED, threads=2, dynamic_option=2), replace(DRAFT, threads=2))


@pytest.mark.parametrize(
    ("way", "kind"),
    [(PLAIN, "alone"), (LOOKUP, "alone"), (AUTO, "paired"), (Way("model", 3), "paired")],
)
def test_kinds(way: Way, kind: str) -> None:
    assert Candidate(PAIR, way).kind == kind


def test_a_candidate_is_told_by_what_is_not_as_shipped() -> None:
    assert changed(SHIPPED, SHIPPED) == ()
    assert describe(Candidate(PAIR, AUTO), PAIR) == "auto"
    told = describe(Candidate(OTHER, Way("model", 3)), PAIR)
    assert told == "d 3, threads 2, dynamic option 2, draft threads 2"
    assert describe(Candidate(Setup(OTHER.target), PLAIN), PAIR) == (
        "plain, threads 2, dynamic option 2"
    )


def test_trials_are_told() -> None:
    assert describe_trial(Judge(SHIPPED), PAIR) == "number format: as shipped"
    assert describe_trial(Load(OTHER), PAIR) == (
        "costs (1): threads 2, dynamic option 2, draft threads 2"
    )
    assert describe_trial(Decode(Candidate(PAIR, PLAIN), 1), PAIR) == "decoding (2): plain"


def test_the_base_is_what_runs_today() -> None:
    assert question().base == Candidate(PAIR, AUTO)
    assert question(lookup=False).base == Candidate(PAIR, Way("model", "auto"))
    assert question(shipped=Setup(SHIPPED)).base == Candidate(Setup(SHIPPED), LOOKUP)
    assert question(shipped=Setup(SHIPPED), lookup=False).base == question().plain
    assert question(shipped=Setup(SHIPPED)).ways == ()


def test_threads_are_threads_on_the_cpu_alone() -> None:
    on_gpu = Setup(replace(SHIPPED, backend="opencl", threads=4), DRAFT)
    assert with_threads(on_gpu, 2) == Setup(on_gpu.target, replace(DRAFT, threads=2))
    assert with_threads(Setup(SHIPPED), 2) == Setup(replace(SHIPPED, threads=2))


def test_what_is_known_is_found_by_its_trial() -> None:
    costs = Costs((1.0,) * 8)
    judged = Judged(0.1, "ab", costs.verify)
    known = Known(
        [
            Tried(Load(PAIR), Loaded(costs), 1.0),
            Tried(Judge(SHIPPED), judged, 2.0),
            Tried(Decode(Candidate(PAIR, PLAIN), 0), Failed("no memory"), 0.5),
        ]
    )
    assert known.spent == 3.5
    assert known.loaded() == {PAIR: {0: costs}}
    assert known.judged(SHIPPED) == judged
    assert known.judged(OTHER.target) is None
    assert Load(PAIR) in known
    assert Load(OTHER) not in known
    assert known.failure(Decode(Candidate(PAIR, PLAIN), 0)) == "no memory"
    assert known.failure(Load(PAIR)) is None
    assert known.decoded(Candidate(PAIR, PLAIN), 0) is None
    assert known.candidates() == (Candidate(PAIR, PLAIN),)
    assert known.attempts(Candidate(PAIR, PLAIN)) == (0,)
    assert known.repetitions(Candidate(PAIR, PLAIN)) == {}
