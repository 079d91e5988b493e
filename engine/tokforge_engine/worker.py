"""The process that MNN lives in.

Started by `tokforge_engine.process` in a private directory, which is also where MNN's files and
the log go. Orders come on standard input and reports leave on what was standard output; then file
descriptors 1 and 2 become the log, since MNN and its libraries print there as they like. When its
parent closes the stream or dies, it ends.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import sys
import threading
import traceback
from functools import partial
from pathlib import Path
from typing import IO

from tokforge_engine import messages
from tokforge_engine.answering import Pair
from tokforge_engine.errors import EngineError
from tokforge_engine.messages import Cancel, Failed, Generate, Load, Ready, Score
from tokforge_engine.process import LESS_MEMORY

_UNREADABLE = 3


class Orders:
    """Orders from the session, read by a thread of their own so that a cancel overtakes.

    Args:
        stream: where frames come from; its end ends the process.
        scratch: removed when the process ends this way, for then nobody else will.
    """

    def __init__(self, stream: IO[bytes], scratch: Path) -> None:
        self._stream = stream
        self._scratch = scratch
        self._queue: queue.SimpleQueue[Load | Generate | Score] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        threading.Thread(target=self._read, daemon=True).start()

    def next(self) -> Load | Generate | Score:
        """Wait for the next order."""
        return self._queue.get()

    def answered(self, request: int) -> None:
        """Forget what was said about a request."""
        self._cancelled.discard(request)

    def cancelled(self, request: int) -> bool:
        """Whether the session no longer wants this request."""
        return request in self._cancelled

    def _read(self) -> None:
        try:
            while isinstance(
                order := messages.read(self._stream), Load | Generate | Score | Cancel
            ):
                if isinstance(order, Cancel):
                    self._cancelled.add(order.request)
                else:
                    self._queue.put(order)
        except messages.BadMessage as error:
            # Nothing that follows can be understood either; the session sees the process end.
            print(f"an order cannot be read: {error}", file=sys.stderr, flush=True)  # noqa: T201
            os._exit(_UNREADABLE)
        shutil.rmtree(self._scratch, ignore_errors=True)
        # The main thread may be inside MNN, where nothing else would reach it.
        os._exit(0)


def _failure(request: int | None, error: Exception) -> Failed:
    if isinstance(error, EngineError):
        return Failed(request, type(error).__name__, error.message, error.hint)
    if isinstance(error, MemoryError):
        return Failed(request, "EngineError", "the engine ran out of memory", LESS_MEMORY)
    if isinstance(error, OSError) and error.filename:
        what = f"{error.filename} cannot be read any more ({error.strerror})"
        return Failed(request, "EngineError", what, "tokforge verify --full looks at its bundle")
    traceback.print_exception(error)
    what = f"the engine met a fault of its own ({type(error).__name__}: {error})"
    return Failed(request, "EngineError", what, "please report it, with the log")


def serve(orders: Orders, scratch: Path, reports: IO[bytes]) -> None:
    """Load what the first order says and answer the others, until the stream ends."""
    load = orders.next()
    assert isinstance(load, Load)
    try:
        pair = Pair(load, scratch, partial(messages.write, reports))
    except Exception as error:  # noqa: BLE001 - the session must hear of whatever it is
        messages.write(reports, _failure(None, error))
        return
    messages.write(reports, Ready(pair.costs))
    while not isinstance(order := orders.next(), Load):
        try:
            if isinstance(order, Score):
                pair.score(order)
            else:
                pair.answer(order, partial(orders.cancelled, order.request))
        except Exception as error:  # noqa: BLE001
            messages.write(reports, _failure(order.request, error))
        orders.answered(order.request)


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
