"""Make the trials of a search with real sessions, and keep what they share from one to the next.

A trial that fails, because a worker dies or there is too little memory, is an outcome like any
other. Sessions stay loaded as long as memory allows, so that candidates take turns at once; plain
decoding and lookup run in any session whose target has their settings, whatever draft it holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType

from tokforge_engine import (
    EngineError,
    EngineUnavailable,
    GenerateOptions,
    Session,
    TooLittleMemory,
)
from tokforge_models.bundle import Settings
from tokforge_models.errors import TokforgeError
from tokforge_models.measuring.plan import WARM_UP_TOKENS, Step, Way
from tokforge_models.measuring.quality import PROMPTS, Text, answer, distance, read_texts
from tokforge_models.measuring.report import Sample, added
from tokforge_models.measuring.runner import decode
from tokforge_models.measuring.trials import (
    Candidate,
    Cell,
    Decode,
    Decoded,
    Failed,
    Judge,
    Judged,
    Known,
    Load,
    Loaded,
    Outcome,
    Question,
    Setup,
    Trial,
    Tried,
)
from tokforge_models.measuring.workloads import Workload

LoadSetup = Callable[[Setup], AbstractContextManager[Session]]
"""Loads a setup with lookup, for draft lengths up to the longest."""

_SESSIONS = 4
# Answers that formats are judged on. Their places are read as prompts are, many at once.
_JUDGED_TOKENS = 40
# What one repetition of plain decoding should take, as far as its texts can be that short, and how
# much longer its forwards take than those at load, whose context is empty.
_SECONDS, _LONGER = 1.0, 1.5
_LEAST_TOKENS, _MOST_TOKENS = 16, 64


@dataclass(frozen=True, slots=True)
class Portion:
    """How much one repetition decodes: of each workload so many prompts, so many tokens each."""

    prompts: int
    tokens: int


def portion(second: float, workloads: Sequence[Workload]) -> Portion:
    """What one repetition shall decode where a plain forward took `second` seconds at load."""
    prompts = max(len(each.prompts) for each in workloads)
    second *= _LONGER
    if second * _LEAST_TOKENS * prompts * len(workloads) > _SECONDS:
        prompts = 1
    tokens = round(_SECONDS / (second * prompts * len(workloads)))
    return Portion(prompts, min(max(tokens, _LEAST_TOKENS), _MOST_TOKENS))


class Trier:
    """Makes trials; a context manager that ends its sessions.

    Args:
        question: what is tuned.
        load: loads a setup.
        workloads: what is decoded.
        known: what was tried before.
        clock: seconds from any fixed point, monotonic.
    """

    def __init__(
        self,
        question: Question,
        load: LoadSetup,
        workloads: Sequence[Workload],
        known: Known,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._question = question
        self._load = load
        self._workloads = workloads
        self._clock = clock
        self._open: dict[Setup, tuple[ExitStack, Session]] = {}
        self._warm: set[Candidate] = set()
        self._texts: tuple[Text, ...] = ()
        self._portion: Portion | None = None
        if costs := known.loaded().get(question.shipped):
            self._portion = portion(costs[min(costs)].verify[0], workloads)

    def __enter__(self) -> Trier:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close_all()

    def try_it(self, trial: Trial) -> Tried:
        """Make one trial.

        Raises:
            EngineUnavailable: MNN does not run here, so no trial can be made.
        """
        began = self._clock()
        try:
            outcome = self._outcome(trial)
        except EngineUnavailable:
            raise
        except (EngineError, TokforgeError) as error:
            outcome = Failed(_on_one_line(error.message))
            # The worker may be gone, and another one is what the next trial needs.
            self._close_all()
        return Tried(trial, outcome, self._clock() - began)

    def _outcome(self, trial: Trial) -> Outcome:
        match trial:
            case Judge(target):
                return self._judge(target)
            case Load(setup):
                # What a session has measured once does not change.
                if setup in self._open:
                    self._close(setup)
                return self._costs(setup)
            case Decode(candidate, _):
                return self._decode(candidate)

    def _judge(self, target: Settings) -> Judged:
        if not self._texts:
            shipped = self._session(Setup(self._question.shipped.target))
            options = GenerateOptions(max_tokens=_JUDGED_TOKENS, d=0)
            answers = [
                (text, answer(shipped.generate, text, options).token_ids) for text in PROMPTS
            ]
            with self._once(self._question.reference) as session:
                self._texts = read_texts(session.score, answers)
                if target == self._question.reference:
                    return self._judged(session)
        with self._once(target) as session:
            return self._judged(session)

    def _judged(self, session: Session) -> Judged:
        found = distance(session.score, self._texts)
        assert session.costs is not None
        return Judged(found.divergence, found.digest, session.costs.verify)

    def _costs(self, setup: Setup) -> Loaded:
        session = self._session(setup)
        assert session.costs is not None
        if self._portion is None:
            self._portion = portion(session.costs.verify[0], self._workloads)
        return Loaded(session.costs)

    def _decode(self, candidate: Candidate) -> Decoded:
        assert self._portion is not None
        session = self._session(candidate.setup)
        prompts = [
            (workload.name, text)
            for turn in range(self._portion.prompts)
            for workload in self._workloads
            for text in workload.prompts[turn : turn + 1]
        ]
        if candidate not in self._warm:
            name, text = min(prompts, key=lambda prompt: len(prompt[1]))
            self._sample(session, name, text, candidate.way, WARM_UP_TOKENS)
            self._warm.add(candidate)
        samples = [
            self._sample(session, name, text, candidate.way, self._portion.tokens)
            for name, text in prompts
        ]
        return decoded(samples, acceptance=candidate == self._question.probe)

    def _sample(self, session: Session, name: str, text: str, way: Way, tokens: int) -> Sample:
        return decode(session.generate, Step(0, name, 0, text, way), tokens, self._clock)

    @contextmanager
    def _once(self, target: Settings) -> Iterator[Session]:
        """The target alone, in a session that nothing else will need."""
        with ExitStack() as stack:
            yield self._entered(stack, Setup(target))

    def _session(self, setup: Setup) -> Session:
        for other, (_, session) in self._open.items():
            fits = other == setup or (setup.draft is None and other.target == setup.target)
            if fits and session.alive:
                # The one that was used last is the last to go.
                self._open[other] = self._open.pop(other)
                return session
        while len(self._open) >= _SESSIONS:
            self._close(next(iter(self._open)))
        with ExitStack() as stack:
            session = self._entered(stack, setup)
            self._open[setup] = stack.pop_all(), session
            return session

    def _entered(self, stack: ExitStack, setup: Setup) -> Session:
        try:
            return stack.enter_context(self._load(setup))
        except TooLittleMemory:
            if not self._open:
                raise
            self._close_all()
            return stack.enter_context(self._load(setup))

    def _close_all(self) -> None:
        for setup in list(self._open):
            self._close(setup)

    def _close(self, setup: Setup) -> None:
        stack, _ = self._open.pop(setup)
        self._warm -= {each for each in self._warm if each.setup.target == setup.target}
        stack.close()


def _on_one_line(text: str) -> str:
    """A message as files keep it."""
    visible = "".join(each if each.isprintable() else " " for each in text)
    return " ".join(visible.split()) or "it failed without a word"


def decoded(samples: Sequence[Sample], *, acceptance: bool) -> Decoded:
    """What texts tell together, by workload; on demand with what was kept of the guesses."""
    cells = []
    for name in dict.fromkeys(each.step.workload for each in samples):
        ours = [each.stats for each in samples if each.step.workload == name]
        guessing = ours if acceptance else []
        spoken = [stats for stats in ours if stats.emitted > 1]
        seconds = sum(stats.decode_seconds for stats in spoken)
        if seconds > 0:
            cells.append(
                Cell(
                    workload=name,
                    tokens=sum(stats.emitted - 1 for stats in spoken),
                    seconds=seconds,
                    drafted=added(stats.drafted_by_position for stats in guessing),
                    accepted=added(stats.accepted_by_position for stats in guessing),
                )
            )
    return Decoded(tuple(cells))
