"""Asks the system what device this is, and which MNN it has.

`probe_device` gathers texts from the system; the parsers under it are pure. A fact that cannot be
had is None: probing never fails.

Sources: /proc/cpuinfo, /proc/meminfo, the device tree and cgroup limits on Linux; system
properties on Android (Termux has ``getprop``); sysctl on macOS; the registry and
GlobalMemoryStatusEx on Windows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tokforge_models.device import Device, Platform
from tokforge_models.files.disk import read_small

_COMMAND_SECONDS = 5
_MAX_FACT_BYTES = 4 << 20
_ROOT = Path("/")


def probe_device() -> Device:
    """The facts about the machine that runs this."""
    platform = this_platform()
    chip, ram = _PROBES[platform]()
    return Device(platform, chip, ram, usable_cores())


def installed_mnn() -> str | None:
    """The version of MNN that is installed, read without importing it; None where there is none."""
    try:
        return version("MNN")
    except PackageNotFoundError:
        return None


def this_platform() -> Platform:
    """The operating system. Python for Termux calls itself linux before 3.13."""
    if sys.platform == "android" or hasattr(sys, "getandroidapilevel"):
        return Platform.ANDROID
    if sys.platform == "ios":
        return Platform.IOS
    if sys.platform == "darwin":
        return Platform.MACOS
    if sys.platform == "win32":
        return Platform.WINDOWS
    return Platform.LINUX


def usable_cores(root: Path = _ROOT) -> int | None:
    """Logical processors that this process may use: its affinity, bounded by its cgroup's quota."""
    try:
        cores: int | None = len(os.sched_getaffinity(0))  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError):
        cores = os.cpu_count()
    quota = parse_cpu_max(_text(root / "sys/fs/cgroup/cpu.max"))
    if quota is None:
        # The older cgroup version has one number a file.
        folder = root / "sys/fs/cgroup/cpu"
        numbers = (_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
        quota = parse_cpu_max(" ".join(numbers))
    return min(cores, quota) if cores and quota else cores


def parse_cpu_max(text: str) -> int | None:
    """Whole processors in a cgroup's ``quota period``; None where there is no limit.

    >>> parse_cpu_max("150000 100000")
    2
    """
    match = re.fullmatch(r"([1-9][0-9]{0,15}) ([1-9][0-9]{0,15})\s*", text)
    return max(1, -(-int(match[1]) // int(match[2]))) if match else None


def parse_meminfo(text: str) -> int | None:
    """Bytes of MemTotal in /proc/meminfo."""
    match = re.search(r"^MemTotal:\s+([0-9]{1,15}) kB$", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def parse_cpuinfo(text: str) -> str | None:
    """The processor's name in /proc/cpuinfo: ``model name`` on x86, ``Hardware`` on older ARM
    kernels. Newer ARM kernels name none.
    """
    for key in ("Hardware", "model name", "Model"):
        if match := re.search(rf"^{key}\s*:\s*(\S.*)$", text, re.MULTILINE):
            return _tidy(match[1])
    return None


def parse_compatible(data: str) -> str | None:
    """The SoC in a device tree's ``compatible``: a list that ends with the most general entry.

    >>> parse_compatible("raspberrypi,5-model-b\\0brcm,bcm2712\\0")
    'bcm2712'
    """
    entries = [entry for entry in data.split("\0") if entry]
    return _tidy(entries[-1].partition(",")[2] or entries[-1]) if entries else None


def parse_getprop(text: str) -> str | None:
    """The SoC in the output of Android's ``getprop``, most telling property first."""
    found = dict(re.findall(r"^\[([\w.]+)\]: \[(.*)\]$", text, re.MULTILINE))
    names = ("ro.soc.model", "ro.hardware.chipname", "ro.board.platform", "ro.hardware")
    values = (_tidy(found.get(name, "")) for name in names)
    return next((value for value in values if value and value != "unknown"), None)


def parse_count(text: str) -> int | None:
    """A positive number, alone on its line."""
    match = re.fullmatch(r"\s*([1-9][0-9]{0,18})\s*", text)
    return int(match[1]) if match else None


def _linux(root: Path = _ROOT) -> tuple[str | None, int | None]:
    return _linux_chip(root), parse_meminfo(_text(root / "proc/meminfo"))


def _android() -> tuple[str | None, int | None]:
    return parse_getprop(_run(["getprop"])), parse_meminfo(_text(_ROOT / "proc/meminfo"))


def _apple() -> tuple[str | None, int | None]:
    chip = _tidy(_run(["sysctl", "-n", "machdep.cpu.brand_string"]))
    return chip or None, parse_count(_run(["sysctl", "-n", "hw.memsize"]))


def _linux_chip(root: Path) -> str | None:
    return (
        parse_cpuinfo(_text(root / "proc/cpuinfo"))
        or parse_compatible(_text(root / "proc/device-tree/compatible"))
        or _tidy(_text(root / "sys/devices/soc0/machine"))
        or None
    )


def _tidy(text: str) -> str:
    return " ".join(text.split())


def _text(path: Path) -> str:
    try:
        return read_small(path, _MAX_FACT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_COMMAND_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


if sys.platform == "win32":
    import ctypes
    import winreg

    class _MemoryStatus(ctypes.Structure):
        """MEMORYSTATUSEX of the Windows API."""

        _fields_ = [
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            ("total", ctypes.c_ulonglong),
            ("others", ctypes.c_ulonglong * 6),
        ]

    def _windows() -> tuple[str | None, int | None]:
        return _windows_chip(), _windows_ram()

    def _windows_chip() -> str | None:
        try:
            with winreg.OpenKey(
                winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
            ) as key:
                return _tidy(str(winreg.QueryValueEx(key, "ProcessorNameString")[0])) or None
        except OSError:
            return None

    def _windows_ram() -> int | None:
        status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
        if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            return None
        return int(status.total)

else:

    def _windows() -> tuple[str | None, int | None]:
        return None, None


_PROBES: dict[Platform, Callable[[], tuple[str | None, int | None]]] = {
    Platform.ANDROID: _android,
    Platform.IOS: _apple,
    Platform.LINUX: _linux,
    Platform.MACOS: _apple,
    Platform.WINDOWS: _windows,
}
