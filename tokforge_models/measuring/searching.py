"""What to try next: a pure function of the question and of what is known.

1. The pair as shipped is loaded, and decoded as it would run, plain, at the longest draft length
   and with lookup. The second says how fast plain decoding is, the others how often guesses are
   kept.
2. Number formats are judged: the reference, the shipped one, then the others.
3. The pair is loaded at the other thread counts and in the formats that may be chosen, again and
   again in turn.
4. `Expectations` tells from this how fast each candidate should be. With the draft and without,
   those that may be the fastest within `DOUBT` are decoded in turn; after each rung the slower
   half is dropped, until one of each is left. Those, the pair as shipped and plain decoding as
   shipped are decoded until more would hardly change a thing.

Time is counted by what trials took, so what comes next depends on nothing but the arguments: a
search that was stopped goes on where it was, and ends as it would have.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tokforge_models.bundle import Settings
from tokforge_models.measuring.expecting import Expectations
from tokforge_models.measuring.plan import LOOKUP, PLAIN
from tokforge_models.measuring.standing import Standings, complexity, is_clear
from tokforge_models.measuring.trials import (
    Candidate,
    Decode,
    Judge,
    Kind,
    Known,
    Load,
    Question,
    Setup,
    Trial,
    changed,
    describe,
    format_of,
    with_threads,
)

DOUBT = 0.12
"""By how much a candidate's real speed may differ from the expected one, as a share, either way."""

KINDS: tuple[Kind, ...] = ("paired", "alone")
# Divergences are not told apart below this, nor within a tenth.
_FLOOR, _NO_WORSE = 1e-4, 1.1
# Candidates that are expected to be this close, as a share of the best, count as equal.
_STEP = 0.05
# How much of the budget may be gone when a format is judged, a setup loaded.
_JUDGING, _LOADING = 0.5, 0.65
_RUNG = 2
_LEAST_FINAL, _MOST_FINAL = 5, 15
_LOADS = 3
# A format whose forwards, read beside the shipped one, are this much slower is not loaded.
_SLOW = 1.5
# Most that are decoded in turn.
_MOST: dict[Kind, int] = {"paired": 8, "alone": 4}


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was not measured, or not to its end, and why."""

    what: str
    why: str


def next_trial(question: Question, known: Known) -> Trial | None:
    """What to try next; None where the best is clear, the budget is at its end, or the pair does
    not run as shipped, so that there is nothing to hold others against.
    """
    if broken(question, known) is not None:
        return None
    for trial, share in _first(question, known):
        if trial not in known and _fits(trial, question, known, share):
            return trial
    return _Finals(question, known).next()


def broken(question: Question, known: Known) -> str | None:
    """Why the pair does not run as shipped; None where it does, or was not tried."""
    return known.failure(Load(question.shipped)) or known.failure(Decode(question.base, 0))


def formats(question: Question, known: Known) -> tuple[Settings, ...]:
    """The number formats that may be chosen, the shipped one first."""
    return tuple(each for each in _formats(question) if _refusal(each, question, known) is None)


def limit(question: Question, known: Known) -> float | None:
    """The largest divergence that is allowed; None where it is not known."""
    if question.limit is not None:
        return question.limit
    usual = known.judged(question.shipped.target)
    return None if usual is None else _NO_WORSE * usual.divergence + _FLOOR


def refused(question: Question, known: Known) -> tuple[Skipped, ...]:
    """Formats that are too far from the reference, with their figures."""
    return tuple(
        Skipped(_named(each, question), why)
        for each in _formats(question)
        if known.judged(each) is not None and (why := _too_far(each, question, known))
    )


def skipped(question: Question, known: Known) -> tuple[Skipped, ...]:
    """Everything else that was left out."""
    found = [
        Skipped(_named(each, question), why)
        for each in _formats(question)
        if not _too_far(each, question, known) and (why := _unfit(each, question, known))
    ]
    return (*found, *_Finals(question, known).skipped())


def _first(question: Question, known: Known) -> Iterator[tuple[Trial, float]]:
    """The trials before the finals, each with the share of the budget that it may end in."""
    yield Load(question.shipped), 1.0
    for candidate in _probes(question):
        yield Decode(candidate, 0), 1.0
    yield Judge(question.reference), _JUDGING
    if known.judged(question.reference):
        for target in _formats(question):
            yield Judge(target), _JUDGING
    for repetition in range(_LOADS):
        for setup in _setups(question, known):
            yield Load(setup, repetition), _LOADING


def _setups(question: Question, known: Known) -> list[Setup]:
    """What is loaded in turn."""
    shipped = question.shipped
    usual = shipped.target.threads or 0
    counts = sorted(question.threads, key=lambda count: abs(count - usual))
    others = [replace(shipped, target=each) for each in formats(question, known)]
    found = [
        shipped,
        *(with_threads(shipped, count) for count in counts),
        *(each for each in others if not is_slow(each.target, question, known)),
    ]
    return list(dict.fromkeys(found))


def is_slow(target: Settings, question: Question, known: Known) -> bool:
    """Whether all forwards in a format are so much slower than as shipped, or not known."""
    judged, usual = known.judged(target), known.judged(question.shipped.target)
    if target == question.shipped.target:
        return False
    if judged is None or usual is None:
        return True
    return all(
        ours > _SLOW * theirs for ours, theirs in zip(judged.verify, usual.verify, strict=True)
    )


def _probes(question: Question) -> list[Candidate]:
    found = [question.base, question.plain]
    if question.shipped.draft is not None:
        found.append(question.probe)
    if question.lookup:
        found.append(Candidate(question.plain.setup, LOOKUP))
    return list(dict.fromkeys(found))


def _fits(trial: Trial, question: Question, known: Known, share: float = 1.0) -> bool:
    """Whether a trial should end before so much of the budget is spent."""
    return known.spent + _expected_seconds(trial, known) <= share * question.budget


def _expected_seconds(trial: Trial, known: Known) -> float:
    """As the longest of its kind; what was never tried is expected to take no time."""
    kind: type[Trial] = trial.__class__
    if isinstance(trial, Judge):
        # The first one, which all depend on, also writes the texts and runs the slowest format.
        kind = Load
    same = [each.seconds for each in known.tried if isinstance(each.trial, kind)]
    if isinstance(trial, Decode):
        ours = [
            each.seconds
            for each in known.tried
            if isinstance(each.trial, Decode) and each.trial.candidate == trial.candidate
        ]
        same = ours or same
    return max(same, default=0.0)


def _formats(question: Question) -> tuple[Settings, ...]:
    return tuple(dict.fromkeys((question.shipped.target, *question.formats, question.reference)))


def _refusal(target: Settings, question: Question, known: Known) -> str | None:
    return _too_far(target, question, known) or _unfit(target, question, known)


def _too_far(target: Settings, question: Question, known: Known) -> str | None:
    most, judged = limit(question, known), known.judged(target)
    if most is None or judged is None or judged.divergence <= most:
        return None
    usual = known.judged(question.shipped.target)
    speed = f", {usual.verify[0] / judged.verify[0]:.2f} times as fast" if usual else ""
    return f"{judged.divergence:.4f} nats a token from the reference, over {most:.4f}{speed}"


def _unfit(target: Settings, question: Question, known: Known) -> str | None:
    """Why a format cannot be chosen although it may be near enough."""
    if target == question.shipped.target and question.limit is None:
        return None
    judged = known.judged(target)
    if limit(question, known) is None:
        return "how far the shipped format is from the reference is not known"
    if judged is None:
        why = known.failure(Judge(target)) or known.failure(Judge(question.reference))
        return why or "there was no time to judge it"
    for earlier in _formats(question):
        if earlier == target:
            return None
        other = known.judged(earlier)
        if other is not None and other.digest == judged.digest:
            return f"it computes the same numbers as the format {_named(earlier, question)}"
    return None


def _named(target: Settings, question: Question) -> str:
    return ", ".join(changed(target, question.shipped.target)) or "as shipped"


class _Finals:
    """The candidates that are decoded in turn, and what became of them."""

    def __init__(self, question: Question, known: Known) -> None:
        self._question = question
        self._known = known
        self._standings = Standings(question, known)
        # They stay whatever comes of them: what is found must be better than they are.
        self._expected = self._expectations()
        self._defaults = self._as_shipped()
        self._entered = self._entrants()

    def next(self) -> Trial | None:
        """The next trial; None where all is clear, or time is up."""
        cohort, repetitions = self._entered, 0
        while self._failure(self._question.base) is None:
            cohort = [each for each in cohort if self._failure(each) is None]
            rung = any(len(of_kind) > 1 for of_kind in self._rivals(cohort))
            repetitions += _RUNG if rung else 1
            if not rung:
                repetitions = max(repetitions, _LEAST_FINAL)
            missing = self._missing(cohort, repetitions)
            if missing is not None:
                return missing if _fits(missing, self._question, self._known) else None
            cohort = self._better_half(cohort) if rung else cohort
            if not rung and (repetitions >= _MOST_FINAL or self._clear(cohort)):
                return None
        return None

    def skipped(self) -> Iterator[Skipped]:
        """Candidates that did not come so far."""
        best = {kind: max(each.values()) for kind, each in self._by_expectation().items() if each}
        for candidate, speed in self._expected.items():
            if candidate not in self._entered:
                most = best[candidate.kind]
                yield Skipped(
                    describe(candidate, self._question.shipped),
                    f"expected {speed:.3g} tokens a second, the best of its kind {most:.3g}"
                    + (
                        ""
                        if _cannot_win(speed, most)
                        else "; others that may be as fast went before it"
                    ),
                )
        for candidate in self._entered:
            if (why := self._failure(candidate)) is not None:
                yield Skipped(describe(candidate, self._question.shipped), why)

    def _expectations(self) -> dict[Candidate, float]:
        expectations = Expectations(self._question, self._known)
        allowed = set(map(format_of, formats(self._question, self._known)))
        targets = [each for each in expectations.targets() if format_of(each) in allowed]
        drafts = expectations.drafts()
        candidates = [
            *(Candidate(Setup(target), PLAIN) for target in targets),
            *(Candidate(Setup(target), LOOKUP) for target in targets if self._question.lookup),
            *(
                Candidate(Setup(target, draft), way)
                for target in targets
                for draft in drafts
                for way in self._question.ways
            ),
        ]
        speeds = ((each, expectations.speed(each)) for each in candidates)
        return {each: speed for each, speed in speeds if speed}

    def _as_shipped(self) -> tuple[Candidate, ...]:
        """What runs today with the draft and without; lookup only if it may gain."""
        question = self._question
        looked = Candidate(question.plain.setup, LOOKUP)
        found = [question.base, question.plain]
        if not _cannot_win(
            self._expected.get(looked, 0.0), self._expected.get(question.plain, 1.0)
        ):
            found.append(looked)
        return tuple(dict.fromkeys(found))

    def _by_expectation(self) -> dict[Kind, dict[Candidate, float]]:
        return {
            kind: {each: speed for each, speed in self._expected.items() if each.kind == kind}
            for kind in KINDS
        }

    def _entrants(self) -> list[Candidate]:
        """Who is decoded in turn: of each kind those that may win, as many as there is time for."""
        room = self._room()
        found = list(self._defaults)
        for kind, speeds in self._by_expectation().items():
            if not speeds:
                continue
            best = max(speeds.values())
            able = [
                each
                for each, speed in speeds.items()
                if not _cannot_win(speed, best) and each not in self._defaults
            ]
            able.sort(key=partial(self._rank, speeds, best))
            found += able[: min(_MOST[kind], room if kind == "paired" else max(room // 2, 1))]
        return found

    def _room(self) -> int:
        """How many candidates with the draft there is time for."""
        question, known = self._question, self._known
        first = {trial for trial, _ in _first(question, known)}
        before = sum(each.seconds for each in known.tried if each.trial in first)
        decodes = [
            each.seconds
            for each in known.tried
            if isinstance(each.trial, Decode) and each.trial in first
        ]
        if not decodes:
            return 1
        texts = (question.budget - before) / statistics.median(decodes)
        # Halving takes about four repetitions for each that enters, and half as many enter without
        # the draft as with it; besides there are those that stay.
        return max(1, math.floor((texts - 3 * _LEAST_FINAL) / 6))

    def _rank(
        self, speeds: Mapping[Candidate, float], best: float, candidate: Candidate
    ) -> tuple[int, int, float]:
        """Who enters first: the fastest; of those that are close, whose settings change least."""
        changes, *_ = complexity(candidate, self._question)
        return -round(speeds[candidate] / best / _STEP), changes, -speeds[candidate]

    def _failure(self, candidate: Candidate) -> str | None:
        for repetition in self._known.attempts(candidate):
            if (why := self._known.failure(Decode(candidate, repetition))) is not None:
                return why
        return None

    def _missing(self, cohort: Sequence[Candidate], repetitions: int) -> Trial | None:
        """The first repetition that one of the cohort lacks; each begins with another one."""
        for repetition in range(repetitions):
            first = repetition % len(cohort)
            for candidate in (*cohort[first:], *cohort[:first]):
                if (trial := Decode(candidate, repetition)) not in self._known:
                    return trial
        return None

    def _rivals(self, cohort: Iterable[Candidate]) -> list[list[Candidate]]:
        """A cohort by kind, without those that stay."""
        rivals = [each for each in cohort if each not in self._defaults]
        return [[each for each in rivals if each.kind == kind] for kind in KINDS]

    def _better_half(self, cohort: Sequence[Candidate]) -> list[Candidate]:
        kept = [each for each in cohort if each in self._defaults]
        for of_kind in self._rivals(cohort):
            kept += self._standings.order(of_kind)[: math.ceil(len(of_kind) / 2)]
        return kept

    def _clear(self, cohort: Sequence[Candidate]) -> bool:
        """Whether another repetition would hardly change a thing."""
        order = self._standings.order(cohort)
        if not order:
            # No text had a second token: nothing can be told, however often it is decoded.
            return True
        best, *others = order
        return all(is_clear(self._standings.ratios(each, best)) for each in others)


def _cannot_win(speed: float, best: float) -> bool:
    return speed * (1 + DOUBT) < best * (1 - DOUBT)
