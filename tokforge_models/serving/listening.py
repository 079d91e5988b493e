"""Sockets, signals and patience: uvicorn with an end to every wait.

uvicorn waits without limit for a request's head, for the rest of a body that was answered before
it came, and for a client that does not read. Here each has its time, after which the connection is
cut, as is every connection beyond those that there may be; and a signal ends running answers before
connections are waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tokforge_models.errors import UsageError
from tokforge_models.serving.errors import BadRequest
from tokforge_models.serving.security import CAREFUL_HEADERS, MAX_HEAD_BYTES

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from tokforge_models.serving.queue import Queue

_HEAD_SECONDS = 10.0
_READ_SECONDS = 30.0
_REST_SECONDS = 30.0
_GRACE_SECONDS = 1
_MOST_CONNECTIONS = 512
# asyncio accepts so many at a time before the first of them can be cut.
_BACKLOG = 64
# For the bundles' files, the engine's worker and what else the process has open.
_OTHER_FILES = 64


class Patient(H11Protocol):
    """A connection that is cut when its client keeps it waiting."""

    head_seconds = _HEAD_SECONDS
    read_seconds = _READ_SECONDS
    rest_seconds = _REST_SECONDS

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._rest_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A head is expected from now on, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            transport.abort()
            return
        self._head_timer = self.loop.call_later(self.head_seconds, transport.abort)

    def data_received(self, data: bytes) -> None:
        """A head may be complete now, or have begun."""
        super().data_received(data)
        if self.conn.our_state is not h11.DONE:
            _stop(self._rest_timer)
        if self.conn.their_state is not h11.IDLE:
            _stop(self._head_timer)
            self._head_timer = None
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self.transport.abort)

    def on_response_complete(self) -> None:
        """What is still to come of the request is read, so that its client sees the answer."""
        more_comes = self.conn.their_state is h11.SEND_BODY
        super().on_response_complete()
        if more_comes and not self.transport.is_closing():
            self._rest_timer = self.loop.call_later(self.rest_seconds, self.transport.abort)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - it says less than ours
        """Refuse what is no HTTP in the API's shape, where no answer was begun before."""
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.close()
            return
        refused = BadRequest("expected HTTP/1.1 with a head of at most 64 KiB")
        body = refused.document().encode()
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
            *CAREFUL_HEADERS.items(),
        ]
        response = h11.Response(status_code=refused.status, headers=headers, reason=b"Bad Request")
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        """The client does not read what was sent."""
        super().pause_writing()
        _stop(self._read_timer)
        self._read_timer = self.loop.call_later(self.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It does again."""
        _stop(self._read_timer)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        for timer in (self._head_timer, self._read_timer, self._rest_timer):
            _stop(timer)
        super().connection_lost(exc)


def most_connections() -> int:
    """As many as leave files to open for what else this process does."""
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return _MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(1, min(_MOST_CONNECTIONS, files - _BACKLOG - _OTHER_FILES))


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class Server(uvicorn.Server):
    """Ends on a signal within a second or two, whatever runs."""

    def __init__(self, config: uvicorn.Config, queue: Queue) -> None:
        super().__init__(config)
        self._queue = queue

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Running answers end with an error first, so that their clients hear of it."""
        await self._queue.stop()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn, but a signal that ended the server does not end the process once more."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any that is free.

    Raises:
        UsageError: the address cannot be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        # After it, `create_server` says the address once more.
        raise UsageError(
            f"cannot listen at {host} port {port}: {reason.partition(' (while ')[0]}",
            hint="another --port or --host",
        ) from None


def address(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server(app: ASGIApp, queue: Queue) -> Server:
    """A server, to be given sockets; `run` of it serves until a signal."""
    # uvicorn would log what clients send; what went wrong is told by `security.Guard`.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app,
        http=Patient,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )
    return Server(config, queue)
