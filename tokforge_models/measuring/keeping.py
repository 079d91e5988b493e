"""What of a bench is worth keeping: a report in, the profiles that resolution may go by out. Pure.

A profile is kept where a second bench would come to the same verdict, as far as the spread of the
repetitions tells (`spread.apart`): the pair is faster, or slower, or within 5 % of plain decoding.
Between them lies what is not known, and what is not known is not kept. Nor is anything of a bench
that was stopped: its last repetition is missing in some ways and not in others.

The pair is taken as `auto` runs it, since that is what goes by other texts than these; a fixed
length takes its place only where it was surely more than 5 % faster. Settings are those that the
bench ran with, flags included: the figures hold for no others.

Drafts from the context are for texts that repeat themselves. They are worth it where any workload
gains by them, not worth it where none does and all together lose; else nothing is said of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tokforge_models.bundle import Settings
from tokforge_models.measuring.plan import AUTO, LOOKUP, PLAIN, Way
from tokforge_models.measuring.report import Model, PairReport, Report
from tokforge_models.measuring.spread import TOLERANCE, apart, geometric_mean, median
from tokforge_models.resolution.measurement import MeasuredBy, Measurement

Verdict = Literal["faster", "slower", "same"]


@dataclass(frozen=True, slots=True)
class Judged:
    """What becomes of one pair, or of the target alone.

    Attributes:
        draft: id of the draft; None of the target alone.
        profile: what is to be saved; None where nothing is.
        why: what was found, or why nothing is saved, in a sentence.
    """

    draft: str | None
    profile: Measurement | None
    why: str


def judge(report: Report) -> tuple[Judged, ...]:
    """The target alone, then each pair."""
    if not report.complete:
        return (Judged(None, None, "a bench that was stopped tells too little"),)
    if report.target.content is None or not report.pairs:
        return (Judged(None, None, f"what {report.target.id} consists of is not known"),)
    alone = _alone(report, report.target.content, report.pairs[0])
    paired = [
        _paired(report, report.target.content, pair, pair.draft)
        for pair in report.pairs
        if pair.draft is not None
    ]
    return (alone, *paired)


def verdict(ratios: Sequence[float]) -> Verdict | None:
    """What a second run would find too, of ratios that may be 1; None where that is open."""
    middle, share = median(ratios), apart(ratios)
    if middle is None or share is None:
        return None
    if middle * (1 - share) > 1:
        return "faster"
    if middle * (1 + share) < 1:
        return "slower"
    return "same" if share <= TOLERANCE else None


def _alone(report: Report, target: str, pair: PairReport) -> Judged:
    plain = _plain_speed(pair)
    if plain is None:
        return Judged(None, None, "no text was longer than a token")
    lookup = _lookup(pair)
    gain = max(pair.overall(LOOKUP) or 1.0, 1.0) if lookup else 1.0
    profile = replace(
        _profile(report, target, plain, plain * gain),
        lookup=lookup,
        d="auto" if lookup else None,
    )
    said = {
        True: f"drafts from the context gain: {gain:.2f} times",
        False: "drafts from the context are no gain",
        None: "what drafts from the context gain is not known",
    }
    return Judged(None, profile, f"{plain:.1f} tokens a second; {said[lookup]}")


def _paired(report: Report, target: str, pair: PairReport, draft: Model) -> Judged:
    plain, way = _plain_speed(pair), _best(pair)
    ratio = pair.overall(way) if way else None
    if plain is None or way is None or ratio is None or draft.content is None:
        return Judged(draft.id, None, "too little was measured of it")
    found = verdict(_by_turn(pair, way))
    if found is None:
        return Judged(
            draft.id,
            None,
            f"{ratio:.2f} times in this bench, and perhaps otherwise in the next; more "
            "--repetitions help, and other programs ended",
        )
    profile = replace(
        _profile(report, target, plain, plain * ratio),
        draft=draft.content,
        draft_settings=_tuned(draft.settings),
        lookup=_lookup(pair),
        d=way.d,
    )
    return Judged(draft.id, profile, f"{ratio:.2f} times plain decoding with d {way.d}, {found}")


def _profile(report: Report, target: str, plain: float, paired: float) -> Measurement:
    return Measurement(
        device=report.device,
        target=target,
        draft=None,
        mnn=report.mnn,
        plain=plain,
        paired=paired,
        by=MeasuredBy.BENCH,
        measured_at=report.measured_at,
        target_settings=_tuned(report.target.settings),
    )


def _tuned(settings: Settings) -> Settings:
    """Without the sampler, of which no bench says anything."""
    return replace(settings, sampler=None)


def _best(pair: PairReport) -> Way | None:
    """`auto`, unless a fixed length was surely faster; then the fastest of those."""
    ways = [way for way in pair.ways if way.drafter in {"model", "any"} and _by_turn(pair, way)]
    base = AUTO if AUTO in ways else None
    better = [way for way in ways if base is None or _surely_faster(pair, way, base)]
    return max(better, key=lambda way: pair.overall(way) or 0.0, default=base)


def _surely_faster(pair: PairReport, way: Way, other: Way) -> bool:
    turns = zip(_by_turn(pair, way), _by_turn(pair, other), strict=False)
    return verdict([ours / theirs / (1 + TOLERANCE) for ours, theirs in turns]) == "faster"


def _lookup(pair: PairReport) -> bool | None:
    each = [verdict(row.ratios) for row in pair.rows if row.way == LOOKUP]
    if "faster" in each:
        return True
    return False if verdict(_by_turn(pair, LOOKUP)) == "slower" else None


def _by_turn(pair: PairReport, way: Way) -> tuple[float, ...]:
    """Times plain over all workloads, a value a repetition; none where a workload lacks one."""
    rows = [row.ratios for row in pair.rows if row.way == way]
    if len(rows) < len(pair.workloads) or len({len(ratios) for ratios in rows}) != 1:
        return ()
    return tuple(math.prod(turn) ** (1 / len(turn)) for turn in zip(*rows, strict=True))


def _plain_speed(pair: PairReport) -> float | None:
    speeds = [row.speed for row in pair.rows if row.way == PLAIN]
    known = [speed for speed in speeds if speed]
    return geometric_mean(known) if len(known) == len(pair.workloads) else None
