"""A tune as a JSON document and as tables for people. Pure.

    {"schema": 1, "tokforge": "0.1.0", "mnn": "3.6.1", "device": {...},
     "target": "<id>", "draft": "<id>" or null, "verdict": "in words", "complete": true,
     "budget": 120, "seconds": 71.3, "limit": 0.022 or null,
     "chosen": {"target": {settings}, "draft": {settings}, "way": {"drafter": "model", "d": 3},
                "what": "d 3, threads 2", "speed": 61.2, "ratio": 1.31, "repetitions": 7,
                "divergence": 0.0208 or null} or null,
     "before": the pair as shipped, in the same form, or null,
     "best": {"paired": ..., "alone": ...}, "plain": ... or null,
     "standings": [in the same form, the fastest first],
     "refused": [{"what", "why"}], "skipped": [{"what", "why"}],
     "trials": [as in `tokforge_models.measuring.tuning_file`]}

Speeds are tokens a second, ratios those over the pair as shipped, both as medians over repetitions
of the geometric mean over workloads.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tokforge_models.measuring.standing import Standing
from tokforge_models.measuring.tables import Table
from tokforge_models.measuring.trials import Known, Question, describe
from tokforge_models.measuring.tuning_file import Conditions, candidate_document, tried_document
from tokforge_models.measuring.verdict import Verdict, divergence_of
from tokforge_models.resolution.measurement import device_document

SCHEMA = 1
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Tuned:
    """A search, and what came of it.

    Attributes:
        target: id of the target.
        draft: id of the draft; None without one.
        question: what was asked.
        conditions: under which it was tried.
        known: all trials.
        verdict: what they say.
    """

    target: str
    draft: str | None
    question: Question
    conditions: Conditions
    known: Known
    verdict: Verdict


def as_document(tuned: Tuned) -> dict[str, Any]:
    """The document of a tune."""
    verdict = tuned.verdict
    return {
        "schema": SCHEMA,
        "tokforge": tuned.conditions.tokforge,
        "mnn": tuned.conditions.mnn,
        "device": device_document(tuned.conditions.device),
        "target": tuned.target,
        "draft": tuned.draft,
        "verdict": verdict.words,
        "complete": verdict.complete,
        "budget": tuned.question.budget,
        "seconds": tuned.known.spent,
        "limit": verdict.limit,
        "chosen": _standing(tuned, verdict.chosen),
        "before": _standing(tuned, verdict.before),
        "best": {kind: _standing(tuned, each) for kind, each in verdict.best.items()},
        "plain": _standing(tuned, verdict.plain),
        "standings": [_standing(tuned, each) for each in verdict.standings],
        "refused": [dataclasses.asdict(each) for each in verdict.refused],
        "skipped": [dataclasses.asdict(each) for each in verdict.skipped],
        "trials": [tried_document(each) for each in tuned.known.tried],
    }


def headline(tuned: Tuned) -> tuple[str, ...]:
    """The verdict and what stands behind it, in lines."""
    verdict = tuned.verdict
    device = tuned.conditions.device
    where = device.chip or str(device.platform)
    cores = f", {device.cores} cores" if device.cores else ""
    lines = [
        f"{tuned.target} with {tuned.draft or 'no draft'} on {where}{cores}; "
        f"MNN {tuned.conditions.mnn}",
        f"verdict  {verdict.words}",
        f"tried    {len(tuned.known.tried)} trials in {tuned.known.spent:.0f} s"
        + ("" if verdict.complete else "; there is more to try"),
    ]
    lines += [f"refused  {each.what}: {each.why}" for each in verdict.refused]
    if verdict.skipped:
        lines.append(f"skipped  {len(verdict.skipped)} others; --json tells each with its reason")
    return tuple(lines)


def tables(tuned: Tuned) -> tuple[Table, ...]:
    """What was measured, the fastest first."""
    best = [*tuned.verdict.best.values(), tuned.verdict.plain]
    shown = [
        each
        for number, each in enumerate(tuned.verdict.standings)
        if number < _SHOWN or each in best
    ]
    rows = tuple(
        (
            describe(each.candidate, tuned.question.shipped),
            f"{each.speed:.1f}",
            f"{each.ratio:.2f}x",
            str(each.repetitions),
            _mark(tuned, each),
        )
        for each in shown
    )
    if not rows:
        return ()
    header = ("candidate", "tokens/s", "times shipped", "repetitions", "")
    return (Table("decoded in turn, the fastest first", header, rows),)


def _mark(tuned: Tuned, standing: Standing) -> str:
    verdict = tuned.verdict
    marks = {
        "chosen": verdict.chosen,
        "as shipped": verdict.before,
        "best with the draft": verdict.best.get("paired"),
        "best without": verdict.best.get("alone"),
        "best plain": verdict.plain,
    }
    return ", ".join(mark for mark, other in marks.items() if other == standing)


def _standing(tuned: Tuned, standing: Standing | None) -> dict[str, Any] | None:
    if standing is None:
        return None
    return {
        **candidate_document(standing.candidate),
        "what": describe(standing.candidate, tuned.question.shipped),
        "speed": standing.speed,
        "ratio": standing.ratio,
        "repetitions": standing.repetitions,
        "divergence": divergence_of(standing.candidate, tuned.question, tuned.known),
    }
