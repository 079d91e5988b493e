"""When a median is called noisy, and how a slower device shows."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.measuring.spread import TOLERANCE, apart, drift, geometric_mean, median, noisy

values = st.lists(st.floats(1, 1000), min_size=2, max_size=30)


def test_nothing_tells_nothing() -> None:
    assert median([]) is None
    assert apart([1.0]) is None
    assert apart([0.0, 0.0]) is None
    assert noisy([5.0])
    assert geometric_mean([]) is None
    assert drift([1.0] * 5) is None


@given(values, st.floats(0.01, 100))
def test_the_unit_does_not_matter(seen: list[float], scale: float) -> None:
    assert apart([value * scale for value in seen]) == pytest.approx(apart(seen), abs=1e-9)


@given(st.floats(1, 1000), st.integers(2, 30))
def test_equal_values_are_sure(value: float, count: int) -> None:
    assert apart([value] * count) == pytest.approx(0.0, abs=1e-9)
    assert not noisy([value] * count)


@pytest.mark.parametrize("repetitions", [3, 5, 9])
@pytest.mark.parametrize("deviation", [0.005, 0.01, 0.02, 0.05])
def test_few_runs_are_called_quiet_and_then_contradicted(repetitions, deviation) -> None:
    dice = random.Random(f"{repetitions} {deviation}")

    def run() -> list[float]:
        return [dice.gauss(100, 100 * deviation) for _ in range(repetitions)]

    pairs = [(run(), run()) for _ in range(4000)]
    contradicted = [
        not noisy(one) and abs(statistics.median(other) / statistics.median(one) - 1) > TOLERANCE
        for one, other in pairs
    ]
    assert statistics.mean(contradicted) <= 0.05


@given(st.floats(0.2, 5), st.integers(6, 60))
def test_drift_is_last_third_over_first(factor: float, count: int) -> None:
    third = count // 3
    seen = [1.0] * third + [(1 + factor) / 2] * (count - 2 * third) + [factor] * third
    assert drift(seen) == pytest.approx(factor - 1)
