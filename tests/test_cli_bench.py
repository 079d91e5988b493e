"""`tokforge bench` on the embedded pair, and what it does with files and Ctrl+C."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from command import start, tokforge
from demo_pair import needs_mnn
from measuring_kit import EXAMPLE
from tokforge_models.cli.app import run
from tokforge_models.measuring.document import as_document, read_report
from tokforge_models.measuring.keeping import judge
from tokforge_models.resolution.measurement import write_measurement
from tokforge_models.store.measurements import Measurements

TINY = ("--workload", "prose", "--workload", "code", "--max-tokens", "8", "-d", "2")


@pytest.fixture
def pair(home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert run(["pull", "demo-chat", "demo-draft"]) == 0
    capsys.readouterr()
    return home


@needs_mnn
def test_a_bench_is_measured_kept_shown_and_compared(pair: Path, tmp_path: Path) -> None:
    ended = tokforge("bench", "demo-chat", *TINY, "--repetitions", "2", "--json")
    assert ended.code == 0
    assert "repetition 1 done" in ended.err
    file = tmp_path / "bench.json"
    file.write_text(ended.out, encoding="utf-8")
    report = read_report(file)
    assert report.complete
    (one,) = report.pairs
    assert one.draft is not None
    assert one.draft.id == "demo-draft"
    assert [way.name for way in one.ways] == ["plain", "d 2", "lookup", "auto"]
    assert one.workloads == ("prose", "code")
    for row in one.rows:
        assert len(row.speeds) == len(row.ratios) == 2
        assert row.of == 4
        assert row.prefill_speeds
    assert [cost.d for cost in one.costs] == [0, 2]

    shown = tokforge("bench", "--read", str(file), "--markdown")
    assert shown.code == 0
    assert "| way | prose | code | same text | all |" in shown.out
    compared = tokforge("bench", "--compare", str(file), str(file), "--json")
    assert compared.code == 0
    changes = compared.document["changes"]
    assert len(changes) == len(one.rows)
    assert all(change["change"] == 0 for change in changes)


@needs_mnn
def test_what_was_found_is_saved_and_gone_by(pair: Path, tmp_path: Path) -> None:
    ended = tokforge("bench", "demo-chat", *TINY, "--repetitions", "3", "--save", "--json")
    assert ended.code == 0
    alone, paired = ended.document["saved"]
    assert (alone["draft"], paired["draft"]) == (None, "demo-draft")
    kept = Measurements(pair).read()
    assert {str(path) for path in kept.measurements} == {
        each["file"] for each in (alone, paired) if each["file"]
    }
    written = Path(alone["file"])
    profile = kept.measurements[written]
    assert profile.draft is None
    assert profile.by == "bench"
    assert profile.mnn == ended.document["mnn"]
    file = tmp_path / "bench.json"
    file.write_text(ended.out, encoding="utf-8")
    again = judge(read_report(file))[0].profile
    assert again is not None
    assert write_measurement(again) == written.read_bytes()
    assert run(["resolve", "demo-chat", "--draft", "none"]) == 0


def test_what_could_not_be_kept_is_not_measured(
    pair: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pair / "measurements").write_text("", encoding="utf-8")
    assert run(["bench", "demo-chat", "--save", "--repetitions", "1000"]) == 6
    assert "cannot make the folder" in capsys.readouterr().err


@needs_mnn
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for another process")
def test_ctrl_c_keeps_what_was_measured(pair: Path) -> None:
    process = start("bench", "demo-chat", *TINY, "--repetitions", "1000", "--json")
    assert process.stderr is not None
    assert b"texts in 1000 repetitions" in process.stderr.readline()
    assert b"repetition 1 done" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    document = json.loads(out)
    assert document["complete"] is False
    assert document["error"]["kind"] == "interrupted"
    assert document["pairs"][0]["rows"][0]["speeds"]


@needs_mnn
def test_a_prompt_that_does_not_fit_is_told(pair: Path) -> None:
    ended = tokforge(
        "bench", "demo-chat", "--draft", "none", "--repetitions", "1", "--max-tokens", "4",
        "--workload", "long prompt", "--workload", "prose", "--json",
    )  # fmt: skip
    assert ended.code == 0
    (skipped,) = ended.document["skipped"]
    assert skipped["workload"] == "long prompt"
    assert "too long for demo-chat" in skipped["why"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "bench takes one thing"),
        (["demo-chat", "--read", "x.json"], 2, "bench takes one thing"),
        (["demo-chat", "--json", "--markdown"], 2, "one form"),
        (["--read", "x.json", "--save"], 2, "--save keeps what a bench measures"),
        (["demo-chat", "--plot", "x.pdf"], 2, ".png or .svg"),
        (["demo-chat", "--workload", "poems"], 2, "no workload is called 'poems'"),
        (["demo-chat", "-d", "8"], 2, "less than or equal to 7"),
        (["qwen3-99b"], 3, "qwen3-99b"),
        (["demo-draft"], 7, "is a draft"),
        (["--read", "none.json"], 7, "no such file"),
        (["demo-chat"], 3, "not installed"),
    ],
)
def test_exit_codes(home: Path, capsys: pytest.CaptureFixture[str], words, code, said) -> None:
    assert run(["bench", *words]) == code
    captured = capsys.readouterr()
    assert said in captured.out + captured.err


def test_a_comparison_has_no_plot(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(as_document(EXAMPLE)), encoding="utf-8")
    assert run(["bench", "--compare", str(file), str(file)]) == 0
    assert run(["bench", "--compare", str(file), str(file), "--plot", "x.png"]) == 2
