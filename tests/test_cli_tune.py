"""`tokforge tune` on the embedded pair: what it prints and saves, Ctrl+C, kill -9, and going on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from command import start, tokforge
from demo_pair import needs_mnn
from tokforge_models.cli.app import run
from tokforge_models.cli.tune import seconds_in
from tokforge_models.errors import UsageError
from tokforge_models.files.digests import pair_key
from tokforge_models.measuring.trials import Failed, Trial, Tried
from tokforge_models.measuring.trying import Trier
from tokforge_models.measuring.tuning_file import read_search
from tokforge_models.resolution.measurement import MeasuredBy, read_measurement
from tokforge_models.store.store import Store

TINY = ("--workload", "prose", "--budget", "8s")


@pytest.fixture
def pair(home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert run(["pull", "demo-chat", "demo-draft"]) == 0
    capsys.readouterr()
    return home


def trials_in(home: Path) -> tuple[Tried, ...]:
    (path,) = (home / "tuning").glob("*.json")
    return read_search(path).known.tried


def stop_after(lines: int, how: signal.Signals) -> tuple[int, str]:
    """Start a tune, stop it once so many lines of progress are there; exit code and stderr."""
    process = start("tune", "demo-chat", *TINY)
    assert process.stderr is not None
    told = [process.stderr.readline().decode() for _ in range(lines)]
    process.send_signal(how)
    rest = process.stderr.read().decode()
    return process.wait(60), "".join(told) + rest


@needs_mnn
def test_a_tune_is_told_saved_and_goes_on(pair: Path) -> None:
    ended = tokforge("tune", "demo-chat", *TINY, "--json")
    document = ended.document
    assert ended.code == (0 if document["chosen"] else 7)
    assert "left] costs (1): as shipped" in ended.err
    assert document["target"] == "demo-chat"
    assert document["draft"] == "demo-draft"
    assert len(document["trials"]) == len(trials_in(pair))
    for file in document["saved"]:
        profile = read_measurement(Path(file))
        assert profile.by is MeasuredBy.TUNE
    again = tokforge("tune", "demo-chat", *TINY, "--json")
    assert "earlier trials count" in again.err
    assert again.document["trials"][: len(document["trials"])] == document["trials"]
    assert again.document["verdict"]
    shown = tokforge("tune", "demo-chat", *TINY)
    assert shown.out.splitlines()[1].startswith("verdict  ")


@needs_mnn
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL for another process")
def test_a_killed_tune_goes_on_where_it_was(pair: Path) -> None:
    # Where a fifth trial is told, four are on disk.
    stop_after(5, signal.SIGKILL)
    kept = trials_in(pair)
    assert len(kept) >= 4
    ended = tokforge("tune", "demo-chat", *TINY, "--json")
    assert f"{len(kept)} earlier trials count" in ended.err
    assert trials_in(pair)[: len(kept)] == kept
    every = [each.trial for each in trials_in(pair)]
    assert len(set(every)) == len(every)


@needs_mnn
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for another process")
def test_ctrl_c_keeps_the_trials_and_saves_no_profile(pair: Path) -> None:
    code, told = stop_after(4, signal.SIGINT)
    assert code == 130
    assert "the same command goes on from there" in told
    assert len(trials_in(pair)) >= 3
    assert not (pair / "measurements").exists()


@needs_mnn
def test_two_tunes_of_one_pair_do_not_share_the_cores(pair: Path) -> None:
    process = start("tune", "demo-chat", *TINY)
    assert process.stderr is not None
    process.stderr.readline()
    second = tokforge("tune", "demo-chat", *TINY, "--json")
    assert second.code == 7
    said = second.document["error"]["message"]
    assert "the tuning of demo-chat is being worked on by `tokforge tune demo-chat" in said
    assert str(process.pid) in said
    process.kill()
    process.communicate()
    assert tokforge("tune", "demo-chat", *TINY, "--json").code in {0, 7}


@needs_mnn
def test_other_conditions_and_fresh_begin_anew(pair: Path) -> None:
    first = tokforge("tune", "demo-chat", *TINY, "--draft", "none")
    assert first.code in {0, 7}
    (path,) = (pair / "tuning").glob("*.json")
    file = json.loads(path.read_text())
    file["conditions"]["mnn"] = "0.0.1"
    path.write_text(json.dumps(file))
    other = tokforge("tune", "demo-chat", *TINY, "--draft", "none")
    assert "earlier trials do not count any more: another mnn" in other.err
    path.write_text("{")
    broken = tokforge("tune", "demo-chat", *TINY, "--draft", "none", "--json")
    assert broken.code == 7
    assert "--fresh" in broken.document["error"]["hint"]
    fresh = tokforge("tune", "demo-chat", *TINY, "--draft", "none", "--fresh")
    assert fresh.code in {0, 7}
    assert read_search(path).known.tried


@needs_mnn
def test_ctrl_c_before_the_first_trial_tells_nothing_of_earlier_ones(
    pair: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_trier: Trier, _trial: Trial) -> Tried:
        raise KeyboardInterrupt

    monkeypatch.setattr(Trier, "try_it", interrupted)
    contents = [Store().installed()[id].content for id in ("demo-chat", "demo-draft")]
    path = pair / "tuning" / f"{pair_key(*contents)}.json"
    path.parent.mkdir()
    path.write_text("{")
    assert run(["tune", "demo-chat", *TINY, "--fresh", "--json"]) == 130
    document = json.loads(capsys.readouterr().out)
    assert document["trials"] == []
    assert document["error"]["kind"] == "interrupted"


@needs_mnn
def test_a_pair_that_does_not_run_ends_with_the_engines_code(
    pair: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dead(_trier: Trier, trial: Trial) -> Tried:
        return Tried(trial, Failed("it died"), 0.1)

    monkeypatch.setattr(Trier, "try_it", dead)
    assert run(["tune", "demo-chat", *TINY, "--json"]) == 8
    assert "it died" in json.loads(capsys.readouterr().out)["verdict"]


def test_what_cannot_be_tuned_is_refused(home: Path) -> None:
    missing = tokforge("tune", "demo-chat", "--json")
    assert missing.code == 3
    assert missing.document["error"]["kind"] == "unknown"
    unknown = tokforge("tune", "demo-chat", "--workload", "songs", "--json")
    assert unknown.code == 2
    assert not (home / "tuning").exists()


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("2m", 120), ("10m", 600), ("1h", 3600), ("45", 45)]
)
def test_budgets(text: str, seconds: float) -> None:
    assert seconds_in(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "-5m", "2 minutes", "1d", "25h", "9" * 30, "m"])
def test_budgets_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--budget takes a time"):
        seconds_in(text)
