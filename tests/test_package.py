"""What travels in the wheel, and that it works without the tree around it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tokforge_models.registry.registry import builtin_registry_path

ROOT = Path(__file__).resolve().parent.parent


def test_the_tree_reads_the_registry_at_its_root() -> None:
    assert builtin_registry_path() == ROOT / "registry.yaml"


@pytest.mark.slow
def test_the_wheel_is_whole_and_needs_no_tree(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    unpacked = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    names = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*")}
    assert {
        "tokforge_models/registry.yaml",
        "tokforge_models/py.typed",
        "tokforge_engine/py.typed",
        "tokforge_models/embedded/demo-chat/llm.mnn.weight",
        "tokforge_models/embedded/demo-draft/llm.mnn.weight",
    } <= names
    page = (ROOT / "tokforge_models/serving/page").iterdir()
    assert {f"tokforge_models/serving/page/{path.name}" for path in page} <= names
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "tokforge_models",
        "tokforge_engine",
    }
    code = (
        "from tokforge_models.registry.registry import Registry, builtin_registry_path\n"
        "print(builtin_registry_path())\n"
        "assert Registry.load().find('demo chat').id == 'demo-chat'\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(told.stdout.strip()) == unpacked / "tokforge_models" / "registry.yaml"
