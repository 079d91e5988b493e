"""The embedded pair's recipe runs, and what it makes is a pair for the engine."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tokforge_engine import GenerateOptions, ModelSpec, Session

ROOT = Path(__file__).resolve().parent.parent
RECIPE_PYTHON = ROOT / ".venv-recipe" / "bin" / "python"


def test_no_wording_of_what_is_judged_is_trained_on() -> None:
    command = [sys.executable, "-m", "demo_pair.subject"]
    done = subprocess.run(command, cwd=ROOT / "tools", check=True, capture_output=True, text=True)
    wordings: defaultdict[str, set[str]] = defaultdict(set)
    nouns: defaultdict[str, set[str]] = defaultdict(set)
    for line in done.stdout.splitlines():
        use, key, wording = line.split("\t")
        wordings[use].add(wording.lower().rstrip("?.!"))
        nouns[use].update(key.split(":")[1:])
    trained = wordings["taught"] | wordings["draft only"]
    assert not trained & (wordings["held out"] | wordings["unknown"])
    assert not nouns["unknown"] & (nouns["taught"] | nouns["draft only"] | nouns["held out"])
    assert len(wordings["held out"]) > 500
    assert len(wordings["unknown"]) > 100


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not RECIPE_PYTHON.exists(), reason="make .venv-recipe/.ready has not been run")
def test_the_quick_recipe_makes_a_pair_that_runs(tmp_path: Path) -> None:
    out, work = tmp_path / "out", tmp_path / "work"
    command: list[str | Path] = [
        RECIPE_PYTHON,
        "tools/make_demo_pair.py",
        "--quick",
        "--out",
        out,
        "--work",
        work,
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    options = GenerateOptions(max_tokens=16, d=2)
    with Session(ModelSpec(out / "demo-chat"), ModelSpec(out / "demo-draft")) as session:
        generation = session.generate("What is a cat?", options)
        for _ in generation:
            pass
    assert generation.result.stats.drafted > 0
