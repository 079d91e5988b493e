"""A model hub on loopback: real sockets, the shape of Hugging Face, and faults to order.

One `Hub` answers on two ports: the hub itself and the host that it keeps large files on. It
speaks what `huggingface_hub` speaks (model info, tree, resolve), what ModelScope speaks (file
list, file), and serves the same files as a plain static server below `/static/<repository>/`.
It counts what it sends and remembers every request, so that a test can say how many bytes
travelled and which host saw a token.

A fault is a function that changes one `Reply` before it is sent:

    hub.fault("resolve/.*weight", cut(1000), times=2)
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

_PAGE = 1000
_LARGE = 1 << 10
_CHUNK = 256 * 1024


@dataclass(frozen=True)
class Request:
    """What a client asked for."""

    method: str
    host: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]

    @property
    def range(self) -> tuple[int, int | None] | None:
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
        return (int(found[1]), int(found[2]) + 1 if found[2] else None) if found else None


@dataclass
class Reply:
    """What it gets: `data` from `start` to `stop` of a file, or of a text.

    `before` is called before anything is sent, `pause` after every few bytes.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    data: bytes | Path = b""
    start: int = 0
    stop: int | None = None
    with_length: bool = True
    cut_after: int | None = None
    pause: Callable[[int], None] | None = None
    before: Callable[[], object] | None = None

    @property
    def length(self) -> int:
        size = self.data.stat().st_size if isinstance(self.data, Path) else len(self.data)
        return (size if self.stop is None else self.stop) - self.start

    def pieces(self, size: int = _CHUNK) -> Iterator[bytes]:
        stop = self.start + self.length
        if isinstance(self.data, Path):
            with self.data.open("rb") as stream:
                stream.seek(self.start)
                for at in range(self.start, stop, size):
                    yield stream.read(min(size, stop - at))
        else:
            for at in range(self.start, stop, size):
                yield self.data[at : min(at + size, stop)]

    def body(self) -> bytes:
        return b"".join(self.pieces())


Fault = Callable[[Reply], Reply]


@dataclass
class _Ordered:
    pattern: re.Pattern[str]
    fault: Fault
    times: int | None
    host: str | None


@dataclass
class Repo:
    """One repository: every commit has its files; the last commit is `main`."""

    commits: dict[str, dict[str, bytes | Path]] = field(default_factory=dict)
    token: str | None = None
    gated: bool = False

    @property
    def head(self) -> str:
        return list(self.commits)[-1]


class Hub:
    """The hub, from entering a `with` to `close`; with `tls`, only its files' host is plain."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.repos: dict[str, Repo] = {}
        self.requests: list[Request] = []
        self.sent = 0
        self.connections = 0
        self.bytes_a_second: float | None = None
        self._faults: list[_Ordered] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._open: set[socket.socket] = set()
        self._servers = [_Server(self, "hub", tls), _Server(self, "cdn", None)]
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self._servers[0].server_port}"
        self.cdn_url = f"http://localhost:{self._servers[1].server_port}"

    def __enter__(self) -> Hub:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stopped.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()
        with self._lock:
            for connection in self._open:
                _hang_up(connection)

    def commit(self, repo: str, files: dict[str, bytes | Path], *, sha: str | None = None) -> str:
        """Add a commit to a repository, which is made where there is none; returns its id."""
        commits = self.repos.setdefault(repo, Repo()).commits
        sha = sha or hashlib.sha1(f"{repo}{len(commits)}".encode()).hexdigest()
        commits[sha] = dict(files)
        return sha

    def fault(
        self, pattern: str, fault: Fault, *, times: int | None = None, host: str | None = None
    ) -> None:
        """Let replies to paths that have `pattern` in them go wrong, the first `times` or all.

        `host` limits this to "hub" or "cdn".
        """
        with self._lock:
            self._faults.append(_Ordered(re.compile(pattern), fault, times, host))

    def heal(self) -> None:
        with self._lock:
            self._faults.clear()

    def paths(self, pattern: str = "") -> list[str]:
        """Every path asked for, in order."""
        return [seen.path for seen in self.requests if re.search(pattern, seen.path)]

    def tokens_seen(self, host: str) -> set[str]:
        """Every authorization that a host was sent."""
        return {
            seen.headers["authorization"]
            for seen in self.requests
            if seen.host == host and "authorization" in seen.headers
        }

    def wait(self, seconds: float) -> None:
        """Sleep, but not beyond the end of the test."""
        self._stopped.wait(seconds)

    # What the servers call.

    def _opened(self, connection: socket.socket) -> None:
        with self._lock:
            self.connections += 1
            self._open.add(connection)

    def _closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)

    def _count(self, sent: int) -> None:
        with self._lock:
            self.sent += sent

    def _answer(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
        reply = self._right_answer(request)
        with self._lock:
            for ordered in list(self._faults):
                if not ordered.pattern.search(request.path):
                    continue
                if ordered.host not in {None, request.host}:
                    continue
                reply = ordered.fault(reply)
                if ordered.times is not None:
                    ordered.times -= 1
                    if ordered.times == 0:
                        self._faults.remove(ordered)
        return reply

    def _right_answer(self, request: Request) -> Reply:
        path = unquote(request.path)
        if request.host == "cdn":
            return self._blob(request, path)
        for pattern, answer in (
            (r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", self._info),
            (r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", self._tree),
            (r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self._resolve),
            (r"/static/([^/]+/[^/]+)/(.+)", self._static),
            (r"/api/v1/models/([^/]+/[^/]+)/repo/files", self._modelscope_files),
            (r"/api/v1/models/([^/]+/[^/]+)/repo", self._modelscope_file),
        ):
            if found := re.fullmatch(pattern, path):
                return answer(request, *found.groups())
        return _error(404, "", "no such page")

    def _repo(self, request: Request, name: str, *, files: bool = False) -> Repo | Reply:
        repo = self.repos.get(name)
        given = request.headers.get("authorization")
        if repo is None or (repo.token and not repo.gated and given != f"Bearer {repo.token}"):
            return _error(404 if given else 401, "RepoNotFound", "Repository not found")
        if files and repo.gated and given != f"Bearer {repo.token}":
            return _error(403 if given else 401, "GatedRepo", f"Access to {name} is restricted")
        return repo

    def _at(self, repo: Repo, revision: str | None) -> tuple[str, dict[str, bytes | Path]] | Reply:
        sha = repo.head if revision in {None, "main", "master"} else revision
        if sha is None or sha not in repo.commits:
            return _error(404, "RevisionNotFound", "Invalid rev id")
        return sha, repo.commits[sha]

    def _info(self, request: Request, name: str, revision: str | None) -> Reply:
        repo = self._repo(request, name)
        if isinstance(repo, Reply):
            return repo
        at = self._at(repo, revision)
        if isinstance(at, Reply):
            return at
        blobs = request.query.get("blobs", "").lower() in {"true", "1"}
        return _json(
            {
                "_id": "1",
                "id": name,
                "modelId": name,
                "sha": at[0],
                "private": bool(repo.token) and not repo.gated,
                "gated": "auto" if repo.gated else False,
                "downloads": 0,
                "likes": 0,
                "tags": [],
                "siblings": [
                    {"rfilename": path, **(_sibling(data) if blobs else {})}
                    for path, data in at[1].items()
                ],
            }
        )

    def _tree(self, request: Request, name: str, revision: str) -> Reply:
        repo = self._repo(request, name)
        if isinstance(repo, Reply):
            return repo
        at = self._at(repo, revision)
        if isinstance(at, Reply):
            return at
        begin = int(request.query.get("cursor", "0"))
        paths = list(at[1])
        page = [_leaf(path, at[1][path]) for path in paths[begin : begin + _PAGE]]
        reply = _json(page)
        if begin + _PAGE < len(paths):
            following = f"{self.url}{quote(request.path)}?recursive=true&cursor={begin + _PAGE}"
            reply.headers["Link"] = f'<{following}>; rel="next"'
        return reply

    def _resolve(self, request: Request, name: str, revision: str, path: str) -> Reply:
        repo = self._repo(request, name, files=True)
        if isinstance(repo, Reply):
            return repo
        at = self._at(repo, revision)
        if isinstance(at, Reply):
            return at
        sha, files = at
        if path not in files:
            error = _error(404, "EntryNotFound", "Entry not found")
            return replace(error, headers={**error.headers, "X-Repo-Commit": sha})
        data = files[path]
        headers = {"X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        if not _is_large(data):
            return _ranged(request, data, {**headers, "ETag": f'"{git_sha1(data)}"'})
        where = f"{self.cdn_url}/{quote(name)}/{sha}/{quote(path)}?signature=secret"
        return Reply(
            302,
            {
                **headers,
                "Location": where,
                "X-Linked-Etag": f'"{sha256(data)}"',
                "X-Linked-Size": str(_size(data)),
                "ETag": f'"{git_sha1(_pointer(data))}"',
            },
        )

    def _blob(self, request: Request, path: str) -> Reply:
        found = re.fullmatch(r"/([^/]+/[^/]+)/([^/]+)/(.+)", path)
        if not found:
            return _error(404, "", "no such key")
        data = self.repos[found[1]].commits[found[2]][found[3]]
        return _ranged(request, data, {"ETag": f'"{sha256(data)[:32]}"', "Accept-Ranges": "bytes"})

    def _static(self, request: Request, name: str, path: str) -> Reply:
        repo = self.repos.get(name)
        if repo is None or path not in repo.commits[repo.head]:
            return _error(404, "", "no such file")
        data = repo.commits[repo.head][path]
        return _ranged(request, data, {"ETag": f'"{sha256(data)[:16]}"', "Accept-Ranges": "bytes"})

    def _modelscope_files(self, request: Request, name: str) -> Reply:
        repo = self.repos.get(name)
        if repo is None:
            return Reply(404, {}, json.dumps({"Code": 10010205001, "Success": False}).encode())
        files = [
            {
                "Path": path,
                "Name": path.rpartition("/")[2],
                "Type": "blob",
                "Size": _size(data),
                "Sha256": sha256(data),
                "Revision": repo.head,
                "IsLFS": _is_large(data),
            }
            for path, data in repo.commits[repo.head].items()
        ]
        return _json({"Code": 200, "Success": True, "Message": "", "Data": {"Files": files}})

    def _modelscope_file(self, request: Request, name: str) -> Reply:
        repo = self.repos.get(name)
        path, revision = request.query.get("FilePath", ""), request.query.get("Revision", "")
        if repo is None or path not in repo.commits.get(revision, {}):
            return Reply(404, {}, json.dumps({"Code": 10990404, "Success": False}).encode())
        return _ranged(request, repo.commits[revision][path], {"Accept-Ranges": "bytes"})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, hub: Hub, name: str, tls: ssl.SSLContext | None) -> None:
        self.hub = hub
        self.name = name
        super().__init__(("127.0.0.1", 0), _Handler)
        if tls:
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 0

    def setup(self) -> None:
        super().setup()
        self.server.hub._opened(self.connection)

    def finish(self) -> None:
        self.server.hub._closed(self.connection)
        super().finish()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        reply = self.server.hub._answer(
            Request(
                self.command,
                self.server.name,
                parts.path,
                {key: values[0] for key, values in parse_qs(parts.query).items()},
                {key.lower(): value for key, value in self.headers.items()},
            )
        )
        self._send(reply)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, reply: Reply) -> None:
        if reply.before:
            reply.before()
        lines = [f"HTTP/1.1 {reply.status} {self.responses.get(reply.status, ('?',))[0]}"]
        headers = dict(reply.headers)
        if reply.with_length:
            headers.setdefault("Content-Length", str(reply.length))
        else:
            headers["Connection"] = "close"
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.wfile.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if self.command == "HEAD":
            return
        if not reply.with_length or reply.cut_after is not None:
            self.close_connection = True
        if isinstance(reply.data, Path) and not (reply.pause or reply.cut_after is not None):
            self._send_fast(reply)
        else:
            self._send_slowly(reply)

    def _send_fast(self, reply: Reply) -> None:
        rate, began = self.server.hub.bytes_a_second, time.monotonic()
        assert isinstance(reply.data, Path)
        step = _CHUNK if rate else 8 << 20
        with reply.data.open("rb") as stream:
            for done in range(0, reply.length, step):
                count = min(step, reply.length - done)
                self.connection.sendfile(stream, reply.start + done, count)
                self.server.hub._count(count)
                if rate:
                    early = began + (done + count) / rate - time.monotonic()
                    self.server.hub.wait(max(early, 0))

    def _send_slowly(self, reply: Reply) -> None:
        left = reply.length if reply.cut_after is None else reply.cut_after
        size = 16 if reply.pause else _CHUNK
        for piece in reply.pieces(size):
            self.wfile.write(piece[:left])
            self.server.hub._count(len(piece[:left]))
            left -= len(piece)
            if left <= 0:
                break
            if reply.pause:
                reply.pause(reply.length - left)
        if reply.cut_after is not None:
            _hang_up(self.connection)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


# Faults.


def cut(after: int) -> Fault:
    """Hang up after so many bytes of the body."""
    return lambda reply: replace(reply, cut_after=min(after, reply.length))


def stall(hub: Hub, after: int = 0) -> Fault:
    """Send nothing more after so many bytes, and keep the line open."""
    return lambda reply: replace(
        reply, pause=lambda sent: hub.wait(3600) if sent >= after else None
    )


def drip(hub: Hub, seconds: float) -> Fault:
    """Send sixteen bytes, wait, and so on."""
    return lambda reply: replace(reply, pause=lambda sent: hub.wait(seconds))


def status(code: int, headers: dict[str, str] | None = None, data: bytes = b"no") -> Fault:
    """Answer with another status."""
    return lambda reply: Reply(code, headers or {}, data)


def ignore_range(reply: Reply) -> Reply:
    """Send the whole file, whatever was asked."""
    headers = {k: v for k, v in reply.headers.items() if k != "Content-Range"}
    return replace(reply, status=200, headers=headers, start=0, stop=None)


def other_range(reply: Reply) -> Reply:
    """Send as many bytes as were asked for, but from the file's beginning."""
    total = reply.headers["Content-Range"].rpartition("/")[2]
    count = reply.length
    headers = {**reply.headers, "Content-Range": f"bytes 0-{count - 1}/{total}"}
    return replace(reply, headers=headers, start=0, stop=count)


def lie_about_range(reply: Reply) -> Reply:
    """Send the file's beginning and call it what was asked for."""
    return replace(reply, start=0, stop=reply.length)


def more(count: int) -> Fault:
    """Send more bytes than announced."""

    def fault(reply: Reply) -> Reply:
        headers = {**reply.headers, "Content-Length": str(reply.length)}
        data = reply.body() + bytes(count)
        return replace(reply, headers=headers, data=data, start=0, stop=None)

    return fault


def fewer(count: int) -> Fault:
    """Announce everything, send less, and hang up."""
    return lambda reply: replace(reply, cut_after=max(reply.length - count, 0))


def no_length(reply: Reply) -> Reply:
    """Do not say how long the body is; its end is the end of the connection."""
    headers = {k: v for k, v in reply.headers.items() if k != "Content-Length"}
    return replace(reply, headers=headers, with_length=False)


def absurd_length(reply: Reply) -> Reply:
    """Say that the body has so many bytes that their number is no number any more."""
    headers = {**reply.headers, "Content-Length": "9" * 5000}
    return replace(reply, headers=headers, with_length=False)


def chunked(reply: Reply) -> Reply:
    """Send the body in chunks, as servers do that make it while they send it."""
    headers = {k: v for k, v in reply.headers.items() if k != "Content-Length"}
    pieces = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*reply.pieces(1000), b"")]
    headers["Transfer-Encoding"] = "chunked"
    return replace(
        reply, headers=headers, data=b"".join(pieces), start=0, stop=None, with_length=False
    )


def short_length(count: int) -> Fault:
    """Announce, and send, a body that is shorter than the file is."""

    def fault(reply: Reply) -> Reply:
        return replace(reply, stop=reply.start + max(reply.length - count, 0))

    return fault


def validator(etag: str) -> Fault:
    """Call this version of the file something else."""
    return lambda reply: replace(reply, headers={**reply.headers, "ETag": f'"{etag}"'})


def zipped(reply: Reply) -> Reply:
    """Compress the body though nobody asked for that."""
    headers = {**reply.headers, "Content-Encoding": "gzip"}
    return replace(reply, headers=headers, data=gzip.compress(reply.body()), start=0, stop=None)


def login_page(reply: Reply) -> Reply:
    """What a captive portal says."""
    page = b"<!DOCTYPE html><html><body>Please accept the terms</body></html>"
    return Reply(200, {"Content-Type": "text/html; charset=utf-8"}, page)


def redirect(to: str, code: int = 302) -> Fault:
    """Send the client elsewhere."""
    return lambda reply: Reply(code, {"Location": to})


def damage(at: int) -> Fault:
    """Change one byte of the body, if it has that byte of the file."""

    def fault(reply: Reply) -> Reply:
        body = bytearray(reply.body())
        if reply.status in {200, 206} and reply.start <= at < reply.start + len(body):
            body[at - reply.start] ^= 0xFF
        return replace(reply, data=bytes(body), start=0, stop=None)

    return fault


# What it is made of.


def sha256(data: bytes | Path) -> str:
    return _digest(data, "sha256", b"")


def git_sha1(data: bytes | Path) -> str:
    return _digest(data, "sha1", f"blob {_size(data)}\0".encode())


_known: dict[tuple[str, str, int], str] = {}


def _digest(data: bytes | Path, name: str, first: bytes) -> str:
    if isinstance(data, bytes):
        return hashlib.new(name, first + data).hexdigest()
    key = (str(data), name, data.stat().st_mtime_ns)
    if key not in _known:
        whole = hashlib.new(name, first)
        for piece in Reply(data=data).pieces():
            whole.update(piece)
        _known[key] = whole.hexdigest()
    return _known[key]


def _size(data: bytes | Path) -> int:
    return Reply(data=data).length


def _is_large(data: bytes | Path) -> bool:
    return _size(data) >= _LARGE


def _pointer(data: bytes | Path) -> bytes:
    """What git itself keeps of a large file."""
    return (
        "version https://git-lfs.github.com/spec/v1\n"
        f"oid sha256:{sha256(data)}\nsize {_size(data)}\n"
    ).encode()


def _sibling(data: bytes | Path) -> dict[str, object]:
    if not _is_large(data):
        return {"size": _size(data), "blobId": git_sha1(data)}
    pointer = _pointer(data)
    return {
        "size": _size(data),
        "blobId": git_sha1(pointer),
        "lfs": {"sha256": sha256(data), "size": _size(data), "pointerSize": len(pointer)},
    }


def _leaf(path: str, data: bytes | Path) -> dict[str, object]:
    leaf: dict[str, object] = {"type": "file", "path": path, "size": _size(data)}
    if not _is_large(data):
        return {**leaf, "oid": git_sha1(data)}
    pointer = _pointer(data)
    lfs = {"oid": sha256(data), "size": _size(data), "pointerSize": len(pointer)}
    return {**leaf, "oid": git_sha1(pointer), "lfs": lfs}


def _json(value: object) -> Reply:
    data = json.dumps(value).encode()
    return Reply(200, {"Content-Type": "application/json; charset=utf-8"}, data)


def _error(code: int, name: str, message: str) -> Reply:
    headers = {"X-Error-Code": name, "X-Error-Message": message} if name else {}
    data = json.dumps({"error": message}).encode()
    return Reply(code, {"Content-Type": "application/json", **headers}, data)


def _ranged(request: Request, data: bytes | Path, headers: dict[str, str]) -> Reply:
    size = _size(data)
    headers = {"Content-Type": "application/octet-stream", **headers}
    wanted = request.range
    condition = request.headers.get("if-range")
    if wanted is None or (condition and condition != headers.get("ETag")):
        return Reply(200, headers, data)
    start, stop = wanted[0], min(wanted[1] or size, size)
    if start >= size:
        return Reply(416, {"Content-Range": f"bytes */{size}"}, b"")
    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return Reply(206, headers, data, start, stop)


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[Hub]:
    """A hub for one test."""
    with Hub(tls) as hub:
        yield hub
