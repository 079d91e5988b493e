"""One request from its order to its last byte: as a document, or as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from starlette.responses import Response

from tokforge_models.serving.errors import ApiError, ClientGone, own_fault
from tokforge_models.serving.reading import ChatReader, Reading, TextReader
from tokforge_models.serving.served import Ended
from tokforge_models.serving.telling import Clock

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from tokforge_engine import Piece
    from tokforge_models.serving.answered import Answered
    from tokforge_models.serving.metrics import Metrics
    from tokforge_models.serving.orders import Order
    from tokforge_models.serving.queue import Queue, Ticket
    from tokforge_models.serving.telling import Teller

    Events = AsyncIterator[Piece | Ended]

_DONE = "data: [DONE]\n\n"
_EVENTS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class AnswerResponse(Response):
    """The response to an order.

    The status is sent with the first piece, so what goes wrong before has a status of its own;
    afterwards an error is an event, with which the stream ends. A client that goes away ends the
    generation within one round.

    Args:
        queue: where to wait.
        order: what to do.
        reader: understands what the model says.
        teller: says it to the client.
        metrics: what is counted.
    """

    def __init__(
        self,
        queue: Queue,
        order: Order,
        reader: ChatReader | TextReader,
        teller: Teller,
        metrics: Metrics,
    ) -> None:
        super().__init__()
        self._queue = queue
        self._order = order
        self._reader = reader
        self._teller = teller
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer.

        Raises:
            ApiError: nothing was sent yet.
        """
        ticket = self._queue.ask(self._order.chat, self._order.options)
        watcher = asyncio.create_task(self._watch(receive, ticket))
        try:
            events = self._begun(self._metrics.watched(ticket), ticket)
            if self._order.stream:
                await self._stream(events, send)
            else:
                response = Response(await self._document(events), media_type="application/json")
                await response(scope, receive, send)
        except ClientGone:
            return
        finally:
            watcher.cancel()
            self._queue.cancel(ticket, ClientGone())

    async def _begun(self, events: Events, ticket: Ticket) -> Events:
        first = True
        async for event in events:
            if first:
                self._reader.begin(ticket.in_thought)
                first = False
            yield event

    async def _watch(self, receive: Receive, ticket: Ticket) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._queue.cancel(ticket, ClientGone())

    async def _document(self, events: Events) -> str:
        readings: list[Reading] = []
        async for event in events:
            if isinstance(event, Ended):
                whole = Reading.joined([*readings, self._reader.finish()])
                return self._teller.whole(whole, event, called=self._reader.called).to_json()
            readings.append(self._reader.read(event))
        raise AssertionError("events end with how it ended")

    async def _stream(self, events: Events, send: Send) -> None:
        begun = False
        clock = Clock()
        try:
            async for event in events:
                chunks = self._chunks(event, clock)
                if not begun:
                    await send(_head())
                    chunks = [*self._teller.begin(), *chunks]
                    begun = True
                if chunks:
                    await send(_body("".join(f"data: {each.to_json()}\n\n" for each in chunks)))
            await send(_body(_DONE))
        except Exception as failed:
            if not begun or isinstance(failed, ClientGone):
                raise
            error = failed if isinstance(failed, ApiError) else own_fault(failed)
            await send(_body(f"data: {error.document()}\n\n"))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _chunks(self, event: Piece | Ended, clock: Clock) -> Sequence[Answered]:
        if isinstance(event, Ended):
            rest = self._reader.finish()
            last = [self._teller.part(rest, None)] if rest else []
            return [*last, *self._teller.end(event, called=self._reader.called)]
        reading = self._reader.read(event)
        live = clock.tick(event) if self._order.live_timings else None
        return [self._teller.part(reading, live)] if reading or live else []


def _head() -> dict[str, object]:
    headers = {"content-type": "text/event-stream; charset=utf-8", **_EVENTS}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": 200, "headers": pairs}


def _body(text: str) -> dict[str, object]:
    return {"type": "http.response.body", "body": text.encode(), "more_body": True}
