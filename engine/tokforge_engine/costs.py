"""What forwards cost here, measured with the models that will run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from tokforge_engine.length import SCORED, Costs
from tokforge_engine.model import LanguageModel

_REPEATS = 3


def measure_costs(
    target: LanguageModel,
    draft: LanguageModel,
    most: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Costs:
    """Time the forwards of a pair, target and draft in turn, as decoding will run them.

    A draft's forwards in a tight loop would find its weights in the processor's caches, where a
    target leaves none of them.

    Args:
        target: with an empty cache; ready to verify 1 to most + 1 tokens.
        draft: with an empty cache.
        most: largest draft length.
        clock: seconds from any fixed point, monotonic.
    """

    def seconds(forward: Callable[[Sequence[int]], object], width: int) -> float:
        began = clock()
        forward([0] * width)
        took = clock() - began
        target.rollback(0)
        draft.rollback(0)
        return took

    verify: list[list[float]] = [[] for _ in range(most + 1)]
    single: list[float] = []
    many: list[float] = []
    for _ in range(_REPEATS):
        for width, seen in enumerate(verify, start=1):
            seen.append(seconds(target.verify, width))
            single.append(seconds(draft.extend, 1))
        many.append(seconds(draft.extend, SCORED))
    return Costs(
        verify=tuple(statistics.median(seen) for seen in verify),
        draft=statistics.median(single),
        catch_up=statistics.median(many) / SCORED,
    )
