"""How fast each candidate should be, from forwards and acceptance alone: the cost model. Pure.

A round of d guesses brings 1 + a(1) + ... + a(d) tokens, where a(i) is the share of rounds whose
first i guesses were all kept, and takes V(d + 1) + d * D, and the draft's reading of one more token
where all were kept. So acceptance, which no thread changes, is measured once, and forwards once for
each thread count and number format, not for each pair of them: a format changes V by the same
factor at every thread count. Lookup's gain over plain decoding is taken to be the same in all
setups, and ``auto`` to reach `AUTO` of the best that it may choose among (docs/engine.md, Figures).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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

AUTO = 0.98


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

    def speed(self, candidate: Candidate) -> float | None:
        """Expected tokens a second, the geometric mean over workloads; None where too little is
        known.
        """
        verify = self._verify(candidate.setup.target)
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
            if self._verify(target := replace(each, threads=threads)) is not None
        ]
        return tuple(dict.fromkeys(found))

    def drafts(self) -> tuple[Settings, ...]:
        """Settings of the draft whose forwards are known."""
        return tuple(dict.fromkeys(setup.draft for setup in self._loaded if setup.draft))

    def _verify(self, target: Settings) -> tuple[float, ...] | None:
        same = [costs.verify for setup, costs in self._loaded.items() if setup.target == target]
        if same:
            return tuple(statistics.median(each) for each in zip(*same, strict=True))
        shipped = self._question.shipped.target
        judged = self._known.judged(replace(target, threads=shipped.threads))
        usual = self._known.judged(shipped)
        threads = target.threads if on_cpu(target) else shipped.threads
        base = replace(shipped, threads=threads)
        if judged is None or usual is None or base == target:
            return None
        at_threads = self._verify(base)
        if at_threads is None:
            return None
        return tuple(
            seconds * ours / theirs
            for seconds, ours, theirs in zip(at_threads, judged.verify, usual.verify, strict=True)
        )

    def _draft(self, draft: Settings) -> Costs | None:
        same = [costs for setup, costs in self._loaded.items() if setup.draft == draft]
        if not same:
            return None
        return Costs(
            (),
            statistics.median(each.draft for each in same),
            statistics.median(each.catch_up for each in same),
        )


def _chances(question: Question, known: Known) -> Mapping[str, Chances]:
    plain = _speeds(known.decoded(question.alone, 0))
    looked = _speeds(known.decoded(Candidate(question.alone.setup, LOOKUP), 0))
    drafting = known.decoded(Candidate(question.shipped, Way("model", LENGTHS[-1])), 0)
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
        return AUTO * (max(best, looked) if looked and way.drafter == "any" else best)
    return _fixed(way.d, costs, chances.kept)


def _fixed(d: int, costs: Costs, kept: Sequence[float]) -> float:
    """Tokens a second with d guesses a round."""
    # Where no text got as far, the last share that is known stands for what follows.
    shares = [kept[min(place, len(kept) - 1)] if kept else 0.0 for place in range(d)]
    late = shares[-1] * costs.catch_up if shares else 0.0
    return (1 + sum(shares)) / (costs.verify[d] + d * costs.draft + late)
