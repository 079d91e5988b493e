"""`tokforge run` and `tokforge demo` with the real engine on the embedded pair."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

from command import start, tokforge
from demo_pair import TARGET, needs_mnn
from tokforge_models.cli.app import run

STATS = {
    *("rounds", "drafted", "accepted", "tokens_per_second", "prefill_seconds"),
    *("decode_seconds", "draft_seconds", "verify_seconds", "other_seconds"),
}
PROMPT = "Tell me about the sea."


@pytest.fixture
def pair(home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A store with both demo bundles ready; returns its home."""
    assert run(["pull", "demo-chat", "demo-draft"]) == 0
    capsys.readouterr()
    return home


@needs_mnn
def test_the_document_keeps_the_contract(pair: Path) -> None:
    ended = tokforge("run", "demo-chat", PROMPT, "--max-tokens", "24", "--json")
    assert (ended.code, ended.err) == (0, "")
    document = ended.document
    assert document["usage"]["completion_tokens"] == len(document["token_ids"]) <= 24
    assert document["finish_reason"] in {"stop", "length"}
    assert set(document["stats"]) >= STATS
    assert document["stats"]["drafted"] >= document["stats"]["accepted"]
    assert document["pairing"]["draft"] == "demo-draft"
    assert document["pairing"]["rule"] == "demo"
    assert document["reasoning"] is None


@needs_mnn
def test_thoughts_are_no_part_of_the_answer(home: Path, tmp_path: Path) -> None:
    # A template that opens a thought, which this model never closes.
    copy = shutil.copytree(TARGET, tmp_path / "thinks")
    config = json.loads((copy / "llm_config.json").read_text())
    config["jinja"]["chat_template"] += "<think>"
    (copy / "llm_config.json").write_text(json.dumps(config))
    words = ("run", str(copy), PROMPT, "--max-tokens", "12")
    document = tokforge(*words, "--json").document
    assert document["text"] == ""
    assert document["reasoning"]
    assert document["usage"]["completion_tokens"] > 0
    assert tokforge(*words).out == "\n"


@needs_mnn
def test_text_streams_to_stdout_and_the_rest_to_stderr(pair: Path) -> None:
    # Left to auto, a busy machine may not draft at all.
    words = ("run", "demo-chat", PROMPT, "--max-tokens", "24", "-d", "3", "--numerics", "exact")
    document = tokforge(*words, "--json").document
    ended = tokforge(*words, "--stats")
    assert ended.out == document["text"] + "\n"
    assert "demo-chat with demo-draft" in ended.err
    assert "drafted tokens accepted" in ended.err


@needs_mnn
def test_the_prompt_may_come_from_standard_input(pair: Path) -> None:
    words = ("--max-tokens", "12", "--json")
    given = tokforge("run", "demo-chat", PROMPT, *words).document
    piped = tokforge("run", "demo-chat", *words, stdin=PROMPT).document
    assert piped["token_ids"] == given["token_ids"]
    assert tokforge("run", "demo-chat", stdin=b"\xff\xfe").code == 2


@needs_mnn
def test_paired_and_plain_are_one_text_with_memory_normal(pair: Path) -> None:
    words = (
        "run",
        "demo-chat",
        PROMPT,
        "--max-tokens",
        "48",
        "--memory",
        "normal",
        "--json",
        "-d2",
    )
    paired, plain = tokforge(*words).document, tokforge(*words, "--draft", "none").document
    assert paired["token_ids"] == plain["token_ids"]
    assert paired["stats"]["drafted"] > 0
    assert plain["stats"]["drafted"] == 0


@needs_mnn
def test_a_seed_draws_one_text_with_and_without_a_draft(pair: Path) -> None:
    words = ("run", "demo-chat", PROMPT, "--max-tokens", "32", "--numerics", "exact", "--json")
    warm = ("--temperature", "0.9", "--top-k", "40", "--top-p", "0.95", "--seed", "5")
    paired = tokforge(*words, *warm).document
    plain = tokforge(*words, *warm, "--draft", "none").document
    assert paired["token_ids"] == plain["token_ids"]
    assert paired["seed"] == 5
    assert paired["pairing"]["settings"]["target"]["sampler"] == "mixed"
    refused = tokforge(*words, "--top-p", "1.5")
    assert refused.code == 2
    assert "top_p expected 0 to 1, got 1.5" in refused.document["error"]["message"]


@needs_mnn
def test_drafts_from_the_context_alone(pair: Path) -> None:
    words = ("run", "demo-chat", "--max-tokens", "40", "--memory", "normal", "--json")
    prompt = "Compare a baker and a singer."  # the answer begins with these words
    drafted = tokforge(*words, prompt, "--draft", "lookup", "-d", "3").document
    plain = tokforge(*words, prompt, "--draft", "none").document
    assert drafted["token_ids"] == plain["token_ids"]
    assert drafted["pairing"]["draft"] is None
    assert drafted["pairing"]["lookup"] is True
    assert [count["name"] for count in drafted["stats"]["drafters"]] == ["lookup"]
    assert plain["stats"]["drafters"] == []


@needs_mnn
def test_what_auto_learns_is_kept_for_the_pair(pair: Path) -> None:
    words = ("run", "demo-chat", PROMPT, "--max-tokens", "40", "--json")
    assert not (pair / "learned").exists()
    assert tokforge(*words).code == 0
    (file,) = (pair / "learned").iterdir()
    file.write_text("nonsense")
    assert tokforge(*words).code == 0
    assert json.loads(file.read_text())["schema"] == 3
    assert tokforge(*words, "--draft", "lookup").code == 0
    assert len(list((pair / "learned").iterdir())) == 2


@needs_mnn
def test_a_folder_keeps_what_was_learned_by_its_content(pair: Path, tmp_path: Path) -> None:
    words = (PROMPT, "--max-tokens", "40", "--json")
    for name in ("mine", "moved"):
        copy = shutil.copytree(TARGET, tmp_path / name)
        assert tokforge("run", str(copy), *words).code == 0
        assert len(list((pair / "learned").iterdir())) == 1


@needs_mnn
def test_too_little_memory_is_refused_unless_forced(
    pair: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tokforge_engine.session.free_bytes", lambda: 1000)
    words = ["run", "demo-chat", PROMPT, "--max-tokens", "4", "--json"]
    assert run(words) == 7
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "refused"
    assert "MB are free" in error["message"]
    assert "--force" in error["hint"]
    assert run([*words, "--force"]) == 0
    assert json.loads(capsys.readouterr().out)["pairing"]["draft"] == "demo-draft"


@needs_mnn
def test_where_the_pair_does_not_fit_its_target_runs_alone(
    pair: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs = {False: 10_000, True: 20_000}
    monkeypatch.setattr("tokforge_engine.session.free_bytes", lambda: 15_000)
    monkeypatch.setattr("tokforge_engine.session.needed_by", lambda load: needs[bool(load.draft)])
    words = ["run", "demo-chat", PROMPT, "--max-tokens", "4"]
    assert run(words) == 0
    assert "running without a draft: demo-chat with demo-draft would need" in (
        capsys.readouterr().err
    )
    assert run([*words, "--draft", "demo-draft"]) == 7


@needs_mnn
def test_auto_goes_on_without_its_draft_and_says_why(pair: Path) -> None:
    assert run(["rm", "demo-draft"]) == 0
    ended = tokforge("run", "demo-chat", PROMPT, "--max-tokens", "8", "--json")
    assert ended.code == 0
    assert ended.document["pairing"]["draft"] is None
    assert "not installed" in ended.document["pairing"]["reason"]
    assert "tokforge pull demo-draft" in ended.err
    insisting = tokforge("run", "demo-chat", PROMPT, "--draft", "demo-draft")
    assert insisting.code == 3


@needs_mnn
def test_a_damaged_draft_is_left_out_and_a_damaged_target_refused(pair: Path) -> None:
    for name in ("demo-draft", "demo-chat"):
        (weights,) = (pair / "bundles" / name).glob("*/llm.mnn.weight")
        data = bytearray(weights.read_bytes())
        data[len(data) // 2] ^= 1
        weights.write_bytes(data)
        ended = tokforge("run", "demo-chat", PROMPT, "--max-tokens", "8")
        assert ended.code == (0 if name == "demo-draft" else 5)
        assert f"{name} is damaged" in ended.err
        assert f"tokforge verify --repair {name}" in ended.err


@needs_mnn
def test_a_folder_can_be_the_target(home: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(TARGET, tmp_path / "mine")
    ended = tokforge("run", str(copy), PROMPT, "--max-tokens", "8", "--json")
    assert ended.code == 0
    # It is recognised by its weight file.
    assert ended.document["pairing"]["target"] == "demo-chat"
    (copy / "llm.mnn.weight").unlink()
    assert tokforge("run", str(copy), PROMPT).code == 5


@needs_mnn
def test_ctrl_c_ends_the_run_and_its_worker(pair: Path) -> None:
    process = start("run", "demo-chat", PROMPT, "--max-tokens", "1000", "--draft", "none")
    assert process.stdout is not None
    assert process.stdout.read(1)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    workers = children.read_text(encoding="ascii").split() if children.exists() else []
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    if process.returncode == 0:
        pytest.fail("the answer ended before the signal came; make it longer")
    assert process.returncode == 130
    assert b"Traceback" not in err
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(worker), 0)
            pytest.fail(f"worker {worker} lives on")


@needs_mnn
def test_a_bundle_in_use_is_not_removed(pair: Path) -> None:
    process = start("run", "demo-chat", PROMPT, "--max-tokens", "1000")
    try:
        assert process.stdout is not None
        assert process.stdout.read(1)
        os.kill(process.pid, signal.SIGSTOP)
        ended = tokforge("rm", "demo-chat")
        assert ended.code == 7
        assert "tokforge run demo-chat" in ended.err
    finally:
        os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.communicate()
    assert tokforge("rm", "demo-chat").code == 0


def test_without_mnn_models_do_not_run_and_all_else_works(home: Path, tmp_path: Path) -> None:
    (tmp_path / "MNN").mkdir()
    (tmp_path / "MNN" / "__init__.py").write_text("raise ImportError('no MNN here')\n")
    env = {"PYTHONPATH": str(tmp_path)}
    for words in (
        ["ls"],
        ["resolve", "qwen3-8b"],
        ["pull", "demo-chat", "demo-draft"],
        ["verify", "--full"],
    ):
        assert tokforge(*words, env=env).code == 0, words
    ended = tokforge("run", "demo-chat", PROMPT, "--json", env=env)
    assert ended.code == 8
    assert ended.document["error"]["kind"] == "engine"
    assert "MNN" in ended.document["error"]["message"]
    assert ended.document["error"]["hint"]


@needs_mnn
def test_demo(home: Path) -> None:
    ended = tokforge("demo", "--json")
    assert ended.code == 0
    document = ended.document
    assert document["paired"]["stats"]["drafted"] >= document["paired"]["stats"]["accepted"] > 0
    assert document["plain"]["stats"]["drafted"] == 0
    assert document["ratio"] > 0
    again = tokforge("demo")
    assert again.code == 0
    for word in ("pull", "verify", "resolve", "run", "accepted", "speed", "text"):
        assert f"\n{word}" in f"\n{again.out}"


@needs_mnn
def test_two_demos_at_once(home: Path) -> None:
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda: codes.append(tokforge("demo", "--json").code))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0]
    assert json.loads(tokforge("verify", "--full", "--json").out)["ok"]


@needs_mnn
def test_a_killed_run_leaves_nothing_that_blocks(pair: Path) -> None:
    process = start("run", "demo-chat", PROMPT, "--max-tokens", "1000")
    assert process.stdout is not None
    assert process.stdout.read(1)
    process.kill()
    process.communicate()
    assert tokforge("rm", "demo-chat", "demo-draft").code == 0
