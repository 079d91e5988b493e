"""Sockets, signals and patience: uvicorn with an end to every wait.

uvicorn waits without limit for a request's head and for a client that does not read. Here both
have their time, after which the connection is cut; and a signal ends running answers before
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

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from tokforge_models.serving.queue import Queue

_HEAD_SECONDS = 10.0
_READ_SECONDS = 30.0
_GRACE_SECONDS = 1
_MOST_CONNECTIONS = 512
_MOST_HEAD_BYTES = 64 * 2**10


class Patient(H11Protocol):
    """A connection that is cut when its client keeps it waiting."""

    head_seconds = _HEAD_SECONDS
    read_seconds = _READ_SECONDS

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A head is expected from now on."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self.head_seconds, transport.abort)

    def data_received(self, data: bytes) -> None:
        """A head may be complete now, or have begun."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            _stop(self._head_timer)
            self._head_timer = None
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self.transport.abort)

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
        _stop(self._head_timer)
        _stop(self._read_timer)
        super().connection_lost(exc)


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
        raise UsageError(
            f"cannot listen at {host} port {port}: {reason}", hint="another --port or --host"
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
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=_MOST_HEAD_BYTES,
    )
    return Server(config, queue)
