"""The embedded pair's recipe runs, and what it makes is a pair for the engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tokforge_engine import GenerateOptions, ModelSpec, Session

ROOT = Path(__file__).resolve().parent.parent
RECIPE_PYTHON = ROOT / ".venv-recipe" / "bin" / "python"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not RECIPE_PYTHON.exists(), reason="make .venv-recipe/.ready has not been run")
def test_the_quick_recipe_makes_a_pair_that_runs(tmp_path: Path) -> None:
    out, work = tmp_path / "out", tmp_path / "work"
    command = [RECIPE_PYTHON, "tools/make_demo_pair.py", "--quick", "--out", out, "--work", work]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    options = GenerateOptions(max_tokens=16, d=2)
    with Session(ModelSpec(out / "demo-chat"), ModelSpec(out / "demo-draft")) as session:
        generation = session.generate("What is a cat?", options)
        for _ in generation:
            pass
    assert generation.result.stats.drafted > 0
