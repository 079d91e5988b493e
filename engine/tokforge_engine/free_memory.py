"""How much memory a new process may take here, asked of the system.

Sources: /proc/meminfo and the limits of control groups, both versions, on Linux and Android;
``vm_stat`` on macOS; GlobalMemoryStatusEx on Windows. Swap space is not counted: a model that
lies there is of no use.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tokforge_engine.regular_file import read_head

_ROOT = Path("/")
_MAX_BYTES = 1 << 20
_COMMAND_SECONDS = 5


def free_bytes(root: Path = _ROOT) -> int | None:
    """Bytes of memory that are free or soon would be; None where the system does not tell.

    Args:
        root: where the system's files are looked for.
    """
    if sys.platform == "win32":
        return _windows()
    if sys.platform == "darwin":
        return parse_vm_stat(_vm_stat())
    return _linux(root)


def parse_available(meminfo: str) -> int | None:
    """Bytes of MemAvailable in /proc/meminfo: free, or cached and quickly given up."""
    match = re.search(r"^MemAvailable:\s+([0-9]{1,15}) kB$", meminfo, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def parse_vm_stat(text: str) -> int | None:
    """Bytes in ``vm_stat``'s pages that are free or given up first."""
    size = re.search(r"page size of ([0-9]{1,9}) bytes", text)
    pages = re.findall(
        r"^Pages (?:free|inactive|purgeable|speculative):\s+([0-9]{1,15})\.", text, re.MULTILINE
    )
    return int(size[1]) * sum(map(int, pages)) if size and pages else None


def parse_groups(text: str) -> tuple[str | None, str | None]:
    """Paths of a process's group in /proc/self/cgroup: of version 2, and of version 1's memory.

    >>> parse_groups("4:memory:/a/b\\n0::/c\\n")
    ('/c', '/a/b')
    """
    second = first = None
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        kinds, _, path = rest.partition(":")
        if not path.startswith("/") or ".." in PurePosixPath(path).parts:
            continue
        if number == "0" and not kinds:
            second = path
        elif "memory" in kinds.split(","):
            first = path
    return second, first


def _linux(root: Path) -> int | None:
    available = parse_available(_text(root / "proc/meminfo"))
    second, first = parse_groups(_text(root / "proc/self/cgroup"))
    base = root / "sys/fs/cgroup"
    limits = [
        *_left(base, second, "memory.max", "memory.current", "inactive_file"),
        *_left(
            base / "memory",
            first,
            *("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ),
    ]
    return min(limits, default=None) if available is None else min([available, *limits])


def _left(base: Path, group: str | None, limit: str, usage: str, cached: str) -> Iterator[int]:
    """Bytes left in a group and in those around it, where they have a limit.

    Within a container the path may be the host's, and its end alone, or nothing of it, be there.
    """
    if group is None:
        return
    path = PurePosixPath(group)
    for each in (path, *path.parents):
        folder = base / str(each).lstrip("/")
        most, used = _number(folder / limit), _number(folder / usage)
        if most is None or used is None:
            continue
        match = re.search(
            rf"^{cached} ([0-9]{{1,19}})$", _text(folder / "memory.stat"), re.MULTILINE
        )
        # Pages of files that nobody has used lately are given up before a process is killed.
        yield max(most - used + min(int(match[1]) if match else 0, used), 0)


def _number(path: Path) -> int | None:
    match = re.fullmatch(r"([0-9]{1,19})\s*", _text(path))
    return int(match[1]) if match else None


def _text(path: Path) -> str:
    try:
        return read_head(path, _MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _vm_stat() -> str:
    try:
        done = subprocess.run(
            ["vm_stat"],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_COMMAND_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


if sys.platform == "win32":
    import ctypes

    class _MemoryStatus(ctypes.Structure):
        """MEMORYSTATUSEX of the Windows API."""

        _fields_ = [
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            ("total", ctypes.c_ulonglong),
            ("available", ctypes.c_ulonglong),
            ("others", ctypes.c_ulonglong * 5),
        ]

    def _windows() -> int | None:
        status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
        if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            return None
        return int(status.available)

else:

    def _windows() -> int | None:
        return None
