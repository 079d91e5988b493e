"""One generation at a time, and a bounded line of those who wait.

A thread of its own runs the model; answers go to their requests as fast as they come, so a client
that reads slowly holds up nobody. When the engine's process dies, the pair is loaded again; the
request that ran hears of it, unless nothing of its answer was sent: then it is tried once more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Literal

from tokforge_engine import EngineCrashed, EngineError, Incompatible, InvalidRequest
from tokforge_models.errors import TokforgeError
from tokforge_models.serving.errors import (
    ApiError,
    BadRequest,
    Failed,
    QueueFull,
    ShuttingDown,
    TookTooLong,
    own_fault,
)
from tokforge_models.serving.served import Ended, RunningAnswer, Served

if TYPE_CHECKING:
    from tokforge_engine import GenerateOptions, Message, Piece

_LOG = logging.getLogger(__name__)
_MOST_RETRY_SECONDS = 60
# Of the mean duration of an answer, what the latest one counts.
_LATEST = 0.2
_STOP_SECONDS = 0.5


class Ticket:
    """A place in the line, and then a running answer.

    Args:
        chat: the messages.
        options: how to answer.
        loop: where its events are read.

    Attributes:
        since: when it was taken, on the monotonic clock.
        timer: ends it when its time is over.
        told: whether something of its answer was handed out.
        in_thought: whether its text begins within a thought; known with its first event.
    """

    def __init__(
        self,
        chat: Sequence[Message],
        options: GenerateOptions,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.chat = chat
        self.options = options
        self.since = time.monotonic()
        self.timer: asyncio.TimerHandle | None = None
        self.told = False
        self.in_thought = False
        self._loop = loop
        self._events: asyncio.Queue[Piece | Ended | Exception] = asyncio.Queue()
        self._lock = threading.Lock()
        self._answer: RunningAnswer | None = None
        self._over = False

    async def events(self) -> AsyncIterator[Piece | Ended]:
        """Pieces, and at last how it ended.

        Raises:
            ApiError: it is not answered, or not to its end.
            ClientGone: it was cancelled because of that.
        """
        while True:
            event = await self._events.get()
            if isinstance(event, Exception):
                raise event
            yield event
            if isinstance(event, Ended):
                return

    def begin(self, answer: RunningAnswer) -> None:
        """It runs now; called in the model's thread."""
        with self._lock:
            self._answer = answer
            over = self._over
        if over:
            answer.cancel()

    def tell(self, event: Piece | Ended | Exception) -> None:
        """Hand out an event; called in the model's thread."""
        self.told = True
        # The loop may have ended while the model finished its round.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._put, event)

    def end(self, why: Exception) -> None:
        """Stop it at once, within one round where it runs; called in the loop's thread."""
        self._put(why)
        self.leave()
        with self._lock:
            self._over = True
            answer = self._answer
        if answer is not None:
            answer.cancel()

    @property
    def over(self) -> bool:
        """Whether it was ended."""
        with self._lock:
            return self._over

    def leave(self) -> None:
        """Its time does not run any more."""
        if self.timer is not None:
            self.timer.cancel()

    def _put(self, event: Piece | Ended | Exception) -> None:
        if not self._over:
            self._events.put_nowait(event)


class Queue:
    """Serves one pair.

    Args:
        open_pair: loads what is served; called again after a crash.
        most_waiting: how many requests may wait while one runs.
        seconds: how long a request may take, its wait included.
        grace: seconds that a cancelled answer has to end before its process is ended.
        on_restart: called when the pair was loaded again.
    """

    def __init__(
        self,
        open_pair: Callable[[], AbstractContextManager[Served]],
        *,
        most_waiting: int,
        seconds: float,
        grace: float = 5.0,
        on_restart: Callable[[], None] = lambda: None,
    ) -> None:
        self._open_pair = open_pair
        self._most_waiting = most_waiting
        self._seconds = seconds
        self._grace = grace
        self._on_restart = on_restart
        self._stack = ExitStack()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._served: Served | None = None
        self._told: Served | None = None
        self._waiting: deque[Ticket] = deque()
        self._current: Ticket | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._failed = False
        self._mean_seconds = 1.0

    def __enter__(self) -> Queue:
        """Load the pair.

        Raises:
            TokforgeError, EngineError: it cannot be loaded.
        """
        self._load()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        # A model that still computes ends with its process.
        self._unload()
        self._thread.shutdown()
        # One that was being loaded is loaded now.
        self._unload()

    @property
    def served(self) -> Served:
        """What is served; while it is loaded again, what was."""
        assert self._told is not None
        return self._told

    @property
    def state(self) -> Literal["ok", "loading", "failed", "stopping"]:
        """Whether a request would be answered, and why not.

        Where the pair could not be loaded again (failed), the next request is another try.
        """
        if self._stopped:
            return "stopping"
        if self._served is not None:
            return "ok"
        return "failed" if self._failed else "loading"

    @property
    def running(self) -> bool:
        """Whether an answer is being made."""
        return self._current is not None

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn."""
        return len(self._waiting)

    def ask(self, chat: Sequence[Message], options: GenerateOptions) -> Ticket:
        """Take a place in the line.

        Raises:
            QueueFull, ShuttingDown: there is none.
        """
        self.check_room()
        loop = asyncio.get_running_loop()
        ticket = Ticket(chat, options, loop)
        late = TookTooLong(f"the answer was not ready within {self._seconds:g} s")
        ticket.timer = loop.call_later(self._seconds, self.cancel, ticket, late)
        self._waiting.append(ticket)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work())
        return ticket

    def check_room(self) -> None:
        """Whether there is a place in the line.

        Raises:
            QueueFull: all are taken.
            ShuttingDown: no more answers are begun.
        """
        if self._stopped:
            raise ShuttingDown("the server is shutting down")
        if len(self._waiting) >= self._most_waiting + (self._current is None):
            seconds = self._mean_seconds * (len(self._waiting) + 1)
            raise QueueFull(
                f"one answer is being made and {len(self._waiting)} requests wait, which is all "
                "that may",
                retry_after=max(1, min(_MOST_RETRY_SECONDS, round(seconds))),
            )

    def cancel(self, ticket: Ticket, why: Exception) -> None:
        """End a ticket, whether it waits, runs or is over."""
        with contextlib.suppress(ValueError):
            self._waiting.remove(ticket)
        ticket.end(why)
        if ticket is self._current:
            asyncio.get_running_loop().call_later(self._grace, self._insist, ticket)

    def _insist(self, ticket: Ticket) -> None:
        """A cancel is read between rounds, and a hostile grammar can make one without end."""
        if ticket is self._current and self._served is not None:
            asyncio.get_running_loop().run_in_executor(None, self._served.model.close)

    async def stop(self) -> None:
        """End what runs and waits, and begin nothing more."""
        self._stopped = True
        for ticket in (*self._waiting, *filter(None, [self._current])):
            self.cancel(ticket, ShuttingDown("the server is shutting down"))
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_STOP_SECONDS)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            ticket = self._current = self._waiting.popleft()
            began = time.monotonic()
            try:
                await loop.run_in_executor(self._thread, self._answer, ticket)
            finally:
                self._current = None
                ticket.leave()
            self._mean_seconds += _LATEST * (time.monotonic() - began - self._mean_seconds)

    def _answer(self, ticket: Ticket) -> None:
        """Answer one request; in the model's thread."""
        try:
            try:
                self._run(ticket)
            except EngineCrashed:
                if ticket.told or ticket.over:
                    raise
                # The process may have died while nobody asked anything of it.
                self._run(ticket)
        except ApiError as failed:
            ticket.tell(failed)
        except (InvalidRequest, Incompatible) as refused:
            ticket.tell(BadRequest(refused.message))
        except EngineCrashed as crashed:
            ticket.tell(Failed(crashed.message, code="engine_crashed"))
            with contextlib.suppress(ShuttingDown):
                self._load_again()
        except EngineError as failed:
            ticket.tell(Failed(failed.message, code="engine_failed"))
        except Exception as fault:  # noqa: BLE001 - its request must hear of whatever it is
            ticket.tell(own_fault(fault))

    def _run(self, ticket: Ticket) -> None:
        served = self._served
        if served is None or not served.model.alive:
            served = self._load_again()
        waited = time.monotonic() - ticket.since
        answer = served.model.generate(ticket.chat, ticket.options)
        ticket.begin(answer)
        for piece in answer:
            ticket.in_thought = answer.in_thought
            ticket.tell(piece)
        ticket.tell(Ended(answer.result, waited))

    def _load(self) -> Served:
        self._served = self._told = self._stack.enter_context(self._open_pair())
        return self._served

    def _load_again(self) -> Served:
        if self._stopped:
            raise ShuttingDown("the server is shutting down")
        self._failed = False
        try:
            self._unload()
            served = self._load()
        except (TokforgeError, EngineError) as error:
            why = error.message
        except Exception as fault:  # noqa: BLE001 - those who wait must hear of whatever it is
            why = own_fault(fault).message
        else:
            self._on_restart()
            return served
        self._failed = True
        _LOG.error("the models cannot be loaded: %s", why)
        raise ShuttingDown(f"the models cannot be loaded: {why}")

    def _unload(self) -> None:
        self._served = None
        self._stack.close()
