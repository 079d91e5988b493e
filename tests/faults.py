"""What a hostile or tired server may do, as one list: for the test, and for the table in docs.

Every case orders a fault at a hub that has a bundle of three segments, and says how
`tokforge pull` must end: with which exit code and which words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

from hub import (
    Hub,
    Reply,
    cut,
    damage,
    drip,
    fewer,
    ignore_range,
    lie_about_range,
    login_page,
    more,
    no_length,
    other_range,
    redirect,
    short_length,
    stall,
    status,
    validator,
    zipped,
)
from store_kit import FastDisk, make_files
from tokforge_models.sources.network import Network
from tokforge_models.store.store import Store

SEGMENT = 100_000
FILES = make_files(weight_bytes=250_000)
WEIGHT = "weight"
REPO = "maker/demo"

QUICK = partial(
    Network,
    backoff_seconds=0.002,
    longest_wait_seconds=2.0,
    connect_seconds=2.0,
    stall_seconds=20.0,
    earned_bytes=20_000,
    metadata_seconds=60.0,
)
BRIEF = {"stall_seconds": 0.3, "metadata_seconds": 3.0}

LAYER = """\
schema: 1
bundles:
  demo:
    name: Demo
    role: draft
    family: test
    sources: ["{source}"]
    files: [{files}]
"""


@dataclass(frozen=True)
class Case:
    """One fault.

    Attributes:
        name: what the server does, as the table says it.
        order: orders it.
        code: exit code of the pull.
        says: a part of what the user then reads; empty where the pull succeeds.
        files: what the hub has.
        source: where the bundle comes from; {hub} is the hub's address.
        unlisted: whether the registry names no files, so that the hub's listing decides.
        token: the user's HF_TOKEN.
        patience: other limits than `QUICK`.
    """

    name: str
    order: Callable[[Hub], object]
    code: int = 0
    says: str = ""
    files: dict[str, bytes | Path] = field(default_factory=lambda: dict(FILES))
    source: str = f"hf:{REPO}"
    unlisted: bool = False
    token: str = ""
    patience: Mapping[str, float] = field(default_factory=dict)


def fault(pattern: str, what: Callable[[Reply], Reply], **options: Any) -> Callable[[Hub], object]:
    return lambda hub: hub.fault(pattern, what, **options)


def to_hub(
    pattern: str, what: Callable[[Hub], Callable[[Reply], Reply]], **options: Any
) -> Callable[[Hub], object]:
    """A fault that needs the hub to be made."""
    return lambda hub: hub.fault(pattern, what(hub), **options)


def protect(*, gated: bool) -> Callable[[Hub], None]:
    def order(hub: Hub) -> None:
        hub.repos[REPO].token, hub.repos[REPO].gated = "hf_right", gated

    return order


def redirect_all(code: int) -> Callable[[Hub], None]:
    """Move the whole repository elsewhere, the listing included."""

    def order(hub: Hub) -> None:
        hub.repos["moved/demo"] = hub.repos[REPO]

        def away(reply: Reply, path: str) -> Reply:
            return redirect(path, code)(reply)

        sha = hub.repos[REPO].head
        hub.fault(
            f"^/api/models/{REPO}", redirect(f"/api/models/moved/demo/revision/{sha}?blobs=1", code)
        )
        for name in FILES:
            there = redirect(f"/moved/demo/resolve/{sha}/{name}", code)
            hub.fault(f"^/{REPO}/resolve/.*/{name}$", there)

    return order


def endless(reply: Reply) -> Reply:
    return Reply(200, {"Content-Type": "application/json"}, b"[" + b" " * (33 << 20), stop=None)


def tree_of(*paths: str) -> Callable[[Reply], Reply]:
    """A listing that has other files, too."""

    def fault(reply: Reply) -> Reply:
        info = json.loads(reply.data if isinstance(reply.data, bytes) else b"")
        blob = {"size": 3, "blobId": "ab" * 20}
        info["siblings"] += [{"rfilename": path, **blob} for path in paths]
        return Reply(200, reply.headers, json.dumps(info).encode())

    return fault


URL = "url:{hub}/static/maker/demo"
_DATE = formatdate(1, usegmt=True)

CASES = [
    Case("connection cut once, at any byte", fault(WEIGHT, cut(77_777), times=1, host="cdn")),
    Case("every request cut, but each brings something", fault(WEIGHT, cut(30_000), host="cdn")),
    Case("every request cut at once", fault(WEIGHT, cut(0), host="cdn"), 4, "connection broke"),
    Case(
        "sends nothing more, keeps the line open",
        to_hub(WEIGHT, lambda hub: stall(hub, 1000), host="cdn"),
        4,
        "nothing came for",
        patience=BRIEF,
    ),
    Case(
        "stalls once",
        to_hub(WEIGHT, lambda hub: stall(hub, 1000), host="cdn", times=1),
        patience=BRIEF,
    ),
    Case(
        "drips a few bytes a second",
        to_hub(WEIGHT, lambda hub: drip(hub, 0.1), host="cdn"),
        4,
        "nearly nothing came",
        patience=BRIEF,
    ),
    Case(
        "429 with Retry-After in seconds, then well",
        fault("resolve", status(429, {"Retry-After": "1"}), times=1),
    ),
    Case(
        "429 with Retry-After as a date, then well",
        fault("resolve", status(429, {"Retry-After": _DATE}), times=1),
    ),
    Case("503 without Retry-After, three times", fault("resolve", status(503), times=3)),
    Case("503 for ever", fault("resolve", status(503)), 4, "the server says 503"),
    Case(
        "asks to wait an hour",
        fault("resolve", status(429, {"Retry-After": "3600"})),
        4,
        "asks to wait 3600 s",
    ),
    Case("200 and the whole file to every range request", fault(WEIGHT, ignore_range, host="cdn")),
    Case(
        "206 with another range than asked",
        fault(WEIGHT, other_range, host="cdn"),
        4,
        "were asked for, but",
    ),
    Case(
        "206 that lies about its range",
        fault(WEIGHT, lie_about_range, host="cdn"),
        5,
        "is not what it must be, even when fetched twice",
    ),
    Case("more bytes than announced", fault(WEIGHT, more(5_000), host="cdn", times=4)),
    Case("fewer bytes than announced, once", fault(WEIGHT, fewer(500), host="cdn", times=1)),
    Case("no length", fault(WEIGHT, no_length, host="cdn")),
    Case(
        "a wrong length",
        fault(WEIGHT, short_length(1000), host="cdn"),
        4,
        "is not that of its range",
    ),
    Case(
        "a changed validator half way, bytes as pinned",
        fault(WEIGHT, validator("other"), host="cdn", times=2),
    ),
    Case(
        "a changed validator half way, nothing pinned",
        fault(
            WEIGHT + "$", lambda reply: validator("other")(reply) if reply.status == 206 else reply
        ),
        4,
        "changed while it was fetched",
        source=URL,
    ),
    Case("gzip when not asked, once", fault(WEIGHT, zipped, host="cdn", times=1)),
    Case("gzip when not asked, always", fault(WEIGHT, zipped, host="cdn"), 4, "encoded as gzip"),
    Case(
        "a login page with 200 instead of the listing",
        fault("^/api/", login_page),
        4,
        "does this network want a login",
    ),
    Case(
        "a login page with 200 instead of a file",
        fault(WEIGHT, login_page, host="cdn"),
        4,
        "does this network want a login",
    ),
    *(
        Case(f"redirects everything with {code}", redirect_all(code))
        for code in (301, 302, 303, 307, 308)
    ),
    Case(
        "redirects in circles",
        to_hub(WEIGHT, lambda hub: redirect(f"{hub.url}/{REPO}/resolve/main/llm.mnn.weight")),
        4,
        "in circles",
    ),
    Case(
        "redirects to an address that is none",
        fault(WEIGHT, redirect("ftp://x/y")),
        4,
        "an address that is none",
    ),
    Case("repository needs a login, no token", protect(gated=False), 4, "hf auth login"),
    Case("repository needs a login, right token", protect(gated=False), token="hf_right"),
    Case(
        "repository needs a login, wrong token",
        protect(gated=False),
        4,
        "that your token may see",
        token="hf_wrong",
    ),
    Case("gated repository, no token", protect(gated=True), 4, "is gated", unlisted=True),
    Case(
        "gated repository, token without access",
        protect(gated=True),
        4,
        "ask for access on",
        token="hf_wrong",
    ),
    Case(
        "404: no such repository", lambda hub: hub.repos.pop(REPO), 4, "or has no such repository"
    ),
    Case(
        "404: a listed file is not there",
        fault("resolve.*weight", status(404, {"X-Error-Code": "EntryNotFound"})),
        4,
        "lists a file",
    ),
    Case(
        "404: no such revision",
        fault("^/api", status(404, {"X-Error-Code": "RevisionNotFound"})),
        4,
        "has no revision",
    ),
    Case(
        "401 from the files' host once (an aged signature)",
        fault(WEIGHT, status(403), host="cdn", times=1),
    ),
    Case("wrong bytes once", fault(WEIGHT, damage(150_000), host="cdn", times=3)),
    Case(
        "wrong bytes always",
        fault(WEIGHT, damage(150_000), host="cdn"),
        5,
        "is not what it must be, even when fetched twice",
    ),
    Case(
        "wrong bytes of a small file",
        fault("llm_config.json", damage(3)),
        5,
        "is not what it must be, even when fetched twice",
    ),
    Case("lists ../../x", fault("^/api", tree_of("../../x")), unlisted=True),
    Case("lists C:\\x", fault("^/api", tree_of("C:\\x")), unlisted=True),
    Case("lists CON", fault("^/api", tree_of("CON")), unlisted=True),
    Case(
        "lists a and A",
        fault("^/api", tree_of("a", "A")),
        5,
        "the same name where case does not count",
        unlisted=True,
    ),
    Case("lists a name of 5,000 characters", fault("^/api", tree_of("x" * 5000)), unlisted=True),
    Case(
        "lists 100,000 files",
        fault("^/api", tree_of(*map(str, range(100_000)))),
        4,
        "at most 10,000 files",
        unlisted=True,
    ),
    Case("a listing of more than 32 MB", fault("^/api", endless), 4, "at most 33,554,432 bytes"),
    Case(
        "a listing that is no JSON",
        fault("^/api", status(200, {}, b"{]")),
        4,
        "is not what a hub says",
    ),
    Case(
        "a listing that drips",
        to_hub("^/api", lambda hub: drip(hub, 0.1)),
        4,
        "takes too long",
        patience=BRIEF,
    ),
    Case("no server at all", Hub.close, 4, "cannot be reached"),
]


@dataclass(frozen=True)
class Ended:
    code: int
    document: Any
    notes: str

    @property
    def says(self) -> str:
        error = self.document.get("error")
        return f"{error['message']} -> {error['hint']}" if error else "done"


@contextmanager
def surroundings(home: Path, case: Case) -> Iterator[None]:
    """A store and a Hugging Face home of one's own, quick patience, small segments."""
    variables = {
        "TOKFORGE_HOME": str(home / "store"),
        "TOKFORGE_CONFIG_DIR": str(home / "config"),
        "NO_PROXY": "127.0.0.1,localhost",
    }
    from huggingface_hub import constants

    with (
        mock.patch.dict("os.environ", variables | ({"HF_TOKEN": case.token} if case.token else {})),
        mock.patch("tokforge_models.sources.network.Network", partial(QUICK, **case.patience)),
        mock.patch.object(Store.__init__, "__defaults__", (None, FastDisk(), SEGMENT)),
        mock.patch.object(constants, "HF_TOKEN_PATH", str(home / "token")),
        mock.patch.object(constants, "HF_HUB_CACHE", str(home / "hf")),
    ):
        yield


def layer(home: Path, hub: Hub, case: Case) -> Path:
    files = "" if case.unlisted else ", ".join(f"{{path: {name}}}" for name in FILES)
    text = LAYER.format(source=case.source.format(hub=hub.url), files=files)
    path = home / "layer.yaml"
    path.write_text(text if files else text.replace("    files: []\n", ""), encoding="utf-8")
    return path


def pull(home: Path, hub: Hub, case: Case) -> Ended:
    """Run `tokforge pull demo --json` against the hub in this process."""
    from huggingface_hub import constants

    from tokforge_models.cli.app import run

    out, notes = StringIO(), StringIO()
    with (
        surroundings(home, case),
        mock.patch.object(constants, "ENDPOINT", hub.url),
        redirect_stdout(out),
        redirect_stderr(notes),
    ):
        code = run(["pull", "demo", "--registry", str(layer(home, hub, case)), "--json"])
    return Ended(code, json.loads(out.getvalue()), notes.getvalue())
