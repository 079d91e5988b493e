from __future__ import annotations

import asyncio

import pytest
from starlette.datastructures import Headers
from starlette.requests import Request

from tokforge_models.serving import security
from tokforge_models.serving.errors import (
    BadRequest,
    Forbidden,
    HeadTooLarge,
    QueueFull,
    Unauthorized,
)
from tokforge_models.serving.security import Access, Bodies, check_head, check_host, check_key


def scope(*headers, path=b"/", query=b""):
    return {"type": "http", "raw_path": path, "query_string": query, "headers": list(headers)}


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LocalHost:80", "localhost.", "127.0.0.1", "127.0.0.1:8080", "10.1.2.3"),
        *("[::1]", "[::1]:8080", "[fe80::1]:1", "phone.home", "Phone.Home:8080"),
    ],
)
def test_names_that_no_foreign_page_can_have_are_answered(host):
    check_host(Headers({"host": host}), Access(hosts=frozenset({"phone.home"})))


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.io"),
        *(
            "127.0.0.1@evil.example",
            "[::1].evil.example]",
            "[evil.example]",
            "x.phone.home",
            "0x7f.1",
        ),
    ],
)
def test_others_are_not(host):
    with pytest.raises(Forbidden):
        check_host(Headers({"host": host}), Access(hosts=frozenset({"phone.home"})))


@pytest.mark.parametrize("said", ["Bearer k", "bearer k", "BEARER  k "])
def test_the_key_opens(said):
    check_key(Headers({"authorization": said}), Access("k"))


@pytest.mark.parametrize("said", ["", "k", "Bearer", "Bearer ", "Bearer K", "Basic k", "Bearer kk"])
def test_nothing_else_does(said):
    with pytest.raises(Unauthorized):
        check_key(Headers({"authorization": said}), Access("k"))


def test_without_a_key_everybody_may_ask():
    check_key(Headers({}), Access())


LARGE = b"x" * (security.MAX_HEAD_BYTES + 1)


@pytest.mark.parametrize(
    "large", [scope(path=LARGE), scope(query=LARGE), scope((b"a", LARGE)), scope((LARGE, b"a"))]
)
def test_a_large_head_is_refused_wherever_it_is_large(large):
    with pytest.raises(HeadTooLarge, match="at most 65,536 bytes"):
        check_head(large)


def test_a_body_has_one_end():
    length, chunked = (b"content-length", b"3"), (b"transfer-encoding", b"chunked")
    check_head(scope(length))
    check_head(scope(chunked))
    with pytest.raises(BadRequest, match="got both") as refused:
        check_head(scope(length, chunked))
    assert refused.value.headers == {"connection": "close"}


def test_only_so_much_is_read_at_a_time(monkeypatch):
    monkeypatch.setattr(security, "_MOST_BODIES_BYTES", 10)
    bodies = Bodies()
    declared = scope((b"content-type", b"application/json"))

    async def play():
        go_on = asyncio.Event()

        async def slow():
            await go_on.wait()
            return {"type": "http.request", "body": b"", "more_body": False}

        async def first():
            return {"type": "http.request", "body": b"12345678", "more_body": True}

        async def receive(parts=[first, slow]):  # noqa: B006 - its own, and used up
            return await parts.pop(0)()

        async def small():
            return {"type": "http.request", "body": b"123", "more_body": False}

        waiting = asyncio.create_task(bodies.read_json(Request(declared, receive)))
        await asyncio.sleep(0)
        with pytest.raises(QueueFull, match="11 bytes of requests are being read") as full:
            await bodies.read_json(Request(declared, small))
        assert full.value.headers == {"retry-after": "1"}
        go_on.set()
        assert await waiting == b"12345678"
        # What was read or refused is held no more.
        for _ in range(5):
            assert await bodies.read_json(Request(declared, small)) == b"123"

    asyncio.run(play())
