"""Who may ask, by which name, how much and how slowly.

A server on a loopback address is reachable from every web page that the user visits. A page's
requests carry its own host name (also after DNS rebinding), cannot send JSON without the server's
consent, and may not read answers without it.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tokforge_models.serving.errors import (
    ApiError,
    BadRequest,
    ClientGone,
    Forbidden,
    HeadTooLarge,
    QueueFull,
    TooLarge,
    TooSlow,
    Unauthorized,
    WrongType,
    own_fault,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_HEAD_BYTES = 64 * 2**10
MAX_BODY_BYTES = 4 * 2**20
BODY_SECONDS = 30.0
# Of all requests that are being read at a time.
_MOST_BODIES_BYTES = 8 * MAX_BODY_BYTES

_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^:\[\]@/]+))(?::[0-9]*)?")
CAREFUL_HEADERS = {
    # The page's own files, and answers of this server: nothing from elsewhere, nothing inline,
    # and no text that is read as HTML.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask.

    Attributes:
        key: what a client must know; None lets everybody in.
        hosts: names by which the server may be called, besides localhost and any IP address.
        origins: web origins whose pages may read answers.
    """

    key: str | None = None
    hosts: frozenset[str] = frozenset()
    origins: tuple[str, ...] = ()


class Guard:
    """ASGI middleware: the head, headers that keep a browser careful, errors as answers.

    Nothing that a request holds is ever logged, so of a fault of our own only the kind and the
    place are.

    Args:
        app: raises `ApiError` before it begins a response.
        access: who may ask.
        responded: told of every response that begins, by the request's path and its status.
    """

    def __init__(self, app: ASGIApp, access: Access, responded: Callable[[str, int], None]) -> None:
        self._app = app
        self._access = access
        self._responded = responded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may pass."""
        begun = False

        async def careful(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                self._responded(scope["path"], message["status"])
                headers = MutableHeaders(scope=message)
                for name, value in CAREFUL_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            check_head(scope)
            check_host(Headers(scope=scope), self._access)
            await self._app(scope, receive, careful)
        except ClientGone:
            return
        except ApiError as refused:
            error: ApiError = refused
        except Exception as fault:  # noqa: BLE001 - no request may end the server or its silence
            error = own_fault(fault)
        else:
            return
        if not begun:
            await error_response(error)(scope, receive, careful)


def error_response(error: ApiError) -> Response:
    """An error as a response."""
    return Response(
        error.document(), error.status, headers=error.headers, media_type="application/json"
    )


def check_head(scope: Scope) -> None:
    """Refuse a head that is too large, or says in two ways where its body ends.

    A proxy that believed the other way would take the rest of the body for the next request.

    Raises:
        HeadTooLarge, BadRequest: it is.
    """
    size = len(scope["raw_path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) for name, value in scope["headers"])
    if size > MAX_HEAD_BYTES:
        raise HeadTooLarge(f"expected a head of at most {MAX_HEAD_BYTES:,} bytes, got {size:,}")
    names = {name for name, _ in scope["headers"]}
    if names >= {b"content-length", b"transfer-encoding"}:
        refused = BadRequest("expected Content-Length or Transfer-Encoding, got both")
        refused.headers = {"connection": "close"}
        raise refused


def check_host(headers: Headers, access: Access) -> None:
    """Refuse a request that a foreign name led here.

    Raises:
        Forbidden: the name is neither an address, nor localhost, nor allowed.
    """
    name = _host_name(headers.get("host", ""))
    if name == "localhost" or name in access.hosts or _is_address(name):
        return
    raise Forbidden("this server does not answer to that host name; tokforge serve --allow-host")


def check_key(headers: Headers, access: Access) -> None:
    """Refuse who does not know the key.

    Raises:
        Unauthorized: the key is missing or another.
    """
    if access.key is None:
        return
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(
        key.strip().encode("latin-1"), access.key.encode()
    ):
        raise Unauthorized("expected this server's key: Authorization: Bearer KEY")


class Bodies:
    """Reads the bodies of requests, of which only so much is held at a time."""

    def __init__(self) -> None:
        self._held = 0

    async def read_json(self, request: Request) -> bytes:
        """The body of a request that brings JSON.

        Raises:
            WrongType: it is declared to be something else.
            TooLarge, TooSlow: it is too large, or came too slowly.
            QueueFull: too many are being read.
            ClientGone: it did not come.
        """
        _check_declared(request.headers)
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for part in request.stream():
                    self._held += len(part)
                    body += part
                    self._check_held(len(body))
        except TimeoutError:
            raise TooSlow(f"the body did not arrive within {BODY_SECONDS:g} s") from None
        except ClientDisconnect:
            raise ClientGone from None
        finally:
            self._held -= len(body)
        return bytes(body)

    def _check_held(self, size: int) -> None:
        if size > MAX_BODY_BYTES:
            raise _too_large()
        if self._held > _MOST_BODIES_BYTES:
            raise QueueFull(
                f"{self._held:,} bytes of requests are being read, which is all that may be",
                retry_after=1,
            )


def _check_declared(headers: Headers) -> None:
    """What a head says of the body that follows."""
    declared = headers.get("content-type", "").partition(";")[0].strip().lower()
    if declared != "application/json":
        # What a page of another origin may send without asking is never JSON.
        raise WrongType("expected the content type application/json")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise WrongType("expected a body without a content encoding")
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise _too_large()


def _too_large() -> TooLarge:
    return TooLarge(f"expected a body of at most {MAX_BODY_BYTES:,} bytes")


def _host_name(host: str) -> str:
    """The name in a Host header, without the port; empty where it is none."""
    found = _HOST.fullmatch(host.lower())
    return (found["address"] or found["name"]).removesuffix(".") if found else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
