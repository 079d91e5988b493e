"""Who is faster, from speeds that were measured in turn. Pure.

Two candidates are compared within a repetition alone: both decoded the same texts there, one soon
after the other, so a device that became hot or busy was so for both. What counts is the median over
the repetitions that both have. A lead within `TIE`, or within one standard error of that median,
is none, and then the candidate that changes least is taken.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokforge_models.measuring.plan import LOOKUP, PLAIN
from tokforge_models.measuring.spread import geometric_mean, noisy
from tokforge_models.measuring.trials import Candidate, Decoded, Known, Question, changed
from tokforge_models.resolution.measurement import TIE

LEAST = 2
"""Repetitions below which nothing is chosen over what is shipped."""

_MEDIAN_OVER_MEAN = math.sqrt(math.pi / 2)
_MOST_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class Standing:
    """What was measured of a candidate.

    Attributes:
        candidate: of whom.
        speed: tokens a second: median over repetitions of the geometric mean over workloads.
        ratio: over the pair as shipped: median over the repetitions that both have.
        repetitions: that both have.
    """

    candidate: Candidate
    speed: float
    ratio: float
    repetitions: int


class Standings:
    """Everything that was decoded, ready to be compared.

    Args:
        question: what is tuned.
        known: what was tried.
    """

    def __init__(self, question: Question, known: Known) -> None:
        self._question = question
        self._known = known
        self._base = known.repetitions(question.base)

    def of(self, candidate: Candidate) -> Standing | None:
        """Where a candidate stands; None where it has no repetition beside the base."""
        ratios = self.ratios(candidate, self._question.base)
        speeds = [
            speed
            for decoded in self._known.repetitions(candidate).values()
            if (speed := geometric_mean([cell.speed for cell in decoded.cells]))
        ]
        if not ratios or not speeds:
            return None
        return Standing(
            candidate, statistics.median(speeds), statistics.median(ratios), len(ratios)
        )

    def ratios(self, one: Candidate, other: Candidate) -> tuple[float, ...]:
        """Speed of one candidate over another's, a value for each repetition that both have."""
        ours, theirs = self._known.repetitions(one), self._known.repetitions(other)
        found = (_ratio(ours[turn], theirs[turn]) for turn in sorted(ours) if turn in theirs)
        return tuple(ratio for ratio in found if ratio)

    def order(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Candidates that have a standing, the fastest first."""
        ranked = [(standing.ratio, each) for each in candidates if (standing := self.of(each))]
        return [each for _, each in sorted(ranked, key=lambda pair: -pair[0])]

    def choose(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """The fastest of the candidates, or of those that tie with it the one that changes least.

        Only candidates with enough repetitions count. If the base is among them, it is the answer
        unless another one is faster.
        """
        able = [
            each for each in candidates if (found := self.of(each)) and found.repetitions >= LEAST
        ]
        base = self._question.base
        if base in able:
            able = [each for each in able if each == base or _median(self.ratios(each, base)) > 1]
        if not able:
            return None
        best, *_ = self.order(able)
        tied = [each for each in able if self.ties(each, best)]
        return min(tied, key=lambda each: complexity(each, self._question))

    def ties(self, candidate: Candidate, best: Candidate) -> bool:
        """Whether a candidate is as fast as the best, for all that can be told."""
        if candidate == best:
            return True
        ratios = self.ratios(candidate, best)
        return bool(ratios) and _median(ratios) >= 1 - margin(ratios)


def margin(ratios: Sequence[float]) -> float:
    """By how much a median of ratios must differ from 1 to say something, as a share."""
    if len(ratios) < 2:
        return _MOST_MARGIN
    return min(max(TIE, _error(ratios)), _MOST_MARGIN)


def is_clear(ratios: Sequence[float]) -> bool:
    """Whether more repetitions of a candidate beside a faster one would hardly change a thing: it
    is slower by two standard errors, or the two are known well enough.
    """
    if len(ratios) < 2:
        return False
    return _median(ratios) < 1 - 2 * _error(ratios) or not noisy(ratios)


def complexity(candidate: Candidate, question: Question) -> tuple[int, int, int]:
    """How much a candidate changes: settings, then the way of decoding, then a fixed length."""
    setup, shipped = candidate.setup, question.shipped
    settings = len(changed(setup.target, shipped.target))
    if setup.draft is not None and shipped.draft is not None:
        settings += len(changed(setup.draft, shipped.draft))
    way = candidate.way
    if way == question.base.way:
        return settings, 0, 0
    order = (LOOKUP, PLAIN)
    rank = order.index(way) + 1 if way in order else len(order) + 1
    return settings, rank, way.d if isinstance(way.d, int) else 0


def _error(ratios: Sequence[float]) -> float:
    """Standard error of the median of at least two ratios."""
    return _MEDIAN_OVER_MEAN * statistics.stdev(ratios) / math.sqrt(len(ratios))


def _ratio(one: Decoded, other: Decoded) -> float | None:
    theirs = {cell.workload: cell.speed for cell in other.cells}
    shared = [cell.speed / theirs[cell.workload] for cell in one.cells if cell.workload in theirs]
    return geometric_mean(shared)


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0
