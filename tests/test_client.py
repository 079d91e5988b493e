"""The ranged client against a real server: tokens, hosts, limits, ends."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faults import QUICK
from hub import Hub, Reply, absurd_length, chunked, cut, no_length, redirect, running, stall, status
from tokforge_models.errors import FetchError
from tokforge_models.sources.client import Client
from tokforge_models.sources.network import Contacts
from tokforge_models.sources.reply import Asked, Never
from tokforge_models.sources.source import OneAtATime

DATA = bytes(range(256)) * 40
REPO = "maker/demo"


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with running() as hub:
        hub.commit(REPO, {"file": DATA})
        yield hub


@pytest.fixture(autouse=True)
def well(hub: Hub) -> Iterator[None]:
    hub.heal()
    hub.requests.clear()
    hub.repos[REPO].token = None
    yield


def explain(never: Never) -> FetchError:
    return FetchError(f"{never.reason.value}: {never.why}")


def client_of(hub: Hub, token: str | None = None, **network: object) -> Client:
    return Client(QUICK(**network), Contacts(), hub.url, lambda: token)


def url(hub: Hub) -> str:
    return f"{hub.url}/{REPO}/resolve/main/file"


def read(client: Client, address: str, start: int = 0, stop: int = len(DATA)) -> bytes:
    asked = Asked(start, stop, len(DATA))
    return b"".join(client.read(address, "the file", explain, asked))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    span=st.tuples(st.integers(0, len(DATA) - 1), st.integers(1, len(DATA))).map(
        lambda pair: (min(pair), max(pair)) if pair[0] != pair[1] else (0, pair[1])
    ),
    cuts=st.lists(st.integers(0, len(DATA)), max_size=4),
)
def test_cuts_anywhere_change_no_byte(hub: Hub, span: tuple[int, int], cuts: list[int]) -> None:
    hub.heal()
    for after in cuts:
        hub.fault("file", cut(after), times=1, host="cdn")
    client = client_of(hub)
    assert read(client, url(hub), *span) == DATA[span[0] : span[1]]
    client.close()


def test_a_connection_is_used_again(hub: Hub) -> None:
    client = client_of(hub)
    before = hub.connections
    for start in range(0, 10_000, 1000):
        read(client, url(hub), start, start + 1000)
    assert hub.connections - before <= 2
    client.close()


def test_a_token_is_sent_only_where_it_is_needed_and_meant(hub: Hub) -> None:
    public = client_of(hub, "secret")
    read(public, url(hub))
    assert not hub.tokens_seen("hub")
    hub.repos[REPO].token = "secret"
    private = client_of(hub, "secret")
    read(private, url(hub))
    assert hub.tokens_seen("hub") == {"Bearer secret"}
    assert not hub.tokens_seen("cdn")


def test_connections_that_are_refused_together_take_the_token_together(hub: Hub) -> None:
    hub.repos[REPO].token = "secret"
    barrier = threading.Barrier(4)
    hub.fault("resolve", lambda reply: replace(reply, before=lambda: barrier.wait(10)), times=4)
    client = client_of(hub, "secret")
    with ThreadPoolExecutor(4) as pool:
        parts = pool.map(lambda at: read(client, url(hub), at, at + 100), range(0, 400, 100))
        assert b"".join(parts) == DATA[:400]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_port_takes_no_token_along(hub: Hub, code: int) -> None:
    """Cookies of one port would be sent to another, and netrc knows no ports at all."""
    hub.repos[REPO].token = "secret"
    with running() as other:
        other.commit(REPO, {"file": DATA})
        other.repos[REPO].token = "secret"
        hub.fault("resolve", redirect(url(other), code))
        with pytest.raises(FetchError, match="401"):
            read(client_of(hub, "secret"), url(hub))
        assert other.requests
        assert not other.tokens_seen("hub")


def test_netrc_and_cookies_stay_here(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))

    def bake(reply: Reply) -> Reply:
        reply.headers["Set-Cookie"] = "crumb=1; Path=/"
        return reply

    hub.fault("resolve", bake)
    client = client_of(hub)
    read(client, url(hub), 0, 10)
    read(client, url(hub), 10, 20)
    for seen in hub.requests:
        assert "authorization" not in seen.headers
        assert "cookie" not in seen.headers
        assert seen.headers["accept-encoding"] == "identity"


def test_the_environments_proxy_is_used(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", hub.url)
    monkeypatch.setenv("no_proxy", "")
    address = f"http://nowhere.invalid/static/{REPO}/file"
    assert read(client_of(hub), address) == DATA
    assert hub.paths() == [f"/static/{REPO}/file"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_https_is_not_left_and_a_stranger_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    about = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*words.split(), *about, *made], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with running(tls) as secure:
        secure.commit(REPO, {"file": DATA, "small": b"small"})
        with pytest.raises(FetchError, match="is not who it says"):
            read(client_of(secure), url(secure))
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        with pytest.raises(FetchError, match="from https to plain http, to localhost"):
            read(client_of(secure), url(secure))
        assert not [seen for seen in secure.requests if seen.host == "cdn"]
        asked = Asked(0, 5, 5)
        small = client_of(secure).read(url(secure).replace("file", "small"), "x", explain, asked)
        assert b"".join(small) == b"small"


def test_a_server_without_ranges_is_read_by_one_at_a_time(hub: Hub) -> None:
    def whole(reply: Reply) -> Reply:
        headers = {k: v for k, v in reply.headers.items() if k != "Content-Range"}
        return Reply(200, headers, DATA)

    hub.fault("file", whole, host="cdn")
    client = client_of(hub)
    with pytest.raises(OneAtATime):
        read(client, url(hub), 5000, 6000)
    assert not client.takes_ranges
    assert read(client, url(hub), 5000, 6000) == DATA[5000:6000]
    assert read(client, url(hub)) == DATA


def test_hosts_are_told_once_in_order(hub: Hub) -> None:
    told: list[str] = []
    contacts = Contacts(told.append)
    client = Client(QUICK(), contacts, hub.url)
    read(client, url(hub), 0, 10)
    read(client, url(hub), 10, 20)
    assert list(contacts.hosts) == told
    assert told == [hub.url.removeprefix("http://"), hub.cdn_url.removeprefix("http://")]


def test_one_budget_for_all_connections(hub: Hub) -> None:
    hub.fault("file", status(503))
    client = client_of(hub, retries=6, backoff_seconds=0.001)
    failures: list[FetchError] = []

    def reader() -> None:
        try:
            read(client, url(hub))
        except FetchError as error:
            failures.append(error)

    readers = [threading.Thread(target=reader) for _ in range(4)]
    for one in readers:
        one.start()
    for one in readers:
        one.join()
    assert len(failures) == 4
    assert len(hub.requests) <= 6 + 4


def test_chunks_are_understood(hub: Hub) -> None:
    hub.fault("file", chunked, host="cdn")
    hub.fault("^/api", chunked)
    client = client_of(hub)
    assert read(client, url(hub), 100, 9000) == DATA[100:9000]
    listing = client.text(f"{hub.url}/api/models/{REPO}/revision/main", "it", explain)
    assert json.loads(listing)["id"] == REPO


def test_a_length_beyond_all_numbers_is_none(hub: Hub) -> None:
    hub.fault("file", absurd_length, host="cdn")
    hub.fault("^/api", absurd_length)
    assert read(client_of(hub), url(hub)) == DATA
    text = client_of(hub).text(f"{hub.url}/api/models/{REPO}/revision/main", "it", explain)
    assert json.loads(text)["id"] == REPO


def test_close_ends_a_read_that_waits(hub: Hub) -> None:
    hub.fault("file", stall(hub, 16), host="cdn")
    client = client_of(hub, stall_seconds=60.0)
    chunks = client.read(url(hub), "the file", explain, Asked(0, len(DATA), len(DATA)))
    assert next(chunks)
    closer = threading.Timer(0.05, client.close)
    closer.start()
    with pytest.raises(FetchError, match="stopped"):
        list(chunks)
    closer.join()


def test_close_is_safe_at_any_moment(hub: Hub) -> None:
    """Readers end on their own while others are ended."""
    for _ in range(40):
        client = client_of(hub)
        with ThreadPoolExecutor(3) as pool:
            reads = [pool.submit(read, client, url(hub)) for _ in range(3)]
            client.close()
        for one in reads:
            if error := one.exception():
                assert isinstance(error, FetchError)
            else:
                assert one.result() == DATA


def test_a_body_without_length_may_be_longer_than_the_file(hub: Hub) -> None:
    hub.fault("file", lambda reply: no_length(Reply(200, {}, DATA + b"more")), host="cdn")
    assert read(client_of(hub), url(hub)) == DATA


def test_what_cannot_be_an_address(hub: Hub) -> None:
    with pytest.raises(FetchError, match="is no address"):
        read(client_of(hub), "http://.bad/x")
