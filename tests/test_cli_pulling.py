"""`tokforge pull` and its kin as commands, against a real server and real signals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from command import COMMAND, Ended, tokforge
from faults import FILES, LAYER, REPO
from hub import Hub, drip, running, stall
from store_kit import make_files, write_files
from tokforge_models.cli.options import bytes_a_second
from tokforge_models.errors import UsageError


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Hub]:
    with running() as hub:
        hub.commit(REPO, dict(FILES))
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        files = ", ".join(f"{{path: {name}}}" for name in FILES)
        (tmp_path / "layer.yaml").write_text(LAYER.format(source=f"hf:{REPO}", files=files))
        monkeypatch.chdir(tmp_path)
        yield hub


def command(*words: str, **env: str) -> Ended:
    return tokforge(*words, "--registry", "layer.yaml", "--json", env=env)


def only(ended: Ended) -> Any:
    assert ended.code == 0, ended
    (bundle,) = ended.document["bundles"]
    return bundle


def test_pull_says_what_came_and_whom_it_asked(hub: Hub) -> None:
    ended = command("pull", "demo")
    bundle = only(ended)
    assert bundle["state"] == "ready"
    assert bundle["revision"] == hub.repos[REPO].head
    assert bundle["bytes_fetched"] == sum(map(len, FILES.values()))
    assert bundle["hosts"] == [hub.url.removeprefix("http://"), hub.cdn_url.removeprefix("http://")]
    for host in bundle["hosts"]:
        assert f"contacting {host}" in ended.err
    assert all(hub.repos[REPO].head in path for path in hub.paths("resolve"))


def test_an_endpoint_other_than_the_users_gets_no_token(hub: Hub) -> None:
    hub.repos[REPO].token = "hf_secret"
    with running() as mirror:
        mirror.commit(REPO, dict(FILES))
        mirror.repos[REPO].token = "hf_secret"
        refused = command("pull", "demo", "--endpoint", mirror.url, HF_TOKEN="hf_secret")
        assert refused.code == 4
        assert mirror.requests
        assert not mirror.tokens_seen("hub")
    assert only(command("pull", "demo", HF_TOKEN="hf_secret"))["state"] == "ready"


def test_the_token_file_is_read_where_a_token_is_needed(hub: Hub, tmp_path: Path) -> None:
    hub.repos[REPO].token = "hf_saved"
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "token").write_text("hf_saved")
    assert only(command("pull", "demo"))["state"] == "ready"
    assert hub.tokens_seen("hub") == {"Bearer hf_saved"}
    assert not hub.tokens_seen("cdn")


def test_hf_hub_offline_is_honoured(hub: Hub) -> None:
    ended = command("pull", "demo", HF_HUB_OFFLINE="1")
    assert ended.code == 4
    assert "HF_HUB_OFFLINE is set" in ended.document["error"]["message"]
    assert not hub.requests


NO_SOCKETS = """
import socket, sys
def denied(*_, **__): raise AssertionError("a socket was opened")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = denied
from tokforge_models.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def without_sockets(*words: str) -> Ended:
    ended = subprocess.run(
        [sys.executable, "-c", NO_SOCKETS, *words, "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def test_offline_opens_no_socket_and_lists_what_is_missing(hub: Hub) -> None:
    words = ("--registry", "layer.yaml", "--offline")
    missing = without_sockets("pull", "demo", *words)
    assert missing.code == 4, missing.err
    for name in FILES:
        assert name in missing.document["error"]["message"]
    online = without_sockets("pull", "demo", "--registry", "layer.yaml")
    assert "a socket was opened" in online.err + online.out
    only(command("pull", "demo"))
    ready = without_sockets("pull", "demo", *words)
    assert only(ready)["bytes_fetched"] == 0
    assert only(ready)["hosts"] == []


def interrupt(hub: Hub, *words: str, once: Callable[[], bool]) -> tuple[int, str]:
    """Start a command, send Ctrl+C once something holds, and give it a second to end."""
    process = subprocess.Popen(
        [*COMMAND, *words, "--registry", "layer.yaml", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not once():
        hub.wait(0.01)
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    try:
        out, _ = process.communicate(timeout=10)
    finally:
        process.kill()
    return process.returncode, out


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT")
@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("^/api", stall),
        ("weight", lambda hub: stall(hub, 100)),
        ("weight", lambda hub: drip(hub, 0.01)),
    ],
)
def test_ctrl_c_ends_whatever_it_waits_for(hub: Hub, pattern: str, fault: Any) -> None:
    """The server gives nothing for an hour and patience lasts twenty seconds; neither is waited."""
    hub.fault(pattern, fault(hub))
    code, out = interrupt(hub, "pull", "demo", once=lambda: bool(hub.paths(pattern)))
    assert code == 130
    assert json.loads(out)["error"]["kind"] == "interrupted"
    hub.heal()
    assert only(command("pull", "demo"))["state"] == "ready"


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_kills_cost_at_most_the_segments_in_flight(hub: Hub, tmp_path: Path) -> None:
    """Real processes, killed when so much has been sent; the files are of five segments."""
    files = make_files(weight_bytes=40 << 20)
    hub.commit(REPO, dict(files))
    hub.bytes_a_second = None
    begin, size = hub.sent, sum(map(len, files.values()))
    kills = 0
    for part in (0.2, 0.5, 0.8):
        process = subprocess.Popen(
            [*COMMAND, "pull", "demo", "--registry", "layer.yaml", "--limit-rate", "60M"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        goal = hub.sent + part * (8 << 20)
        while hub.sent < goal and process.poll() is None:
            hub.wait(0.005)
        process.kill()
        process.wait()
        kills += 1
    bundle = only(command("pull", "demo"))
    assert bundle["state"] == "ready"
    for name, data in files.items():
        assert Path(bundle["path"], name).read_bytes() == data
    assert hub.sent - begin <= size + kills * 4 * (8 << 20)


def test_a_repair_fetches_only_the_damaged_segment(hub: Hub) -> None:
    files = make_files(weight_bytes=20 << 20)
    hub.commit(REPO, dict(files))
    weight = Path(only(command("pull", "demo"))["path"], "llm.mnn.weight")
    with weight.open("r+b") as stream:
        stream.seek(9 << 20)
        stream.write(b"rot")
    hub.requests.clear()
    before = hub.sent
    ended = command("verify", "demo", "--repair")
    assert ended.code == 0, ended
    assert ended.document["ok"]
    assert weight.read_bytes() == files["llm.mnn.weight"]
    (asked,) = {seen.range for seen in hub.requests if seen.path.endswith("weight")}
    assert asked == (8 << 20, 16 << 20)
    assert hub.sent - before < (8 << 20) + 10_000


def test_lock_pull_locked_update_and_prune(hub: Hub, home: Path) -> None:
    first = hub.repos[REPO].head
    only(command("pull", "demo"))
    assert command("lock", "demo").document["bundles"] == ["demo"]
    newer = {**FILES, "llm.mnn": make_files(seed=5)["llm.mnn"]}
    second = hub.commit(REPO, dict(newer))
    updated = only(command("update", "demo"))
    assert updated["revision"] == second
    assert updated["bytes_fetched"] == len(newer["llm.mnn"])
    litter = tokforge("prune", "--json").document
    assert not litter["removed"]
    assert [(one["revision"], one["kind"]) for one in litter["litter"]] == [(first, "unused")]
    back = only(command("pull", "demo", "--locked"))
    assert back["revision"] == first
    assert back["bytes_fetched"] == 0
    stale = home / "fingerprints" / f"{'ab' * 32}.fingerprint"
    stale.parent.mkdir(exist_ok=True)
    stale.write_bytes(b"old")
    pruned = tokforge("prune", "--unused", "--json").document
    assert pruned["removed"]
    assert pruned["stale"]["files"] == 1
    assert not stale.exists()
    assert tokforge("prune", "--json").document["litter"] == []
    verified = tokforge("verify", "demo", "--full", "--registry", "layer.yaml", "--json")
    assert verified.document["ok"]


def test_what_a_lock_file_does_not_know(hub: Hub) -> None:
    assert command("pull", "demo", "--locked").code == 6
    Path("tokforge.lock").write_text('{"schema": 1, "bundles": {}}')
    ended = command("pull", "demo", "--locked")
    assert ended.code == 2
    assert "does not say what demo must be" in ended.document["error"]["message"]


def test_a_dry_run_tells_the_missing_bytes_and_writes_nothing(hub: Hub, home: Path) -> None:
    (plan,) = command("pull", "demo", "--dry-run").document["bundles"]
    assert plan["missing_bytes"] == sum(map(len, FILES.values()))
    assert {file["action"] for file in plan["files"]} == {"fetch"}
    assert not home.exists() or not list(home.rglob("*"))


def test_a_dry_run_shows_the_others_beside_one_that_fails(hub: Hub) -> None:
    nowhere = "acceleration-pack-qwen3-0.6b-14b-paired"
    ended = command("pull", "demo", nowhere, "demo-chat", "--dry-run")
    assert ended.code == 4
    demo, failed, _ = ended.document["bundles"]
    assert demo["missing_bytes"] == sum(map(len, FILES.values()))
    assert failed["id"] == nowhere
    assert failed["error"] == ended.document["error"]
    assert "no public address" in failed["error"]["message"]


def test_an_update_of_everything_leaves_imports_alone(hub: Hub, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "mine", dict(make_files(seed=7)))
    imported = only(command("import", str(folder), "--as", "demo"))
    ended = command("update")
    assert (ended.code, ended.document) == (0, {"bundles": []})
    assert "demo stays as it is" in ended.err
    assert only(command("update", "demo"))["revision"] != imported["revision"]


@pytest.mark.parametrize(
    ("text", "rate"), [("1024", 1024), ("500K", 500_000), ("2m", 2_000_000), ("1G", 10**9)]
)
def test_rates(text: str, rate: int) -> None:
    assert bytes_a_second(text) == rate


@pytest.mark.parametrize("text", ["", "0", "1023", "-5", "2X", "1.5M", "M"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be"):
        bytes_a_second(text)


def test_no_rate_is_no_limit() -> None:
    assert bytes_a_second(None) is None
