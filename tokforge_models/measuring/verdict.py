"""What tune found: the choice, why in words, and what is worth keeping. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tokforge_models.bundle import Settings
from tokforge_models.device import Device
from tokforge_models.measuring.plan import AUTO, LOOKUP, PLAIN
from tokforge_models.measuring.searching import (
    KINDS,
    Skipped,
    broken,
    formats,
    limit,
    next_trial,
    refused,
    skipped,
)
from tokforge_models.measuring.standing import Standing, Standings
from tokforge_models.measuring.trials import (
    Candidate,
    Kind,
    Known,
    Question,
    describe,
    format_of,
)
from tokforge_models.resolution.measurement import MeasuredBy, Measurement


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a search, or where it stands.

    Attributes:
        chosen: what to run with; None where nothing may be chosen, as `words` say.
        before: the pair as shipped; None where that was not measured.
        best: the best with a draft and without, as far as it was measured.
        plain: the best without any guesses.
        words: the verdict for people.
        complete: whether nothing is left to try within the budget.
        limit: largest divergence that was allowed.
        divergence: of the chosen one's number format.
        standings: everything that was decoded, the fastest first.
        refused: number formats that are too far from the reference.
        skipped: what else was left out.
    """

    chosen: Standing | None
    before: Standing | None
    best: dict[Kind, Standing]
    plain: Standing | None
    words: str
    complete: bool
    limit: float | None
    divergence: float | None
    standings: tuple[Standing, ...]
    refused: tuple[Skipped, ...]
    skipped: tuple[Skipped, ...]


def decide(question: Question, known: Known) -> Verdict:
    """What is best, for all that is known."""
    standings = Standings(question, known)
    allowed = {format_of(each) for each in formats(question, known)}
    found = [standing for candidate in known.candidates() if (standing := standings.of(candidate))]
    found.sort(key=lambda each: -each.ratio)
    able = [each for each in found if format_of(each.candidate.setup.target) in allowed]
    best: dict[Kind, Standing] = {}
    for kind in KINDS:
        of_kind = [each for each in able if each.candidate.kind == kind]
        if (winner := _best(standings, of_kind)) is not None:
            best[kind] = winner
    plain = _best(standings, [each for each in able if each.candidate.way == PLAIN])
    choice = standings.choose([each.candidate for each in best.values()])
    chosen = standings.of(choice) if choice else None
    return Verdict(
        chosen=chosen,
        before=standings.of(question.base),
        best=best,
        plain=plain,
        words=_words(question, known, chosen, best),
        complete=next_trial(question, known) is None,
        limit=limit(question, known),
        divergence=divergence_of(chosen.candidate, question, known) if chosen else None,
        standings=tuple(found),
        refused=refused(question, known),
        skipped=skipped(question, known),
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """What a profile is of.

    Attributes:
        device: where it was measured.
        target: content digest.
        draft: content digest; None without a draft.
        mnn: version of MNN.
    """

    device: Device
    target: str
    draft: str | None
    mnn: str


def profiles(
    verdict: Verdict, question: Question, known: Known, identity: Identity, at: datetime
) -> tuple[Measurement, ...]:
    """What is worth keeping: of the target alone, and of the pair, a loss too.

    Nothing, where plain decoding was not measured often enough to hold anything against it.
    """
    plain, alone = verdict.plain, verdict.best.get("alone")
    if plain is None or alone is None:
        return ()
    kept = [
        Measurement(
            device=identity.device,
            target=identity.target,
            draft=None,
            mnn=identity.mnn,
            plain=plain.speed,
            paired=_against(alone, plain),
            by=MeasuredBy.TUNE,
            measured_at=at,
            lookup=alone.candidate.way == LOOKUP if question.lookup else None,
            divergence=divergence_of(alone.candidate, question, known),
            target_settings=_tuned(alone.candidate.setup.target),
        )
    ]
    paired = verdict.best.get("paired")
    if paired is not None and identity.draft is not None:
        way = paired.candidate.way
        kept.append(
            replace(
                kept[0],
                draft=identity.draft,
                # The draft pays where it is better than the best without it.
                plain=kept[0].paired,
                paired=kept[0].paired * (paired.ratio / alone.ratio),
                lookup=way == AUTO if question.lookup and way.d == "auto" else None,
                divergence=divergence_of(paired.candidate, question, known),
                target_settings=_tuned(paired.candidate.setup.target),
                draft_settings=_tuned(paired.candidate.setup.draft or Settings()),
                d=way.d,
            )
        )
    return tuple(kept)


def _against(standing: Standing, plain: Standing) -> float:
    """Tokens a second beside those of plain decoding: as the ratios, taken in turn, say."""
    return plain.speed * (standing.ratio / plain.ratio)


def _tuned(settings: Settings) -> Settings:
    """The settings that tune looks at."""
    return replace(settings, power=None, sampler=None)


def _best(standings: Standings, measured: Sequence[Standing]) -> Standing | None:
    """The best of those that came furthest; who was dropped earlier was slower then."""
    most = max((each.repetitions for each in measured), default=0)
    choice = standings.choose([each.candidate for each in measured if each.repetitions >= most - 1])
    return standings.of(choice) if choice else None


def divergence_of(candidate: Candidate, question: Question, known: Known) -> float | None:
    """How far a candidate's number format is from the reference; None where it was not judged."""
    threads = question.shipped.target.threads
    judged = known.judged(replace(candidate.setup.target, threads=threads))
    return judged.divergence if judged else None


def _words(
    question: Question, known: Known, chosen: Standing | None, best: Mapping[Kind, Standing]
) -> str:
    if (why := broken(question, known)) is not None:
        return f"the pair does not run as shipped: {why}"
    if chosen is None:
        if not formats(question, known):
            return "no number format is known to be as near to the reference as was asked for"
        return "too little was measured to choose by; a larger budget helps"
    said = [_choice(question, chosen)]
    paired, alone = best.get("paired"), best.get("alone")
    if paired is not None and alone is not None:
        ratio = paired.ratio / alone.ratio
        said.append(f"with the draft {ratio:.2f} times the best without it, each at its best")
        if chosen.candidate.kind != "paired":
            said.append("so the draft does not pay here")
    return "; ".join(said)


def _choice(question: Question, chosen: Standing) -> str:
    if chosen.candidate == question.base:
        return "as shipped: nothing was faster beyond the noise"
    how = describe(chosen.candidate, question.shipped)
    return f"{how}: {chosen.ratio:.2f} times as fast as shipped"
