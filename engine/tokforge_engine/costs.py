"""What forwards cost here: measured with the models that will run, and followed as they run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tokforge_engine.drafting import SCORED
from tokforge_engine.model import LanguageModel

_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds, measured on this device with these models.

    Attributes:
        verify: the target's forward of 1, 2, ... tokens.
        draft: the draft's forward of one token; 0 without a draft.
        catch_up: the draft's time for each token of context that it has not seen.
    """

    verify: tuple[float, ...]
    draft: float = 0.0
    catch_up: float = 0.0


def measure_costs(
    target: LanguageModel,
    draft: LanguageModel | None,
    most: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Costs:
    """Time the forwards of a pair, target and draft in turn, as decoding will run them.

    A draft's forwards in a tight loop would find its weights in the processor's caches, where a
    target leaves none of them. Of repetitions the least counts: what else a machine does only ever
    adds to a forward's time, and the widths must be right in relation to each other.

    Args:
        target: with an empty cache; ready to verify 1 to most + 1 tokens.
        draft: with an empty cache, or None.
        most: largest draft length.
        clock: seconds from any fixed point, monotonic.
    """

    def seconds(model: LanguageModel, forward: Callable[[Sequence[int]], object], n: int) -> float:
        began = clock()
        forward([0] * n)
        took = clock() - began
        model.rollback(0)
        return took

    verify: list[list[float]] = [[] for _ in range(most + 1)]
    single: list[float] = []
    many: list[float] = []
    for _ in range(_REPEATS):
        beside: list[float] = []
        for width, seen in enumerate(verify, start=1):
            seen.append(seconds(target, target.verify, width))
            if draft is not None:
                beside.append(seconds(draft, draft.extend, 1))
        if draft is not None:
            # One a repetition, as each width has: of many more the least would be less.
            single.append(statistics.median(beside))
            many.append(seconds(draft, draft.extend, SCORED))
    measured = tuple(map(min, verify))
    if draft is None:
        return Costs(measured)
    return Costs(measured, min(single), min(many) / SCORED)


class FollowedCosts:
    """Costs now: as measured, times one factor for the target and one for the draft.

    The factors follow a longer context, heat and other load; a correction for each width mends
    what was measured badly at load. A width that was seen a few times only is believed the less:
    where it alone is used, a factor that took all the blame would leave it as cheap beside the
    others as it never was.
    """

    _TRACKING = 0.1
    _LEAST_WIDTH_TRACKING = 0.01
    # More than this is a change of the whole machine, not of one width.
    _WIDTH_SURPRISE = 1.4

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._verify = list(costs.verify)
        self._seen = [_REPEATS] * len(costs.verify)
        self._target_factor = 1.0
        self._draft_factor = 1.0

    @property
    def most(self) -> int:
        """The largest draft length."""
        return len(self._verify) - 1

    def verify(self, d: int) -> float:
        """Seconds of a verification of `d` drafted tokens."""
        return self._verify[d] * self._target_factor

    @property
    def draft(self) -> float:
        """Seconds of the draft's forward of one token."""
        return self._costs.draft * self._draft_factor

    def catch_up(self, tokens: int) -> float:
        """Seconds in which the draft reads so many tokens."""
        return self._costs.catch_up * tokens * self._draft_factor

    def verified(self, d: int, seconds: float) -> None:
        """A verification of `d` drafted tokens took so long."""
        seen = _bounded(seconds / self._verify[d], self._target_factor)
        surprise = seen / self._target_factor
        if 1 / self._WIDTH_SURPRISE < surprise < self._WIDTH_SURPRISE:
            self._seen[d] += 1
            self._verify[d] *= surprise ** max(1 / self._seen[d], self._LEAST_WIDTH_TRACKING)
        self._target_factor += self._TRACKING * (seen - self._target_factor)

    def drafted(self, d: int, unseen: int, seconds: float) -> None:
        """`d` guesses of the draft, which had to read `unseen` tokens, took so long."""
        expected = self._costs.draft * d + self._costs.catch_up * (unseen - 1)
        seen = _bounded(seconds / expected, self._draft_factor)
        self._draft_factor += self._TRACKING * (seen - self._draft_factor)


def _bounded(seen: float, factor: float) -> float:
    # One slow forward on a busy machine says little about the next.
    return min(max(seen, factor / 2), factor * 2)
