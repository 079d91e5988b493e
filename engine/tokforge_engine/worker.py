"""The process that MNN lives in.

Started by `tokforge_engine.process` as ``python -m tokforge_engine.worker`` in a private
directory, which is also where MNN's files and the log go. Orders come on standard input and
reports leave on what was standard output; then file descriptors 1 and 2 become the log, since
MNN and its libraries print there as they like. When its parent closes the stream or dies, it ends.
"""

from __future__ import annotations

import os
import queue
import secrets
import shutil
import signal
import sys
import threading
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import IO

from tokforge_engine import messages
from tokforge_engine.auto import AutoPolicy
from tokforge_engine.choice import greedy
from tokforge_engine.costs import Costs, measure_costs
from tokforge_engine.decoding import Token, decode, prefill
from tokforge_engine.detokenizing import Detokenizer
from tokforge_engine.drafting import SCORED, DraftModel, likeliest
from tokforge_engine.errors import EngineError, Incompatible, InvalidRequest
from tokforge_engine.generation import FinishReason, GenerateOptions, Piece, Result
from tokforge_engine.lookup import Lookup
from tokforge_engine.messages import (
    Cancel,
    Cancelled,
    Failed,
    Finished,
    Generate,
    Load,
    LoadModel,
    Part,
    Phase,
    Prefilled,
    Ready,
    Report,
)
from tokforge_engine.mnn_model import MnnModel, first_difference
from tokforge_engine.policy import FixedLength, Policy
from tokforge_engine.sampler import Sampler
from tokforge_engine.sampling import MAX_SEED, Sampling
from tokforge_engine.statistics import Tally

# After the first, pieces go out at most this often: people do not see more, and each costs a
# message and a switch of processes.
_PIECE_SECONDS = 0.025


class Orders:
    """Orders from the session, read by a thread of their own so that a cancel overtakes.

    Args:
        stream: where frames come from; its end ends the process.
        scratch: removed when the process ends this way, for then nobody else will.
    """

    def __init__(self, stream: IO[bytes], scratch: Path) -> None:
        self._stream = stream
        self._scratch = scratch
        self._queue: queue.SimpleQueue[Load | Generate] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        threading.Thread(target=self._read, daemon=True).start()

    def next(self) -> Load | Generate:
        """Wait for the next order."""
        return self._queue.get()

    def cancelled(self, request: int) -> bool:
        """Whether the session no longer wants this request."""
        return request in self._cancelled

    def _read(self) -> None:
        while isinstance(order := messages.read(self._stream), Load | Generate | Cancel):
            if isinstance(order, Cancel):
                self._cancelled.add(order.request)
            else:
                self._queue.put(order)
        shutil.rmtree(self._scratch, ignore_errors=True)
        # The main thread may be inside MNN, where nothing else would reach it.
        os._exit(0)


class Pair:
    """A loaded target and its drafters.

    Raises:
        EngineError: as `MnnModel`; Incompatible where the vocabularies differ.
    """

    def __init__(self, load: Load, scratch: Path, reports: IO[bytes]) -> None:
        self._reports = reports
        self._target = self._load(
            load.target,
            scratch,
            widths=load.max_d + 1 if load.draft or load.lookup else 1,
            exact=load.numerics == "exact",
        )
        self._draft: DraftModel | None = None
        self._lookup = Lookup() if load.lookup else None
        draft = None
        if load.draft is not None:
            draft = self._load(load.draft, scratch)
            self._report(Phase(f"comparing the vocabularies of {load.target.label} and its draft"))
            token = first_difference(self._target, draft)
            if token is not None:
                raise Incompatible(
                    f"{load.draft.label} cannot draft for {load.target.label}: token {token} is "
                    f"{_shown(self._target.token_bytes(token))} to the target and "
                    f"{_shown(draft.token_bytes(token))} to the draft",
                    hint="tokforge resolve TARGET --explain names the draft that fits",
                )
            self._draft = DraftModel(
                draft, self._target.vocabulary, load.draft.label, scores=draft.prepare(SCORED)
            )
        self._costs: Costs | None = None
        if load.max_d and (draft is not None or load.lookup):
            self._report(Phase(f"measuring {load.target.label} and its draft"))
            self._costs = measure_costs(self._target, draft, load.max_d)
        self._autos: dict[str, AutoPolicy] = {}
        self._label = load.target.label

    def _load(
        self, model: LoadModel, scratch: Path, *, widths: int = 1, exact: bool = False
    ) -> MnnModel:
        self._report(Phase(f"loading {model.label} from {model.bundle.path}"))
        return MnnModel(
            model.bundle,
            model.settings,
            scratch,
            widths=widths,
            exact=exact,
            context_length=model.context_length,
        )

    def _report(self, report: Report) -> None:
        messages.write(self._reports, report)

    def answer(self, order: Generate, orders: Orders) -> None:
        """Answer one request, with `Prefilled`s, `Part`s and at the end `Finished` or `Cancelled`.

        Raises:
            InvalidRequest: the prompt is empty or leaves no room for an answer.
            EngineError: a model failed.
        """
        self._report(Phase(f"generating with {self._label}"))
        target, options = self._target, order.options
        policy = self._policy(options)
        prompt = target.prompt(order.messages)
        limit = self._room(len(prompt), options)
        sampling = _seeded(options.sampling)
        sampler = None
        if not sampling.is_plain_greedy:
            sampler = Sampler(sampling, prompt, target.vocabulary)
        if self._draft is not None:
            self._draft.choose = sampler.guess if sampler else likeliest
        target.rollback(0)
        for drafter in (self._draft, self._lookup):
            if drafter is not None:
                drafter.keep(0)
        tally = Tally()
        for done in prefill(target, prompt, tally):
            self._report(Prefilled(order.request, done, len(prompt)))
            if orders.cancelled(order.request):
                self._report(Cancelled(order.request))
                return
        text = Detokenizer(target.token_bytes, options.stop)
        pieces = _Pieces(order.request, self._reports)
        finish_reason: FinishReason = "length"
        tokens = decode(
            target,
            policy,
            prompt,
            limit=limit,
            is_stop=_never if options.ignore_stop_tokens else target.is_stop,
            tally=tally,
            choose=sampler or greedy,
        )
        ids: list[int] = []
        for token in tokens:
            if orders.cancelled(order.request):
                tokens.close()
                self._report(Cancelled(order.request))
                return
            if not options.ignore_stop_tokens and target.is_stop(token.id):
                finish_reason = "stop"
                break
            ids.append(token.id)
            pieces.add(text.add(token.id), token)
            if text.stopped:
                finish_reason = "stop"
                break
        tokens.close()
        pieces.add(text.finish())
        pieces.flush()
        result = Result(
            text=pieces.text,
            token_ids=tuple(ids),
            finish_reason=finish_reason,
            prompt_tokens=len(prompt),
            completion_tokens=len(ids),
            stats=tally.statistics(),
            seed=sampling.seed if sampling.draws else None,
        )
        self._report(Finished(order.request, result))

    def _policy(self, options: GenerateOptions) -> Policy:
        draft = self._draft if options.drafter != "lookup" else None
        lookup = self._lookup if options.drafter != "model" else None
        if options.d != "auto":
            return FixedLength(draft or lookup, options.d)
        if self._costs is None or (draft is None and lookup is None):
            return FixedLength()
        # What is learned belongs to a choice of drafters, and stays for the session.
        if options.drafter not in self._autos:
            self._autos[options.drafter] = AutoPolicy(self._costs, draft, lookup)
        return self._autos[options.drafter]

    def _room(self, prompt_tokens: int, options: GenerateOptions) -> int:
        context_length = self._target.context_length
        if context_length is None:
            return options.max_tokens
        if prompt_tokens >= context_length:
            raise InvalidRequest(
                f"the prompt is too long for {self._label}: expected at most "
                f"{context_length - 1} tokens, got {prompt_tokens}"
            )
        return min(options.max_tokens, context_length - prompt_tokens)


class _Pieces:
    """Collects what is certain and sends it, the first at once."""

    def __init__(self, request: int, reports: IO[bytes]) -> None:
        self._request = request
        self._reports = reports
        self._sent_at = float("-inf")
        self._new = ""
        self._tokens: list[Token] = []
        self._old: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._old)

    def add(self, text: str, *tokens: Token) -> None:
        self._new += text
        self._tokens += tokens
        if time.monotonic() - self._sent_at >= _PIECE_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._new or self._tokens:
            piece = Piece(self._new, tuple(self._tokens))
            messages.write(self._reports, Part(self._request, piece))
            self._old.append(self._new)
            self._new, self._tokens = "", []
            self._sent_at = time.monotonic()


def _seeded(sampling: Sampling) -> Sampling:
    if sampling.draws and sampling.seed is None:
        return replace(sampling, seed=secrets.randbelow(MAX_SEED))
    return sampling


def _never(_token: int) -> bool:
    return False


def _shown(text: bytes) -> str:
    return repr(text.decode(errors="backslashreplace"))


def _failure(request: int | None, error: Exception) -> Failed:
    if isinstance(error, EngineError):
        return Failed(request, type(error).__name__, error.message, error.hint)
    traceback.print_exception(error)
    what = f"the engine met a fault of its own ({type(error).__name__}: {error})"
    return Failed(request, "EngineError", what, "please report it, with the log")


def serve(orders: Orders, scratch: Path, reports: IO[bytes]) -> None:
    """Load what the first order says and answer the others, until the stream ends."""
    load = orders.next()
    assert isinstance(load, Load)
    try:
        pair = Pair(load, scratch, reports)
    except Exception as error:  # noqa: BLE001 - the session must hear of whatever it is
        messages.write(reports, _failure(None, error))
        return
    messages.write(reports, Ready())
    while isinstance(order := orders.next(), Generate):
        try:
            pair.answer(order, orders)
        except Exception as error:  # noqa: BLE001
            messages.write(reports, _failure(order.request, error))


def main() -> None:
    """Take over the standard streams, then serve."""
    # Ctrl+C reaches the whole group of a terminal; what follows from it is the session's to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _leave_no_core()
    scratch = Path.cwd()
    orders = os.fdopen(os.dup(0), "rb")
    reports = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    try:
        serve(Orders(orders, scratch), scratch, reports)
    except BrokenPipeError:
        # The session went away in the middle of a report; the thread above ends the process.
        threading.Event().wait()
    sys.stderr.flush()
    # MNN's own end is not needed, and has been seen to take long.
    os._exit(0)


def _leave_no_core() -> None:
    try:
        import resource
    except ImportError:
        return
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


if __name__ == "__main__":
    main()
