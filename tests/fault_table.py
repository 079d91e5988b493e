"""Print the fault table of docs/downloads.md: every case of faults.py, run against a real server.

python tests/fault_table.py
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from faults import CASES, REPO, Case, pull
from hub import running


def row(case: Case) -> str:
    with tempfile.TemporaryDirectory() as home, running() as hub:
        hub.commit(REPO, case.files)
        case.order(hub)
        ended = pull(Path(home), hub, case)
        says = ended.says.replace(hub.url, "https://hub").replace("|", r"\|")
        says = re.sub(r"(127\.0\.0\.1|localhost):\d+", "hub", says)
        return f"| {case.name} | {says} | {ended.code} |"


if __name__ == "__main__":
    sys.stdout.write(
        "| what the server does | what the user sees | exit code |\n| --- | --- | --- |\n"
    )
    for case in CASES:
        sys.stdout.write(f"{row(case)}\n")
