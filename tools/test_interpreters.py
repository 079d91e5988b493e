"""Run the fast tests on the lowest and the highest supported Python that this machine has.

The interpreter that runs this file has been tested by its own `make test`; the other end of the
range gets an environment of its own in the tree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SUPPORTED = [(3, minor) for minor in range(11, 15)]
ROOT = Path(__file__).resolve().parent.parent


def version_of(python: Path) -> tuple[int, int] | None:
    """Major and minor version, or None where the file does not run (a dangling shim)."""
    try:
        answer = subprocess.run(
            [python, "-c", "import sys, ssl, ctypes, venv; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    major, minor = answer.stdout.split()
    return int(major), int(minor)


def candidates() -> list[Path]:
    """Files that may be interpreters: on PATH, and where pyenv and uv keep theirs."""
    found = [shutil.which(f"python{major}.{minor}") for major, minor in SUPPORTED]
    paths = [Path(sys.executable), *(Path(path) for path in found if path)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    uv = Path.home() / ".local/share/uv/python"
    return [*paths, *pyenv.glob("*/bin/python3"), *uv.glob("*/bin/python3")]


def main() -> int:
    """Test the ends of the range that are not this interpreter; returns the exit code."""
    interpreters: dict[tuple[int, int], Path] = {}
    for python in candidates():
        version = version_of(python)
        if version in SUPPORTED:
            interpreters.setdefault(version, python)
    ends = {min(interpreters), max(interpreters)}
    print(
        "interpreters found:",
        *(f"{major}.{minor}" for major, minor in sorted(interpreters)),
        "- testing the ends:",
        *(f"{major}.{minor}" for major, minor in sorted(ends)),
        flush=True,
    )
    for version in sorted(ends - {sys.version_info[:2]}):
        name = f".venv-{version[0]}.{version[1]}"
        python = ROOT / name / "bin" / "python"
        made = [
            str(interpreters[version]),
            "tools/new_venv.py",
            name,
            "--editable",
            ".[dev]",
        ]
        subprocess.run(made, cwd=ROOT, check=True)
        tests = [str(python), "-m", "pytest", "-n", "auto", "--no-skips", "-m", "not slow"]
        subprocess.run(tests, cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)
