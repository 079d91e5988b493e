"""What is chosen, said and kept at the end of a search."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokforge_models.bundle import Settings
from tokforge_models.device import GIB, Device, Platform
from tokforge_models.measuring.plan import LOOKUP
from tokforge_models.measuring.trials import Known, Setup
from tokforge_models.measuring.verdict import Identity, decide, profiles
from tokforge_models.resolution.measurement import MeasuredBy, Measurement
from tuning_kit import DRAFT, FLAT, SHIPPED, STEEP, question, search
from tuning_kit import Device as Simulated

NOW = datetime(2026, 12, 1, tzinfo=UTC)
IDENTITY = Identity(Device(Platform.ANDROID, "SM8850", 8 * GIB, 8), "ab" * 32, "cd" * 32, "3.6.1")


def tuned(device: Simulated, **changes: object):
    asked = question(**changes)
    known = search(asked, device)
    verdict = decide(asked, known)
    return verdict, profiles(verdict, asked, known, IDENTITY, NOW)


def test_a_gain_is_chosen_said_and_kept() -> None:
    device = Simulated(costs=FLAT, chance=0.8, target_speed=lambda s: 2.0 if s.threads == 2 else 1)
    verdict, (alone, pair) = tuned(device)
    assert verdict.chosen is not None
    assert verdict.before is not None
    assert verdict.words.startswith("d 3, threads 2: ")
    assert "times the best without it, each at its best" in verdict.words
    assert "does not pay" not in verdict.words
    assert pair.draft == IDENTITY.draft
    assert pair.d == verdict.chosen.candidate.way.d
    assert pair.target_settings == replace(SHIPPED, threads=2)
    assert pair.draft_settings == DRAFT
    assert pair.divergence == verdict.divergence == 0.02
    assert pair.shows_gain
    assert verdict.plain is not None
    best = (verdict.best["paired"], verdict.best["alone"])
    truths = [device.truth(each.candidate) for each in best]
    assert pair.ratio == pytest.approx(truths[0] / truths[1], rel=0.01)
    assert pair.plain == pytest.approx(truths[1], rel=0.01)
    # A fixed length leaves no room for guesses from the context.
    assert pair.lookup is None
    assert (alone.draft, alone.d, alone.draft_settings) == (None, None, Settings())
    assert alone.lookup is False
    assert alone.paired == alone.plain
    assert {alone.by, pair.by} == {MeasuredBy.TUNE}


def test_a_loss_is_kept_too_and_the_draft_is_off() -> None:
    verdict, (alone, pair) = tuned(Simulated(costs=STEEP, chance=0.2, lookup=0.5))
    assert verdict.chosen is not None
    assert verdict.chosen.candidate.kind == "alone"
    assert verdict.words.endswith("so the draft does not pay here")
    assert pair.shows_loss
    assert not alone.shows_gain


def test_what_the_context_guesses_is_kept_with_the_target_alone() -> None:
    verdict, (alone, pair) = tuned(Simulated(chance=0.7, lookup=1.5))
    assert verdict.chosen is not None
    assert verdict.chosen.candidate.way == LOOKUP
    assert alone.lookup is True
    assert alone.ratio == pytest.approx(1.5, rel=0.01)
    # The draft would gain over plain decoding; what the context guesses gains more.
    assert verdict.plain is not None
    assert verdict.best["paired"].ratio > verdict.plain.ratio
    assert pair.shows_loss


def test_auto_says_whether_lookup_helps_it() -> None:
    _, (_, pair) = tuned(Simulated(chance=0.8, auto=1.2))
    assert (pair.d, pair.lookup) == ("auto", True)
    _, (_, pair) = tuned(Simulated(chance=0.8, auto=1.2), lookup=False)
    assert (pair.d, pair.lookup) == ("auto", None)


def test_a_target_without_a_draft_has_one_profile() -> None:
    _, (alone,) = tuned(Simulated(), shipped=Setup(SHIPPED))
    assert alone.draft is None


def test_too_little_is_said_and_keeps_nothing() -> None:
    asked = question(budget=1.2)
    known = search(asked, Simulated())
    verdict = decide(asked, known)
    assert verdict.chosen is None
    assert "a larger budget helps" in verdict.words
    assert profiles(verdict, asked, known, IDENTITY, NOW) == ()
    nothing = decide(asked, Known([]))
    assert (nothing.before, nothing.complete) == (None, False)


@settings(max_examples=20)
@given(st.floats(0.05, 0.95), st.floats(0.5, 2.0), st.sampled_from([0.0, 0.1]), st.integers(0, 9))
def test_profiles_say_what_the_verdict_says(chance, lookup, noise, seed) -> None:
    verdict, kept = tuned(Simulated(chance=chance, lookup=lookup, noise=noise, seed=seed))
    by_draft: dict[str | None, Measurement] = {each.draft: each for each in kept}
    alone, pair = by_draft[None], by_draft[IDENTITY.draft]
    assert verdict.plain is not None
    assert alone.plain == verdict.plain.speed
    assert pair.plain == alone.paired
    # What ties with plain decoding may be a little slower.
    assert alone.paired >= 0.9 * alone.plain
    ratio = verdict.best["paired"].ratio / verdict.best["alone"].ratio
    assert pair.ratio == pytest.approx(ratio)
