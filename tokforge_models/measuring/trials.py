"""What tune can try, and what came of it: values. Nothing here runs or decides anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

from tokforge_engine.costs import Costs
from tokforge_models.bundle import Settings
from tokforge_models.measuring.plan import AUTO, LOOKUP, PLAIN, Way

LENGTHS = (1, 2, 3, 4, 5, 6, 7)
"""Draft lengths that are tried; ``auto`` picks among them too."""

Kind = Literal["paired", "alone"]


@dataclass(frozen=True, slots=True)
class Setup:
    """Models as they are loaded.

    Attributes:
        target: settings of the target.
        draft: settings of the draft; None for the target alone.
    """

    target: Settings
    draft: Settings | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setup with a way of decoding: what tune chooses among."""

    setup: Setup
    way: Way

    @property
    def kind(self) -> Kind:
        """Whether a draft model takes part."""
        return "alone" if self.way.drafter in {"none", "lookup"} else "paired"


@dataclass(frozen=True, slots=True)
class Judge:
    """Read texts with the target alone, in one number format: how far is it from the reference?"""

    target: Settings


@dataclass(frozen=True, slots=True)
class Load:
    """Load a setup: what do its forwards cost? Repetitions are counted from 0."""

    setup: Setup
    repetition: int = 0


@dataclass(frozen=True, slots=True)
class Decode:
    """Decode all texts with one candidate; repetitions are counted from 0."""

    candidate: Candidate
    repetition: int


Trial = Judge | Load | Decode


@dataclass(frozen=True, slots=True)
class Judged:
    """What `Judge` found.

    Attributes:
        divergence: from the reference, in nats a token.
        digest: the same for formats that compute the same numbers.
        verify: seconds of the target's forward of 1, 2, ... tokens, the target alone in memory.
    """

    divergence: float
    digest: str
    verify: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What `Load` found."""

    costs: Costs


@dataclass(frozen=True, slots=True)
class Cell:
    """The texts of one workload, decoded once.

    Attributes:
        workload: its name.
        tokens: emitted after the first of each text.
        seconds: of decoding.
        drafted: guesses that were verified, by place in the draft; only of `Question.probe`.
        accepted: how many of them were kept.
    """

    workload: str
    tokens: int
    seconds: float
    drafted: tuple[int, ...] = ()
    accepted: tuple[int, ...] = ()

    @property
    def speed(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds


@dataclass(frozen=True, slots=True)
class Decoded:
    """What `Decode` found; a workload without a second token is left out."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A trial that could not be made, and why."""

    why: str


Outcome = Judged | Loaded | Decoded | Failed


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial that was made.

    Attributes:
        trial: what was tried.
        outcome: what came of it.
        seconds: that it took, loading included.
    """

    trial: Trial
    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class Question:
    """What tune is asked.

    Attributes:
        shipped: the pair as it would run without a profile.
        lookup: whether the context may draft.
        reference: settings of the target whose numbers count as right.
        formats: other number formats and backends of the target, with `shipped`'s other settings.
        threads: thread counts to try.
        limit: largest divergence from the reference; None for no worse than shipped.
        budget: seconds that all trials together may take.
    """

    shipped: Setup
    lookup: bool
    reference: Settings
    formats: tuple[Settings, ...]
    threads: tuple[int, ...]
    limit: float | None
    budget: float

    @property
    def base(self) -> Candidate:
        """As it runs without a profile; everything is held against it."""
        if self.shipped.draft is not None:
            return Candidate(self.shipped, AUTO if self.lookup else Way("model", "auto"))
        return Candidate(self.shipped, LOOKUP if self.lookup else PLAIN)

    @property
    def plain(self) -> Candidate:
        """The target as shipped, decoding plain; it is held against the others to the end too."""
        return Candidate(Setup(self.shipped.target), PLAIN)

    @property
    def probe(self) -> Candidate:
        """What tells how often guesses are kept at any length: the longest one."""
        return Candidate(self.shipped, Way("model", LENGTHS[-1]))

    @property
    def ways(self) -> tuple[Way, ...]:
        """Every way that a draft model takes part in, the usual ones first."""
        if self.shipped.draft is None:
            return ()
        autos = (AUTO, Way("model", "auto")) if self.lookup else (Way("model", "auto"),)
        return (*autos, *(Way("model", d) for d in LENGTHS))


class Known:
    """What was tried so far, by trial.

    Args:
        tried: in the order in which it was tried.
    """

    def __init__(self, tried: Iterable[Tried]) -> None:
        self.tried = tuple(tried)
        self._outcomes = {each.trial: each.outcome for each in self.tried}
        self._decodes: dict[Candidate, dict[int, Outcome]] = {}
        for each in self.tried:
            if isinstance(each.trial, Decode):
                turns = self._decodes.setdefault(each.trial.candidate, {})
                turns[each.trial.repetition] = each.outcome

    def __contains__(self, trial: Trial) -> bool:
        return trial in self._outcomes

    @property
    def spent(self) -> float:
        """Seconds of all trials."""
        return sum(each.seconds for each in self.tried)

    def judged(self, target: Settings) -> Judged | None:
        """How far a format is from the reference, if that is known."""
        found = self._outcomes.get(Judge(target))
        return found if isinstance(found, Judged) else None

    def failure(self, trial: Trial) -> str | None:
        """Why a trial failed; None where it did not, or was not made."""
        found = self._outcomes.get(trial)
        return found.why if isinstance(found, Failed) else None

    def loaded(self) -> dict[Setup, dict[int, Costs]]:
        """Costs of every setup that was loaded, by repetition."""
        found: dict[Setup, dict[int, Costs]] = {}
        for each in self.tried:
            if isinstance(each.trial, Load) and isinstance(each.outcome, Loaded):
                found.setdefault(each.trial.setup, {})[each.trial.repetition] = each.outcome.costs
        return found

    def decoded(self, candidate: Candidate, repetition: int) -> Decoded | None:
        """What one repetition of a candidate gave, if it was decoded."""
        found = self._outcomes.get(Decode(candidate, repetition))
        return found if isinstance(found, Decoded) else None

    def candidates(self) -> tuple[Candidate, ...]:
        """Whoever was decoded with, each once."""
        return tuple(self._decodes)

    def attempts(self, candidate: Candidate) -> tuple[int, ...]:
        """Repetitions of a candidate that were tried, whatever came of them."""
        return tuple(self._decodes.get(candidate, ()))

    def repetitions(self, candidate: Candidate) -> dict[int, Decoded]:
        """Everything that was decoded with a candidate, by repetition."""
        return {
            turn: outcome
            for turn, outcome in self._decodes.get(candidate, {}).items()
            if isinstance(outcome, Decoded)
        }


def with_threads(setup: Setup, threads: int) -> Setup:
    """Both models with so many threads; elsewhere than on the CPU the number means other things."""
    return Setup(
        replace(setup.target, threads=threads) if on_cpu(setup.target) else setup.target,
        replace(setup.draft, threads=threads) if setup.draft else None,
    )


def format_of(target: Settings) -> Settings:
    """What a target computes with: its settings but for threads."""
    return replace(target, threads=None)


def on_cpu(settings: Settings) -> bool:
    """Whether a model computes on the CPU, where a thread is a thread."""
    return settings.backend in {None, "cpu"}


def changed(settings: Settings, usual: Settings) -> tuple[str, ...]:
    """The settings that are not the usual ones, as people read them."""
    names = [field.name for field in fields(Settings)]
    return tuple(
        f"{name.replace('_', ' ')} {getattr(settings, name)}"
        for name in names
        if getattr(settings, name) != getattr(usual, name)
    )


def describe(candidate: Candidate, shipped: Setup) -> str:
    """A candidate in words: its way, and what is not as shipped."""
    target, draft = candidate.setup.target, candidate.setup.draft
    words = [candidate.way.name, *changed(target, shipped.target)]
    if draft is not None and shipped.draft is not None:
        words += [f"draft {change}" for change in changed(draft, shipped.draft)]
    return ", ".join(words)


def describe_trial(trial: Trial, shipped: Setup) -> str:
    """A trial in words."""
    match trial:
        case Judge(target):
            return f"number format: {_listed(changed(target, shipped.target))}"
        case Load(setup, repetition):
            words = list(changed(setup.target, shipped.target))
            if setup.draft is not None and shipped.draft is not None:
                words += [f"draft {change}" for change in changed(setup.draft, shipped.draft)]
            return f"costs ({repetition + 1}): {_listed(words)}"
        case Decode(candidate, repetition):
            return f"decoding ({repetition + 1}): {describe(candidate, shipped)}"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words) or "as shipped"
