"""Our own ranged HTTP client: asks again where that can help, and ends where it cannot.

Promises:

* A yielded byte is one that a reply was believed for (reply.py); nobody here says that it is the
  right one, which only a digest can.
* A token goes to the one origin (scheme, host, port) that it is meant for, and only after that
  origin has refused us without it. Nothing else of the user's (netrc, cookies) goes anywhere.
* Every request ends: by a reply, a stall, or `close` from another thread; so does every series of
  them, by a `Budget`.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.client import HTTPException
from http.cookiejar import DefaultCookiePolicy
from typing import TypeVar

import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase

from tokforge_models.errors import FetchError
from tokforge_models.sources.network import Contacts, Network
from tokforge_models.sources.patience import Budget, Pace, Throttle
from tokforge_models.sources.reply import (
    Asked,
    Body,
    Follow,
    Headers,
    Later,
    Never,
    Reason,
    Verdict,
    host_of,
    judge,
    judge_status,
    number_in,
    origin,
)
from tokforge_models.sources.source import OneAtATime

MAX_METADATA_BYTES = 32 * 1024 * 1024
_METADATA_RETRIES = 3
_CHUNK_BYTES = 256 * 1024
_LEAST_CHUNK_BYTES = 4 * 1024
_MAX_HOPS = 10
_DENIED = frozenset({Reason.UNAUTHORIZED, Reason.FORBIDDEN, Reason.GATED, Reason.NO_REPOSITORY})

T = TypeVar("T")
Explain = Callable[[Never], FetchError]


class _FailedOnce(Exception):
    """A request that may be asked again."""

    def __init__(self, why: str, seconds: float | None = None) -> None:
        self.why = why
        self.seconds = seconds
        super().__init__(why)


class _Refused(Exception):
    """A request that can never succeed."""

    def __init__(self, never: Never) -> None:
        self.never = never
        super().__init__(never.why)


class _TokenForOrigin(AuthBase):
    """Adds a token to requests to one origin; being there keeps netrc from being read."""

    def __init__(self, home: str) -> None:
        self.home = origin(home)
        self.token: str | None = None

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self.token and origin(request.url or "") == self.home:
            request.headers["Authorization"] = f"Bearer {self.token}"
        return request


class Client:
    """Requests to one source.

    Args:
        network: limits and patience.
        contacts: told of every host.
        home: base address of the source; its origin is what a token is meant for.
        find_token: gives the user's token for it, if there is one; called only where needed.
    """

    def __init__(
        self,
        network: Network,
        contacts: Contacts,
        home: str,
        find_token: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._network = network
        self._contacts = contacts
        self._auth = _TokenForOrigin(home)
        self._find_token: Callable[[], str | None] | None = find_token
        self._lock = threading.Lock()
        self._budget = Budget(network, random.random)
        rate = network.limit_rate
        self._throttle = Throttle(rate, time.monotonic()) if rate else None
        self._chunk_bytes = (
            min(max(rate // 8, _LEAST_CHUNK_BYTES), _CHUNK_BYTES) if rate else _CHUNK_BYTES
        )
        self._closed = threading.Event()
        self._live: set[requests.Response] = set()
        self._session = requests.Session()
        self._session.auth = self._auth
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._session.headers["Accept-Encoding"] = "identity"
        self._session.headers["User-Agent"] = "tokforge-models"
        adapter = HTTPAdapter(pool_maxsize=network.connections, max_retries=0)
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, adapter)
        self.takes_ranges = True

    def close(self) -> None:
        """End every request that is under way, from any thread, and refuse new ones."""
        self._closed.set()
        with self._lock:
            live = tuple(self._live)
        for response in live:
            with suppress(RuntimeError, ValueError, OSError):  # it may end by itself right now
                response.raw.shutdown()
        self._session.close()

    def text(self, url: str, what: str, explain: Explain) -> bytes:
        """A small text, e.g. a listing, of at most `MAX_METADATA_BYTES`.

        Args:
            url: where it is.
            what: how messages call it.
            explain: turns a refusal into words.

        Raises:
            FetchError: it cannot be had, is larger, or takes longer than a listing may.
        """
        deadline = time.monotonic() + self._network.metadata_seconds
        return self._patiently(what, explain, lambda: self._text(url, what, deadline))

    def head(self, url: str, what: str, explain: Explain) -> Headers:
        """The headers of a file, wherever redirects lead.

        Raises:
            FetchError: they cannot be had.
        """
        return self._patiently(what, explain, lambda: self._head(url))

    def read(self, url: str, what: str, explain: Explain, asked: Asked) -> Iterator[bytes]:
        """Yield a range of a file, cut anywhere; goes on where a connection ended.

        Raises:
            FetchError: the rest cannot be had.
            OneAtATime: the server gives only whole files, and other ranges of this one may be
                under way; from now on `takes_ranges` is false, and whole files are read through.
        """
        at = asked.start
        while at < asked.stop:
            try:
                for chunk in self._range(url, replace(asked, start=at)):
                    at += len(chunk)
                    with self._lock:
                        self._budget.received(len(chunk))
                    yield chunk
                if at < asked.stop:
                    raise _FailedOnce(f"only a part came, up to byte {at}")
            except _FailedOnce as failure:
                self._wait(self._budget, failure, what)
            except _Refused as refused:
                raise explain(refused.never) from None

    def _patiently(self, what: str, explain: Explain, ask: Callable[[], T]) -> T:
        budget = Budget(self._network, random.random, _METADATA_RETRIES)
        while True:
            try:
                return ask()
            except _FailedOnce as failure:
                self._wait(budget, failure, what)
            except _Refused as refused:
                raise explain(refused.never) from None

    def _wait(self, budget: Budget, failure: _FailedOnce, what: str) -> None:
        """Wait before the next request, or give up."""
        with self._lock:
            seconds = budget.failed(failure.seconds)
            failures = budget.failures
        if seconds is None:
            told = failure.seconds is not None and failure.seconds > 0
            wait = f"; it asks to wait {failure.seconds:.0f} s" if told else ""
            raise FetchError(
                f"cannot get {what}: {failure.why}{wait}",
                got=f"{failures} failures in a row" if failures > 1 else "",
                kept="everything verified so far",
                hint="run the same command again later; it goes on from where it stopped",
            )
        self._pause(seconds)

    def _pause(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise FetchError("the transfer was stopped", kept="everything verified so far")

    def _text(self, url: str, what: str, deadline: float) -> bytes:
        with self._reply("GET", url, {}, _judge_text) as (response, _):
            chunks, size = [], 0
            while chunk := self._read(response):
                chunks.append(chunk)
                size += len(chunk)
                if size > MAX_METADATA_BYTES:
                    raise FetchError(
                        f"{what} is too large to be one",
                        expected=f"at most {MAX_METADATA_BYTES:,} bytes",
                        got="more",
                    )
                if time.monotonic() > deadline:
                    raise FetchError(
                        f"{what} takes too long",
                        expected=f"at most {self._network.metadata_seconds:.0f} s",
                        hint="run the same command again later",
                    )
            length = number_in(response.headers.get("Content-Length"))
            if length not in {None, size}:
                raise _FailedOnce(f"{size} bytes came instead of {length}")
            return b"".join(chunks)

    def _head(self, url: str) -> Headers:
        with self._reply("HEAD", url, {}, _judge_text) as (response, _):
            return response.headers

    def _range(self, url: str, asked: Asked) -> Iterator[bytes]:
        """One request for a range, as far as its reply is good."""
        headers = {"Range": f"bytes={asked.start}-{asked.stop - 1}"}
        if asked.validator and asked.validator.startswith('"'):
            headers["If-Range"] = asked.validator

        def verdict(at: str, status: int, headers: Headers) -> Verdict:
            return judge(asked, at, status, headers, time.time())

        beside_others = self.takes_ranges
        with self._reply("GET", url, headers, verdict) as (response, body):
            if body.whole and beside_others:
                self.takes_ranges = False
                raise OneAtATime(f"{host_of(url)} sends only whole files")
            at, stop = body.start, min(body.stop, asked.stop)
            pace = Pace(self._network, time.monotonic())
            while at < stop:
                if not (chunk := self._read(response)):
                    raise _FailedOnce(f"the connection ended at byte {at}")
                if pace.crawls(len(chunk), time.monotonic()):
                    raise _FailedOnce(f"nearly nothing came for {self._network.stall_seconds:g} s")
                if useful := chunk[max(asked.start - at, 0) : stop - at]:
                    yield useful
                at += len(chunk)
                self._slow_down(len(chunk), pace)
            if at == body.stop:
                self._finish(response)

    def _slow_down(self, count: int, pace: Pace) -> None:
        if self._throttle:
            with self._lock:
                seconds = self._throttle.wait_for(count, time.monotonic())
            self._pause(seconds)
            pace.restart(time.monotonic())

    def _read(self, response: requests.Response) -> bytes:
        if self._closed.is_set():
            raise FetchError("the transfer was stopped", kept="everything verified so far")
        try:
            data: bytes = response.raw.read1(self._chunk_bytes, decode_content=False)
        except urllib3.exceptions.ReadTimeoutError as error:
            raise _FailedOnce(f"nothing came for {self._network.stall_seconds:g} s") from error
        except (urllib3.exceptions.HTTPError, HTTPException, OSError, ValueError) as error:
            raise _FailedOnce(f"the connection broke ({_words(error)})") from error
        return data

    @contextmanager
    def _reply(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        verdict_of: Callable[[str, int, Headers], Verdict],
    ) -> Iterator[tuple[requests.Response, Body]]:
        """The first reply that carries a body, with what the body is."""
        at, hops = url, 0
        while True:
            token = self._auth.token
            response = self._send(method, at, headers)
            try:
                verdict = verdict_of(at, response.status_code, response.headers)
                if isinstance(verdict, Body):
                    yield response, verdict
                    return
                if isinstance(verdict, Follow):
                    self._finish(response)
            finally:
                self._done(response)
            if isinstance(verdict, Follow):
                at, hops = verdict.url, hops + 1
                if hops > _MAX_HOPS:
                    raise _Refused(Never(Reason.REDIRECT, "it sends us in circles"))
            elif isinstance(verdict, Later):
                raise _FailedOnce(f"{host_of(at)}: {verdict.why}", verdict.seconds)
            elif verdict.reason in _DENIED and origin(at) != self._auth.home:
                # The address that a hub signs for its files' host ages; the next one is fresh.
                raise _FailedOnce(f"{host_of(at)}: {verdict.why}")
            elif verdict.reason not in _DENIED or token or not self._takes_token():
                raise _Refused(verdict)

    def _takes_token(self) -> bool:
        """Take the user's token for all requests from now on; False if there is none."""
        with self._lock:
            find, self._find_token = self._find_token, None
            if find:
                self._auth.token = find()
            return self._auth.token is not None

    def _send(self, method: str, url: str, headers: dict[str, str]) -> requests.Response:
        if self._closed.is_set():
            raise FetchError("the transfer was stopped", kept="everything verified so far")
        self._contacts.add(host_of(url))
        timeouts = (self._network.connect_seconds, self._network.stall_seconds)
        try:
            response = self._session.request(
                method, url, headers=headers, stream=True, allow_redirects=False, timeout=timeouts
            )
        except requests.exceptions.SSLError as error:
            raise _Refused(
                Never(Reason.REFUSED, f"{host_of(url)} is not who it says ({_words(error)})")
            ) from error
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema) as error:
            raise _Refused(Never(Reason.REFUSED, f"{url[:200]!r} is no address")) from error
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise _FailedOnce(f"{host_of(url)} cannot be reached ({_words(error)})") from error
        with self._lock:
            self._live.add(response)
        return response

    def _finish(self, response: requests.Response) -> None:
        """Read a body that is over, or of no use and small, so that its connection can stay."""
        if "Content-Length" in response.headers:
            self._read(response)
            self._read(response)

    def _done(self, response: requests.Response) -> None:
        """Give a connection back if its body was read to the end, else end it."""
        with self._lock:
            self._live.discard(response)
        response.close()


def _judge_text(url: str, status: int, headers: Headers) -> Verdict:
    if status != 200:
        return judge_status(url, status, headers, time.time())
    if (encoding := headers.get("Content-Encoding", "identity")).lower() != "identity":
        return Later(f"the body is encoded as {encoding[:40]}, which nobody asked for")
    return Body(0, 0)


def _words(error: BaseException) -> str:
    """The innermost cause, in a few words."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text)[:120]
