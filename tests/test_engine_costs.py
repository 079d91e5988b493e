from __future__ import annotations

from tokforge_engine.costs import measure_costs
from tokforge_engine.length import Costs
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
