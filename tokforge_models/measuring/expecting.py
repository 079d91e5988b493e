"""How fast each candidate should be, from forwards and acceptance alone: the cost model. Pure.

A round of d guesses brings 1 + a(1) + ... + a(d) tokens, where a(i) is the share of rounds whose
first i guesses were all kept, and takes V(d + 1) + d * D, and the draft's reading of one more token
where all were kept. So acceptance, which no thread changes, is measured once, and forwards for each
thread count and for each number format, not for each pair of them: a format changes V by the same
factor at every thread count. Such factors are medians over loads that took turns. Lookup's gain
over plain decoding is taken to be the same in all setups, and ``auto`` to reach `AUTO_SHARE` of the
best that it may choose among (docs/engine.md, Figures).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from tokforge_engine.costs import Costs
from tokforge_models.bundle import Settings
from tokforge_models.measuring.plan import LOOKUP, PLAIN, Way
from tokforge_models.measuring.spread import geometric_mean
from tokforge_models.measuring.trials import (
    LENGTHS,
    Candidate,
    Cell,
    Decoded,
    Known,
    Question,
    on_cpu,
)

AUTO_SHARE = 0.98


@dataclass(frozen=True, slots=True)
class Chances:
    """What the texts of one workload told.

    Attributes:
        kept: by place in the draft, from 0: how often all guesses up to there were kept; None
            where that is not known.
        lookup: speed of drafts from the context over that of plain decoding; None where that is
            not known.
    """

    kept: tuple[float, ...] | None
    lookup: float | None


class Expectations:
    """The cost model of one device, as far as it is known.

    Args:
        question: what is tuned.
        known: what was tried.
    """

    def __init__(self, question: Question, known: Known) -> None:
        self._question = question
        self._known = known
        self._loaded = known.loaded()
        self._chances = _chances(question, known)
        # Hundreds of candidates share a few settings.
        self.verify = cache(self._verify)
        self._draft = cache(self._measured_draft)

    def speed(self, candidate: Candidate) -> float | None:
        """Expected tokens a second, the geometric mean over workloads; None where too little is
        known.
        """
        verify = self.verify(candidate.setup.target)
        if verify is None or not self._chances:
            return None
        draft = Costs(())
        if candidate.setup.draft is not None:
            found = self._draft(candidate.setup.draft)
            if found is None:
                return None
            draft = found
        costs = replace(draft, verify=verify)
        speeds = [_speed(candidate.way, costs, chances) for chances in self._chances.values()]
        known = [speed for speed in speeds if speed]
        return geometric_mean(known) if len(known) == len(speeds) else None

    def targets(self) -> tuple[Settings, ...]:
        """Settings of the target whose forwards are known, of all that may be combined."""
        question = self._question
        formats = (question.shipped.target, *question.formats, question.reference)
        found = [
            target
            for each in dict.fromkeys(formats)
            for threads in ((*question.threads, each.threads) if on_cpu(each) else (each.threads,))
            if self._factors(target := replace(each, threads=threads)) is not None
        ]
        return tuple(dict.fromkeys(found))

    def drafts(self) -> tuple[Settings, ...]:
        """Settings of the draft whose forwards are known."""
        return tuple(dict.fromkeys(setup.draft for setup in self._loaded if setup.draft))

    def _verify(self, target: Settings) -> tuple[float, ...] | None:
        """V(1) and further of a target in any setup; None where too little is known."""
        loads = self._loaded.get(self._question.shipped, {}).values()
        factors = self._factors(target)
        if not loads or factors is None:
            return None
        usual = _medians([costs.verify for costs in loads])
        return tuple(seconds * factor for seconds, factor in zip(usual, factors, strict=True))

    def _factors(self, target: Settings) -> tuple[float, ...] | None:
        """V of a target over V as shipped, by the number of tokens."""
        shipped = self._question.shipped.target
        loads = self._loaded.get(self._question.shipped, {})
        beside = [
            _ratios(costs.verify, loads[turn].verify)
            for setup, repetitions in self._loaded.items()
            if setup.target == target
            for turn, costs in repetitions.items()
            if turn in loads
        ]
        if beside:
            return _medians(beside)
        as_shipped = replace(shipped, threads=target.threads)
        in_format = replace(target, threads=shipped.threads)
        if target == in_format:
            judged, usual = self._known.judged(target), self._known.judged(shipped)
            return _ratios(judged.verify, usual.verify) if judged and usual else None
        if target == as_shipped:
            return None
        of_threads, of_format = self._factors(as_shipped), self._factors(in_format)
        if of_threads is None or of_format is None:
            return None
        return tuple(one * other for one, other in zip(of_threads, of_format, strict=True))

    def _measured_draft(self, draft: Settings) -> Costs | None:
        """D of a draft, and its reading of a token."""
        loads = self._loaded.get(self._question.shipped, {})
        beside = [
            _ratios((costs.draft, costs.catch_up), (loads[turn].draft, loads[turn].catch_up))
            for setup, repetitions in self._loaded.items()
            if setup.draft == draft
            for turn, costs in repetitions.items()
            if turn in loads
        ]
        if not beside:
            return None
        usual = _medians([(costs.draft, costs.catch_up) for costs in loads.values()])
        return Costs(
            (), *(one * factor for one, factor in zip(usual, _medians(beside), strict=True))
        )


def _ratios(ones: Sequence[float], others: Sequence[float]) -> tuple[float, ...]:
    return tuple(one / other for one, other in zip(ones, others, strict=True))


def _medians(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(statistics.median(each) for each in zip(*rows, strict=True))


def _chances(question: Question, known: Known) -> Mapping[str, Chances]:
    plain = _speeds(known.decoded(question.plain, 0))
    looked = _speeds(known.decoded(Candidate(question.plain.setup, LOOKUP), 0))
    drafting = known.decoded(question.probe, 0)
    kept = {cell.workload: _shares(cell.drafted, cell.accepted) for cell in _cells(drafting)}
    return {
        workload: Chances(
            kept.get(workload), looked[workload] / speed if workload in looked else None
        )
        for workload, speed in plain.items()
    }


def _cells(decoded: Decoded | None) -> Sequence[Cell]:
    return decoded.cells if decoded else ()


def _speeds(decoded: Decoded | None) -> dict[str, float]:
    return {cell.workload: cell.speed for cell in _cells(decoded)}


def _shares(drafted: Sequence[int], accepted: Sequence[int]) -> tuple[float, ...]:
    return tuple(kept / tried for tried, kept in zip(drafted, accepted, strict=True) if tried)


def _speed(way: Way, costs: Costs, chances: Chances) -> float | None:
    if way == PLAIN:
        return 1 / costs.verify[0]
    looked = chances.lookup / costs.verify[0] if chances.lookup is not None else None
    if way.drafter == "lookup":
        return looked
    if chances.kept is None:
        return None
    if way.d == "auto":
        best = max(_fixed(d, costs, chances.kept) for d in (0, *LENGTHS))
        return AUTO_SHARE * (max(best, looked) if looked and way.drafter == "any" else best)
    return _fixed(way.d, costs, chances.kept)


def _fixed(d: int, costs: Costs, kept: Sequence[float]) -> float:
    """Tokens a second with d guesses a round."""
    # Where no text got as far, the last share that is known stands for what follows.
    shares = [kept[min(place, len(kept) - 1)] if kept else 0.0 for place in range(d)]
    late = shares[-1] * costs.catch_up if shares else 0.0
    return (1 + sum(shares)) / (costs.verify[d] + d * costs.draft + late)
