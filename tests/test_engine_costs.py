from __future__ import annotations

import pytest

from tokforge_engine.costs import Costs, FollowedCosts, measure_costs
from toy_models import ToyModel, one_hot


class Timed(ToyModel):
    """A model whose forwards move a clock: a fixed time, and more for each token."""

    def __init__(self, clock, fixed, each):
        super().__init__(8, one_hot(8, lambda ids: 0))
        self._clock, self._fixed, self._each = clock, fixed, each

    def verify(self, ids):
        self._clock[0] += self._fixed + self._each * len(ids)
        return super().verify(ids)


def test_measures_each_width_of_the_target_and_the_draft():
    clock = [0]
    target, draft = Timed(clock, 100, 20), Timed(clock, 10, 2)
    costs = measure_costs(target, draft, 3, lambda: clock[0])
    assert costs == Costs(verify=(120, 140, 160, 180), draft=12, catch_up=(10 + 2 * 32) / 32)
    assert target.ids == draft.ids == []


def test_of_repetitions_the_least_counts():
    slow = iter([1.0, 5.0, 1.2] * 100)

    class Disturbed(Timed):
        def verify(self, ids):
            self._clock[0] += next(slow)
            return super().verify(ids)

    clock = [0]
    costs = measure_costs(Disturbed(clock, 100, 20), None, 0, lambda: clock[0])
    assert costs.verify == (pytest.approx(121.0),)


def test_without_a_draft_only_the_target_is_measured():
    clock = [0]
    assert measure_costs(Timed(clock, 100, 20), None, 1, lambda: clock[0]) == Costs((120, 140))


def test_costs_follow_a_machine_that_slows_down():
    costs = FollowedCosts(Costs(verify=(1.0, 1.5), draft=0.2, catch_up=0.1))
    for _ in range(100):
        costs.verified(0, 3.0)
        costs.verified(1, 4.5)
        costs.drafted(2, 3, 1.2)
    assert costs.verify(0) == pytest.approx(3.0, 0.02)
    assert costs.verify(1) == pytest.approx(4.5, 0.02)
    assert costs.draft == pytest.approx(0.4, 0.02)
    assert costs.catch_up(3) == pytest.approx(0.6, 0.02)


def test_a_width_that_was_measured_badly_is_mended():
    costs = FollowedCosts(Costs(verify=(1.0, 1.0, 1.0)))
    for _ in range(300):
        for d, seconds in enumerate((1.0, 1.6, 1.7)):
            costs.verified(d, seconds)
    assert costs.verify(1) / costs.verify(0) == pytest.approx(1.6, 0.1)


def test_one_slow_forward_says_little():
    costs = FollowedCosts(Costs(verify=(1.0, 1.5)))
    costs.verified(0, 1000.0)
    assert costs.verify(0) < 1.2
