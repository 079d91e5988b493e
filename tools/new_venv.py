"""Make a virtual environment and install into it; plain sentences where that cannot work.

Uses the standard library alone, so that it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

LOWEST, HIGHEST = (3, 11), (3, 14)


def main() -> int:
    """Parse the command line and make the environment; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("install", nargs=argparse.REMAINDER, help="words for pip install")
    given = parser.parse_args()

    if not LOWEST <= sys.version_info[:2] <= HIGHEST:
        found = ".".join(map(str, sys.version_info[:3]))
        print(
            f"tokforge-models needs Python 3.11 to 3.14, but {sys.executable} is {found}; "
            "name another one: make PYTHON=python3.13 ...",
            file=sys.stderr,
        )
        return 2
    # An environment half made by an interrupted run is worth less than the time to make it anew.
    shutil.rmtree(given.folder, ignore_errors=True)
    try:
        venv.create(given.folder, with_pip=True, symlinks=os.name != "nt")
    except subprocess.CalledProcessError:
        print(
            f"{sys.executable} cannot make an environment with pip in it; on Debian and Ubuntu: "
            "apt install python3-venv",
            file=sys.stderr,
        )
        return 2
    python = given.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *given.install], check=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)
