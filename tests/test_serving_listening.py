from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import sys
import threading
from urllib.parse import urlsplit

import pytest

from serving_kit import ScriptedModel, listening_server, piece
from tokforge_models.errors import UsageError
from tokforge_models.serving import listening, security
from tokforge_models.serving.listening import Patient, address, listen

CHAT = {"model": "talker", "messages": [{"role": "user", "content": "hi"}], "stream": True}


def connect(url):
    host, port = urlsplit(url).netloc.split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def post(body, length=None):
    data = json.dumps(body).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length or len(data)}\r\n\r\n"
    )
    return head.encode() + data


def ask(head, body=b""):
    """A request's bytes, from the lines of its head."""
    return "\r\n".join([*head, "Host: localhost", "", ""]).encode("latin-1") + body


def reply(connection):
    """Status, headers and body of one response."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    with answer:
        return answer.status, answer.headers, answer.read()


def error_of(answer):
    status, headers, body = answer
    assert headers["content-type"] == "application/json"
    assert headers["x-content-type-options"] == "nosniff"
    return status, json.loads(body)["error"]


def read_until_cut(connection):
    """Times out where the server waits on."""
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(65536):
            pass


@pytest.mark.parametrize("begun", [b"", b"GET /health HTTP/1.1\r\nHost: loc"])
def test_a_head_that_does_not_come_cuts_the_connection(monkeypatch, begun):
    monkeypatch.setattr(Patient, "head_seconds", 0.05)
    with listening_server(ScriptedModel()) as url, connect(url) as connection:
        connection.sendall(begun)
        read_until_cut(connection)


def test_the_second_head_of_a_connection_is_waited_for_no_longer(monkeypatch):
    monkeypatch.setattr(Patient, "head_seconds", 0.05)
    with listening_server(ScriptedModel()) as url, connect(url) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /hea")
        read_until_cut(connection)


def test_a_body_that_does_not_come_is_an_error(monkeypatch):
    monkeypatch.setattr(security, "BODY_SECONDS", 0.05)
    model = ScriptedModel()
    with listening_server(model) as url, connect(url) as connection:
        connection.sendall(post(CHAT, length=10_000))
        assert connection.recv(65536).startswith(b"HTTP/1.1 408")
    assert not model.asked


def test_a_client_that_does_not_read_is_cut_and_holds_up_nobody(monkeypatch):
    monkeypatch.setattr(Patient, "read_seconds", 0.2)
    model = ScriptedModel([[piece("x" * 2**20)] * 40])
    with listening_server(model) as url, connect(url) as idle:
        idle.sendall(post(CHAT))
        with connect(url) as other:
            other.sendall(post(CHAT))
            said = b""
            while b"[DONE]" not in said:
                said += other.recv(65536)
        assert b"Hi." in said
        # The model was done with the first before it began the second.
        assert model.answers[0].result.completion_tokens == 40
        read_until_cut(idle)


def test_a_client_that_hangs_up_ends_its_answer():
    gate = threading.Event()
    model = ScriptedModel([[piece("a")] * 100_000], gate=gate)
    with listening_server(model) as url:
        with connect(url) as connection:
            connection.sendall(post(CHAT))
            while not model.answers:
                pass
        assert model.answers[0].cancelled.wait(30)


JSON_POST = ["POST /v1/chat/completions HTTP/1.1", "Content-Type: application/json"]


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET /health\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        ask(["GET  /health  HTTP/1.1"]),
        ask(["GET /\x00 HTTP/1.1"]),
        ask(["GET /\xff HTTP/1.1"]),
        ask(["GET /health HTTP/1.1", "X : a"]),
        ask(["GET /health HTTP/1.1", "Host: evil.example"]),
        ask([*JSON_POST, "Content-Length: 5", "Content-Length: 6"]),
        ask([*JSON_POST, "Content-Length: -1"]),
        ask([*JSON_POST, "Content-Length: +5"]),
        ask([*JSON_POST, "Content-Length: " + "9" * 30]),
        ask([*JSON_POST, "Content-Length: \xb2"]),
        ask([*JSON_POST, "Transfer-Encoding: gzip, chunked"]),
        ask([*JSON_POST, "Transfer-Encoding: chunked"], b"zz\r\n"),
        ask([*JSON_POST, "Transfer-Encoding: chunked"], b"1;" + b"x" * 400_000),
    ],
)
def test_what_is_no_request_is_refused_in_the_api_s_shape(url, model, request_):
    with connect(url) as connection:
        connection.sendall(request_)
        status, error = error_of(reply(connection))
        assert (status, error["type"]) == (400, "invalid_request_error")
        assert "expected HTTP/1.1" in error["message"]
        read_until_cut(connection)
    assert not model.asked


def test_a_body_whose_end_is_told_in_two_ways_is_refused(url, model):
    both = ["Content-Length: 3", "Transfer-Encoding: chunked"]
    with connect(url) as connection:
        connection.sendall(ask([*JSON_POST, *both], b"0\r\n\r\n" + ask(["GET /health HTTP/1.1"])))
        status, error = error_of(reply(connection))
        assert (status, "got both" in error["message"]) == (400, True)
        # What might be another's next request is not read.
        read_until_cut(connection)
    assert not model.asked


def test_a_head_that_is_too_large_is_refused(url):
    for line in (f"GET /{'a' * 70_000} HTTP/1.1", f"GET /health HTTP/1.1\r\nX: {'a' * 70_000}"):
        with connect(url) as connection:
            connection.sendall(ask([line]))
            # It depends on how it is cut into packets who sees it first.
            assert reply(connection)[0] in {400, 431}


def test_nonsense_after_an_answer_ends_the_connection_silently(url, caplog):
    chunked = ask(["GET /health HTTP/1.1", "Transfer-Encoding: chunked"])
    with connect(url) as connection:
        connection.sendall(chunked)
        assert reply(connection)[0] == 200
        connection.sendall(b"zz\r\n")
        read_until_cut(connection)
    with connect(url) as connection:
        connection.sendall(ask(["GET /health HTTP/1.1"]))
        assert reply(connection)[0] == 200
        connection.sendall(b"\x01\r\n\r\n")
        assert reply(connection)[0] == 400
    assert not caplog.records


EARLY = {
    413: ask([*JSON_POST, f"Content-Length: {10**9}"]),
    415: ask(["POST /v1/chat/completions HTTP/1.1", "Content-Length: 1000"]),
    200: ask(["GET /health HTTP/1.1", "Content-Length: 1000"]),
}


@pytest.mark.parametrize("status", EARLY)
def test_a_body_that_was_answered_before_it_came_has_its_time(monkeypatch, status):
    monkeypatch.setattr(Patient, "rest_seconds", 0.3)
    with listening_server(ScriptedModel()) as url, connect(url) as connection:
        connection.sendall(EARLY[status])
        assert reply(connection)[0] == status
        # Each byte alone would keep an ordinary keep-alive connection.
        with pytest.raises(ConnectionError):
            while True:
                connection.sendall(b" ")


def test_a_client_that_sends_on_sees_why_it_was_refused_and_may_ask_again(url):
    body = b" " * (security.MAX_BODY_BYTES + 1)
    with connect(url) as connection:
        connection.sendall(ask([*JSON_POST, f"Content-Length: {len(body)}"], body))
        assert error_of(reply(connection))[0] == 413
        connection.sendall(ask(["GET /health HTTP/1.1"]))
        assert reply(connection)[0] == 200


def test_requests_in_one_packet_are_answered_in_their_order(url):
    with connect(url) as connection:
        paths = ["/v1/models", "/nowhere", "/health"] * 20
        connection.sendall(b"".join(ask([f"GET {path} HTTP/1.1"]) for path in paths))
        said = b""
        while len(told := re.findall(rb"HTTP/1.1 (\d+)", said)) < len(paths):
            said += connection.recv(65536)
    assert told == [b"200", b"404", b"200"] * 20


def test_connections_beyond_what_may_be_are_cut_and_others_are_served(monkeypatch, caplog):
    monkeypatch.setattr(listening, "_MOST_CONNECTIONS", 3)
    with listening_server(ScriptedModel()) as url, contextlib.ExitStack() as stack:
        first = [stack.enter_context(connect(url)) for _ in range(3)]
        for each in first:
            each.sendall(ask(["GET /health HTTP/1.1"]))
            assert reply(each)[0] == 200
        with connect(url) as more:
            read_until_cut(more)
        first[0].sendall(ask(["GET /health HTTP/1.1"]))
        assert reply(first[0])[0] == 200
    assert not caplog.records


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
@pytest.mark.parametrize(("files", "most"), [(1_000_000, 512), (-1, 512), (256, 128), (8, 1)])
def test_connections_leave_files_for_the_model(monkeypatch, files, most):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert listening.most_connections() == most


def test_a_port_that_is_taken_is_said():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert address(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(UsageError, match=f"cannot listen at 127.0.0.1 port {port}"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["203.0.113.1", "\ud800"])
def test_an_address_that_is_none_is_said(host):
    with pytest.raises(UsageError, match="cannot listen"):
        listen(host, 0)
