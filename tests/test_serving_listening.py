from __future__ import annotations

import contextlib
import json
import socket
import threading
from urllib.parse import urlsplit

import pytest

from serving_kit import ScriptedModel, listening_server, piece
from tokforge_models.errors import UsageError
from tokforge_models.serving import security
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


def test_what_is_no_request_is_refused():
    with listening_server(ScriptedModel()) as url, connect(url) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 400")


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
