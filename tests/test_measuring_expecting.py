"""The cost model against devices whose speeds are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokforge_models.bundle import Settings
from tokforge_models.measuring.expecting import AUTO_SHARE as SHARE
from tokforge_models.measuring.expecting import Expectations
from tokforge_models.measuring.plan import AUTO, LOOKUP, PLAIN, Way
from tokforge_models.measuring.trials import LENGTHS, Candidate, Known, Setup
from tuning_kit import DRAFT, FLAT, REFERENCE, SHIPPED, STEEP, Device, question, search
from virtual_pair import fixed

WAYS = (PLAIN, LOOKUP, AUTO, Way("model", "auto"), *(Way("model", d) for d in LENGTHS))


def speed(settings: Settings) -> float:
    """Two threads are faster, and a format changes that by one factor."""
    return (1.7 if settings.threads == 2 else 1.0) * (0.6 if settings.memory == "normal" else 1.0)


@settings(max_examples=25)
@given(st.sampled_from([FLAT, STEEP]), st.floats(0.05, 0.98), st.floats(0.5, 1.5))
def test_what_is_expected_is_what_the_device_does(costs, chance: float, lookup: float) -> None:
    device = Device(
        costs=costs,
        chance=chance,
        target_speed=speed,
        draft_speed=lambda draft: 1.2 if draft.threads == 2 else 1.0,
        lookup=lookup,
        auto=SHARE,
    )
    expectations = Expectations(question(), search(question(), device, most=20))
    assert set(expectations.drafts()) == {DRAFT, replace(DRAFT, threads=2)}
    targets = expectations.targets()
    assert {target.threads for target in targets} == {1, 2}
    assert {target.memory for target in targets} == {"low", "normal"}
    for target in targets:
        for draft in expectations.drafts():
            for way in WAYS:
                alone = way.drafter in {"none", "lookup"}
                candidate = Candidate(Setup(target, None if alone else draft), way)
                # Shares of 1,000 rounds are rounded.
                expected = expectations.speed(candidate)
                assert expected == pytest.approx(device.truth(candidate), rel=0.02)


@given(st.sampled_from([FLAT, STEEP]), st.floats(0.05, 0.98))
def test_the_device_is_the_formula(costs, chance: float) -> None:
    device = Device(costs=costs, chance=chance)
    for d in LENGTHS:
        truth = device.truth(Candidate(Setup(SHIPPED, DRAFT), Way("model", d)))
        assert truth * device.unit == pytest.approx(fixed(costs, chance, d))


def test_nothing_is_expected_of_what_is_not_known() -> None:
    nothing = Expectations(question(), Known([]))
    assert nothing.speed(question().base) is None
    assert nothing.targets() == ()
    loaded = Expectations(question(), search(question(), Device(), most=1))
    assert loaded.targets() == (SHIPPED,)
    assert loaded.speed(question().base) is None
    known = search(question(), Device(), most=5)
    probed = Expectations(question(), known)
    assert probed.speed(question().base)
    assert probed.speed(Candidate(Setup(REFERENCE), PLAIN)) is None
    assert probed.speed(Candidate(Setup(SHIPPED, replace(DRAFT, threads=9)), AUTO)) is None
