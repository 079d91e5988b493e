"""What tune found: the choice, why in words, and what is worth keeping. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tokforge_models.bundle import Settings
from tokforge_models.device import Device
from tokforge_models.measuring.plan import AUTO
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
from tokforge_models.measuring.trials import Candidate, Kind, Known, Question, describe
from tokforge_models.resolution.measurement import MeasuredBy, Measurement


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a search, or where it stands.

    Attributes:
        chosen: what to run with; None where nothing may be chosen, as `words` say.
        before: the pair as shipped; None where that was not measured.
        best: the best of each kind, as far as it was measured.
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
    allowed = {_format(each) for each in formats(question, known)}
    found = [standing for candidate in known.candidates() if (standing := standings.of(candidate))]
    found.sort(key=lambda each: -each.ratio)
    able = [each for each in found if _format(each.candidate.setup.target) in allowed]
    best = {
        kind: standing
        for kind in KINDS
        if (winner := standings.choose(_finalists(able, kind)))
        and (standing := standings.of(winner))
    }
    finalists = {each.candidate: each for each in best.values()}
    # What is shipped competes although a rival of its kind was faster: the lead may be a tie.
    before = standings.of(question.base)
    if before is not None and before in able:
        finalists[question.base] = before
    winner = standings.choose(list(finalists))
    chosen = finalists[winner] if winner else None
    return Verdict(
        chosen=chosen,
        before=before,
        best=best,
        words=_words(question, known, chosen, best),
        complete=next_trial(question, known) is None,
        limit=limit(question, known),
        divergence=_divergence(question, known, chosen),
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
    plain = verdict.best.get("plain")
    if plain is None:
        return ()
    lookup = verdict.best.get("lookup")
    gains = lookup is not None and lookup.ratio > plain.ratio
    alone = lookup if lookup is not None and gains else plain
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
            lookup=gains if lookup is not None else None,
            divergence=_divergence(question, known, alone),
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
                paired=_against(paired, plain),
                lookup=way == AUTO if question.lookup and way.d == "auto" else None,
                divergence=_divergence(question, known, paired),
                target_settings=_tuned(paired.candidate.setup.target),
                draft_settings=_tuned(paired.candidate.setup.draft or Settings()),
                d=way.d,
            )
        )
    return tuple(kept)


def _against(standing: Standing, plain: Standing) -> float:
    """Tokens a second beside those of plain decoding: as the ratios, taken in turn, say."""
    return plain.speed * standing.ratio / plain.ratio


def _tuned(settings: Settings) -> Settings:
    """The settings that tune looks at."""
    return replace(settings, power=None, sampler=None)


def _format(target: Settings) -> Settings:
    return replace(target, threads=None)


def _finalists(standings: Sequence[Standing], kind: Kind) -> list[Candidate]:
    """Those of a kind that came furthest; who was dropped earlier was slower then."""
    of_kind = [each for each in standings if each.candidate.kind == kind]
    most = max((each.repetitions for each in of_kind), default=0)
    return [each.candidate for each in of_kind if each.repetitions >= most - 1]


def _divergence(question: Question, known: Known, standing: Standing | None) -> float | None:
    if standing is None:
        return None
    target = standing.candidate.setup.target
    judged = known.judged(replace(target, threads=question.shipped.target.threads))
    return judged.divergence if judged else None


def _words(
    question: Question, known: Known, chosen: Standing | None, best: dict[Kind, Standing]
) -> str:
    if (why := broken(question, known)) is not None:
        return f"the pair does not run as shipped: {why}"
    if chosen is None:
        if not formats(question, known):
            return "no number format is known to be as near to the reference as was asked for"
        return "too little was measured to choose by; a larger budget helps"
    said = [_choice(question, chosen)]
    plain, paired = best.get("plain"), best.get("paired")
    if plain is not None and paired is not None:
        ratio = paired.ratio / plain.ratio
        said.append(f"with the draft {ratio:.2f} times plain decoding, each at its best")
        if chosen.candidate.kind != "paired":
            said.append("so the draft does not pay here")
    return "; ".join(said)


def _choice(question: Question, chosen: Standing) -> str:
    if chosen.candidate == question.base:
        return "as shipped: nothing was faster beyond the noise"
    how = describe(chosen.candidate, question.shipped)
    return f"{how}: {chosen.ratio:.2f} times as fast as shipped"
