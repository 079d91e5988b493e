"""What a server's reply is believed to be: pure, from its status and headers alone.

A server may be tired, hostile, or not the one that was meant (a proxy, a hotel's login page). So
a body counts only where status, Content-Range, Content-Length, Content-Encoding and validator all
say that it is the range that was asked for; whatever else comes is `Later` (it may be better next
time), `Never` (it will not), or `Follow` (ask over there).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from urllib.parse import urljoin, urlsplit

_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_DIGITS = re.compile(r"\d{1,18}")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TEMPORARY = frozenset({408, 421, 425, 429})
_PORTS = {"http": 80, "https": 443}


class Reason(Enum):
    """Why a request can never succeed as it is."""

    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    GATED = "gated"
    NO_REPOSITORY = "no repository"
    NO_REVISION = "no revision"
    NO_FILE = "no file"
    CHANGED = "changed"
    REDIRECT = "redirect"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Asked:
    """A range of a file that was asked for.

    Attributes:
        start: first byte.
        stop: first byte behind it.
        size: bytes of the whole file.
        validator: what the file's validator must be, where no digest will tell; else None.
    """

    start: int
    stop: int
    size: int
    validator: str | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """The body is the file from byte `start` to `stop`; bytes beyond what was asked are not read.

    Attributes:
        whole: whether this is the answer of a server that takes no notice of ranges.
    """

    start: int
    stop: int
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Follow:
    """Ask `url` instead."""

    url: str


@dataclass(frozen=True, slots=True)
class Later:
    """It may be better later, after `seconds` if the server said so."""

    why: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Never:
    """It will not be better."""

    reason: Reason
    why: str


Verdict = Body | Follow | Later | Never
Headers = Mapping[str, str]


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address: what a token is meant for.

    Raises:
        ValueError: the port is not one.
    """
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    return scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(scheme, 0)


def host_of(url: str) -> str:
    """Host of an address as messages show it, with its port where that is unusual."""
    scheme, host, port = origin(url)
    return host if port == _PORTS.get(scheme) else f"{host}:{port}"


def judge(asked: Asked, url: str, status: int, headers: Headers, now: float) -> Verdict:
    """Decide what the reply to a request for a range of a file is.

    Args:
        asked: the range.
        url: what was asked.
        status: of the reply.
        headers: of the reply; names in any case.
        now: seconds since the epoch, for Retry-After.
    """
    if status not in {200, 206}:
        return judge_status(url, status, headers, now)
    if (encoding := headers.get("Content-Encoding", "identity")).lower() != "identity":
        return Later(f"the body is encoded as {encoding[:40]}, which nobody asked for")
    found = validator_of(headers)
    if asked.validator and found and found != asked.validator:
        return Never(Reason.CHANGED, "it is another version now")
    length = number_in(headers.get("Content-Length"))
    if status == 206:
        return _part(asked, length, headers.get("Content-Range", ""))
    if headers.get("Content-Type", "").lower().startswith("text/html") and length != asked.size:
        return Later("a web page came instead of the file; does this network want a login?")
    if length not in {None, asked.size}:
        return Later(f"the file has {asked.size} bytes, but a body of {length} came")
    return Body(0, asked.size, whole=(asked.start, asked.stop) != (0, asked.size))


def _part(asked: Asked, length: int | None, content_range: str) -> Verdict:
    found = _CONTENT_RANGE.fullmatch(content_range.strip())
    if not found:
        return Later(f"a part came that does not say which: {content_range[:60]!r}")
    start, stop = int(found[1]), int(found[2]) + 1
    if found[3] != "*" and int(found[3]) != asked.size:
        return Later(f"the file has {asked.size} bytes, but this server says {found[3]}")
    if start != asked.start or not start < stop <= asked.stop:
        return Later(
            f"bytes {asked.start} to {asked.stop} were asked for, but {start} to {stop} came"
        )
    if length not in {None, stop - start}:
        return Later(f"the body's length, {length}, is not that of its range")
    return Body(start, stop)


def judge_status(url: str, status: int, headers: Headers, now: float) -> Follow | Later | Never:
    """Decide what a reply is that carries no body of use."""
    if status in _REDIRECTS:
        return _redirect(url, headers.get("Location", ""))
    if status in _TEMPORARY or status >= 500:
        return Later(f"the server says {status}", retry_after(headers.get("Retry-After"), now))
    code = headers.get("X-Error-Code", "")
    said = headers.get("X-Error-Message", "")[:200]
    why = f"the server says {status}" + (f" ({said})" if said else "")
    named = {
        "GatedRepo": Reason.GATED,
        "RepoNotFound": Reason.NO_REPOSITORY,
        "RevisionNotFound": Reason.NO_REVISION,
        "EntryNotFound": Reason.NO_FILE,
    }
    if status == 401 and code != "GatedRepo":
        return Never(Reason.UNAUTHORIZED, why)
    if code in named:
        return Never(named[code], why)
    if status == 403:
        return Never(Reason.FORBIDDEN, why)
    if status in {404, 410}:
        return Never(Reason.NO_FILE, why)
    if status == 416:
        return Never(Reason.CHANGED, "it is shorter now")
    if status < 300:
        return Later(f"the server says {status}, which means nothing here")
    return Never(Reason.REFUSED, why)


def _redirect(url: str, location: str) -> Follow | Never:
    try:
        target = urljoin(url, location)
        scheme, host, _ = origin(target)
    except ValueError:
        return Never(Reason.REDIRECT, "it sends us to an address that is none")
    if not location or scheme not in _PORTS or not host:
        return Never(Reason.REDIRECT, "it sends us to an address that is none")
    if scheme == "http" and origin(url)[0] == "https":
        return Never(Reason.REDIRECT, f"it sends us from https to plain http, to {host[:80]}")
    return Follow(target)


def validator_of(headers: Headers) -> str | None:
    """What is equal only for the same bytes at the same address, or None."""
    return headers.get("ETag") or headers.get("Last-Modified") or None


def retry_after(value: str | None, now: float) -> float | None:
    """Seconds that a Retry-After header asks for, given in seconds or as a date."""
    if value is None:
        return None
    if _DIGITS.fullmatch(value.strip()):
        return float(value)
    try:
        return max(parsedate_to_datetime(value).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None


def number_in(text: str | None) -> int | None:
    """The number of bytes that a header gives, or None where it gives none that can be."""
    return int(text) if text and _DIGITS.fullmatch(text.strip()) else None
