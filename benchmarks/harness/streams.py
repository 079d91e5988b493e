"""A client of the server as small as one can be, so that what is measured is the server."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Streamed:
    """A streamed answer.

    Attributes:
        status: of the response.
        text: of all chunks.
        finish_reason: empty where the stream did not come to it.
        tokens: as the usage says.
        first: seconds from the request to the first text.
        last: seconds from the request to the last text.
        error: of an error event or response; empty where there was none.
    """

    status: int
    text: str = ""
    finish_reason: str = ""
    tokens: int = 0
    first: float = 0.0
    last: float = 0.0
    error: str = ""


class HungUp(Exception):
    """The caller has seen enough."""


def ignore(_text: str) -> None:
    """Read as fast as it comes."""


def stream(url: str, body: Mapping[str, Any], on_text: Callable[[str], None] = ignore) -> Streamed:
    """Ask for a chat's answer, streamed.

    Args:
        url: of the server.
        body: the request, without what makes it stream.
        on_text: called with each part; may take its time, or raise `HungUp`.

    Raises:
        HungUp: `on_text` did.
        OSError, http.client.HTTPException: the connection ended.
    """
    whole = {**body, "stream": True, "stream_options": {"include_usage": True}}
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    began = time.perf_counter()
    try:
        connection.request(
            "POST",
            "/v1/chat/completions",
            json.dumps(whole),
            {"content-type": "application/json"},
        )
        response = connection.getresponse()
        if response.status != 200:
            return Streamed(response.status, error=response.read().decode())
        texts: list[str] = []
        finish_reason, tokens, first, last = "", 0, 0.0, 0.0
        while line := response.readline():
            now = time.perf_counter() - began
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if "error" in event:
                return Streamed(200, "".join(texts), error=event["error"]["message"])
            for choice in event["choices"]:
                if text := choice["delta"].get("content"):
                    first, last = first or now, now
                    texts.append(text)
                    on_text(text)
                finish_reason = choice["finish_reason"] or finish_reason
            if event.get("usage"):
                tokens = event["usage"]["completion_tokens"]
        return Streamed(200, "".join(texts), finish_reason, tokens, first, last)
    finally:
        connection.close()
