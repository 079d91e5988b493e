"""A loaded pair, as callers see it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from tokforge_engine import errors
from tokforge_engine.bundle_check import check_bundle
from tokforge_engine.costs import Costs
from tokforge_engine.errors import (
    BundleDamaged,
    EngineCrashed,
    EngineError,
    InvalidRequest,
    TooLittleMemory,
)
from tokforge_engine.free_memory import free_bytes
from tokforge_engine.generation import GenerateOptions, Message, Piece, Result, Scored
from tokforge_engine.memory import EXPECTED_TOKENS, needed_by
from tokforge_engine.messages import (
    Begun,
    Cancel,
    Failed,
    Finished,
    Generate,
    Load,
    LoadModel,
    Part,
    Prefilled,
    Ready,
    Score,
    Scores,
)
from tokforge_engine.process import WorkerProcess
from tokforge_engine.settings import MAX_D, ModelSpec, Numerics

_LOAD_SECONDS = 8.0
_SLOWEST_READ = 20e6
# Longer than any forward; what shows no sign of life for so long (a template that loops) is ended.
_SILENCE_SECONDS = 120.0


class Session:
    """A target, perhaps with a draft, loaded in a process of its own.

    >>> from tokforge_engine import ModelSpec, Session        # doctest: +SKIP
    >>> with Session(ModelSpec(target), ModelSpec(draft)) as session:
    ...     for piece in session.generate("Tell me of the sea."):
    ...         print(piece.text, end="")

    Args:
        target: decides every token.
        draft: guesses; None for plain decoding.
        lookup: whether tokens may also be drafted from the context, without a model.
        learned: a file that keeps what ``auto`` learns about this pair from session to session. It
            is made where it is not, and does no harm where it cannot be read or written.
        max_d: the largest draft length that a request may ask for or ``auto`` may pick. Each
            length is prepared at load, which costs a forward's time and some memory.
        numerics: ``fast``, or at a cost ``exact`` or ``reference``, where paired text is plain
            text; see `tokforge_engine.settings.Numerics`.
        load_timeout: seconds from the worker's start to its readiness; by default 8 and one for
            each 20 MB of weights.
        force: load it also where memory seems too small for it.

    Raises:
        TooLittleMemory: the models need more memory than is free.
        BundleDamaged: a bundle is not whole.
        Incompatible: the draft's vocabulary is another, or the target cannot verify.
        EngineUnavailable: MNN is not installed here.
        EngineCrashed: the process died or hung.
    """

    def __init__(
        self,
        target: ModelSpec,
        draft: ModelSpec | None = None,
        *,
        lookup: bool = False,
        learned: Path | None = None,
        max_d: int = 7,
        numerics: Numerics = "fast",
        load_timeout: float | None = None,
        force: bool = False,
    ) -> None:
        if not 0 <= max_d <= MAX_D:
            raise InvalidRequest(f"max_d expected 0 to {MAX_D}, got {max_d}")
        if numerics == "reference":
            target, draft = _in_reference(target), _in_reference(draft) if draft else None
        load = Load(
            _checked(target),
            _checked(draft) if draft else None,
            lookup,
            # The worker lives in another directory.
            learned.absolute() if learned else None,
            max_d,
            numerics,
        )
        self._needed_bytes = needed_by(load)
        if not force:
            _refuse_what_is_too_large(load, self._needed_bytes)
        if load_timeout is None:
            models = filter(None, (load.target, load.draft))
            size = sum(model.bundle.shape.weight_bytes for model in models)
            load_timeout = _LOAD_SECONDS + size / _SLOWEST_READ
        self._max_d = max_d
        self._requests = 0
        self._running: Generation | None = None
        self._closed = False
        self._worker = WorkerProcess()
        try:
            self._worker.send(load)
            report = self._worker.receive(load_timeout)
            if isinstance(report, Failed):
                raise _error(report)
            assert isinstance(report, Ready)
            self._costs = report.costs
        except EngineError:
            self._worker.end()
            for model in filter(None, (target, draft)):
                _say_if_it_changed(model)
            raise
        except BaseException:
            self._worker.end()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._worker.pid

    @property
    def alive(self) -> bool:
        """Whether the worker runs; a session whose worker has ended answers nothing more."""
        return self._worker.alive

    @property
    def needed_bytes(self) -> int:
        """Bytes of memory that the worker was expected to take at its peak."""
        return self._needed_bytes

    @property
    def max_d(self) -> int:
        """The largest draft length that a request may ask for."""
        return self._max_d

    @property
    def costs(self) -> Costs | None:
        """What forwards of the pair took at load; None where nothing can be guessed."""
        return self._costs

    def close(self) -> None:
        """End the process, at the latest after half a second. May be called again."""
        self._closed = True
        self._worker.end()

    def generate(
        self,
        prompt: str | Sequence[Message],
        options: GenerateOptions | None = None,
        *,
        on_prefill: Callable[[int, int], None] | None = None,
    ) -> Generation:
        """Answer a prompt, through the bundle's chat template.

        What the caches hold from earlier requests is not read again: in a chat that goes on, only
        the new message is.

        Args:
            prompt: what the user says, or a whole chat.
            options: greedy, at most 512 tokens, d = 3, unless given.
            on_prefill: called while a long prompt is read, with the tokens done and in all.

        Returns:
            An iterator of pieces; its `result` is there after the last. An earlier generation
            that is still running is cancelled.

        Raises:
            InvalidRequest: an option is out of range (other faults show at the first piece).
        """
        options = options or GenerateOptions()
        if options.d != "auto" and options.d > self._max_d:
            raise InvalidRequest(f"d expected 0 to {self._max_d} in this session, got {options.d}")
        chat = self._next(prompt)
        self._running = Generation(
            self._worker, Generate(self._requests, chat, options), on_prefill
        )
        return self._running

    def score(
        self,
        prompt: str | Sequence[Message],
        token_ids: Sequence[int],
        among: Sequence[Sequence[int]] | None = None,
    ) -> tuple[Scored, ...]:
        """What the target thinks of an answer, read in wide forwards from an empty cache.

        Args:
            prompt: as for `generate`.
            token_ids: the answer, at least one id.
            among: for each of its places the ids to tell about; the 64 likeliest unless given.

        Raises:
            InvalidRequest: there is nothing to score, or it is longer than the context.
            EngineError: an id is outside the vocabulary, or the model failed.
        """
        if not token_ids or (among is not None and len(among) != len(token_ids)):
            raise InvalidRequest("a score expected an answer, and ids for each of its places")
        chat = self._next(prompt)
        places = None if among is None else tuple(map(tuple, among))
        self._worker.send(Score(self._requests, chat, tuple(token_ids), places))
        while True:
            report = self._worker.receive(_SILENCE_SECONDS, of_silence=True)
            if getattr(report, "request", None) != self._requests:
                continue
            if isinstance(report, Failed):
                raise _error(report)
            if isinstance(report, Scores):
                return report.scored

    def _next(self, prompt: str | Sequence[Message]) -> tuple[Message, ...]:
        """The chat of a new request; one that still runs is cancelled."""
        if self._closed:
            raise InvalidRequest("the session is closed")
        if not self._worker.open:
            raise EngineCrashed("the engine of this session has ended", hint="open a new session")
        chat = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
        if not chat:
            raise InvalidRequest("the prompt has no messages")
        if self._running is not None:
            self._running.close()
        self._requests += 1
        return chat


class Generation(Iterator[Piece]):
    """A running answer: iterate for its pieces, then read `result`.

    Closing it early cancels the generation within one round, and the session stays usable.
    Asking the session for another generation does the same.
    """

    def __init__(
        self,
        worker: WorkerProcess,
        order: Generate,
        on_prefill: Callable[[int, int], None] | None = None,
    ) -> None:
        self._result: Result | None = None
        self._in_thought = False
        self._on_prefill = on_prefill
        self._worker = worker
        self._request = order.request
        self._pieces = self._run(worker, order)

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> Piece:
        return next(self._pieces)

    @property
    def result(self) -> Result:
        """The finished answer.

        Raises:
            EngineError: it was not read to its end.
        """
        if self._result is None:
            raise EngineError("this generation has no result: it was not read to its end")
        return self._result

    @property
    def in_thought(self) -> bool:
        """Whether the text begins within a thought that the prompt opened; known at its start."""
        return self._in_thought

    def close(self) -> None:
        """Cancel, if it still runs."""
        self._pieces.close()

    def cancel(self) -> None:
        """As `close`, but from any thread, also while another waits for the next piece.

        That one's iteration then ends without a result, unless the answer was just finished.
        """
        with contextlib.suppress(EngineCrashed):
            self._worker.send(Cancel(self._request))

    def _run(self, worker: WorkerProcess, order: Generate) -> Generator[Piece, None, None]:
        worker.send(order)
        ended = False
        try:
            while True:
                report = worker.receive(_SILENCE_SECONDS, of_silence=True)
                if getattr(report, "request", None) != order.request:
                    # The rest of a request that was cancelled.
                    continue
                if isinstance(report, Part):
                    yield report.piece
                    continue
                if isinstance(report, Begun):
                    self._in_thought = report.in_thought
                    continue
                if isinstance(report, Prefilled):
                    if self._on_prefill is not None:
                        self._on_prefill(report.done, report.total)
                    continue
                ended = True
                if isinstance(report, Failed):
                    raise _error(report)
                if isinstance(report, Finished):
                    self._result = report.result
                return
        except EngineCrashed:
            ended = True
            raise
        finally:
            if not ended:
                with contextlib.suppress(EngineCrashed):
                    worker.send(Cancel(order.request))


def _in_reference(spec: ModelSpec) -> ModelSpec:
    return replace(spec, settings=replace(spec.settings, memory="normal"))


def _checked(spec: ModelSpec) -> LoadModel:
    return LoadModel(spec.label, check_bundle(spec.path), spec.settings, spec.context_length)


def _say_if_it_changed(spec: ModelSpec) -> None:
    """Name the cause where a bundle that was whole a moment ago is so no longer.

    Raises:
        BundleDamaged: it is gone, or damaged.
    """
    try:
        check_bundle(spec.path)
    except BundleDamaged as damaged:
        raise BundleDamaged(
            f"{spec.label} was moved or changed while it was loaded: {damaged.message}",
            hint=damaged.hint,
        ) from None


def _refuse_what_is_too_large(load: Load, needed: int) -> None:
    free = free_bytes()
    if free is None or needed <= free:
        return
    who = load.target.label + (f" with {load.draft.label}" if load.draft else "")
    less = "without a draft (--draft none) it needs less; " if load.draft else ""
    raise TooLittleMemory(
        f"{who} would need about {needed / 1e6:,.0f} MB of memory, text of {EXPECTED_TOKENS:,} "
        f"tokens included; {free / 1e6:,.0f} MB are free",
        hint=f"end other programs; {less}--force loads it all the same",
    )


def _error(failed: Failed) -> EngineError:
    kind: type[EngineError] = getattr(errors, failed.error)
    return kind(failed.message, hint=failed.hint)
