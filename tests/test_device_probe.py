"""The parsers of what systems say about themselves, with texts as systems write them."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models import device_probe
from tokforge_models.device import GIB, Device, Platform
from tokforge_models.device_probe import (
    installed_mnn,
    parse_compatible,
    parse_count,
    parse_cpu_max,
    parse_cpuinfo,
    parse_getprop,
    parse_meminfo,
    probe_device,
    this_platform,
    usable_cores,
)

X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
model\t\t: 1
model name\t: AMD EPYC   9R14
cpu MHz\t\t: 3700.000
"""
OLD_ARM = """Processor\t: AArch64 Processor rev 13 (aarch64)
processor\t: 0
BogoMIPS\t: 38.40

Hardware\t: Qualcomm Technologies, Inc SM8250
"""
NEW_ARM = """processor\t: 0
BogoMIPS\t: 48.00
CPU implementer\t: 0x41
CPU part\t: 0xd81
"""
PI = NEW_ARM + "\nRevision\t: c04170\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n"
MEMINFO = """MemTotal:       15612345 kB
MemFree:          512000 kB
MemAvailable:    9000000 kB
"""
GETPROP = """[ro.board.platform]: [sun]
[ro.hardware]: [qcom]
[ro.product.model]: [A [very] special phone]
[ro.soc.manufacturer]: [QTI]
[ro.soc.model]: [SM8750]
"""


@pytest.mark.parametrize(
    ("text", "chip"),
    [
        (X86, "AMD EPYC 9R14"),
        (OLD_ARM, "Qualcomm Technologies, Inc SM8250"),
        (NEW_ARM, None),
        (PI, "Raspberry Pi 5 Model B Rev 1.0"),
        ("", None),
        ("model name\t:\n", None),
    ],
)
def test_cpuinfo(text: str, chip: str | None) -> None:
    assert parse_cpuinfo(text) == chip


@pytest.mark.parametrize(
    ("text", "ram"),
    [(MEMINFO, 15612345 * 1024), ("", None), ("MemTotal: many kB\n", None)],
)
def test_meminfo(text: str, ram: int | None) -> None:
    assert parse_meminfo(text) == ram


@pytest.mark.parametrize(
    ("text", "chip"),
    [
        ("qcom,sm8550-mtp\0qcom,sm8550\0", "sm8550"),
        ("raspberrypi,5-model-b\0brcm,bcm2712\0", "bcm2712"),
        ("plain\0", "plain"),
        ("", None),
        ("\0\0", None),
    ],
)
def test_compatible(text: str, chip: str | None) -> None:
    assert parse_compatible(text) == chip


@pytest.mark.parametrize(
    ("text", "chip"),
    [
        (GETPROP, "SM8750"),
        ("[ro.soc.model]: []\n[ro.hardware.chipname]: [exynos2400]\n", "exynos2400"),
        ("[ro.soc.model]: [unknown]\n[ro.board.platform]: [mt6991]\n", "mt6991"),
        ("[ro.hardware]: [qcom]\n", "qcom"),
        ("[ro.build.type]: [user]\n", None),
        ("", None),
    ],
)
def test_getprop(text: str, chip: str | None) -> None:
    assert parse_getprop(text) == chip


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("max 100000\n", None),
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("10000 100000\n", 1),
        ("-1 100000", None),
        ("200000 0", None),
        ("", None),
    ],
)
def test_cpu_max(text: str, cores: int | None) -> None:
    assert parse_cpu_max(text) == cores


@pytest.mark.parametrize(
    ("text", "count"), [("17179869184\n", 17179869184), ("0\n", None), ("x", None), ("", None)]
)
def test_count(text: str, count: int | None) -> None:
    assert parse_count(text) == count


def test_a_cgroup_bounds_the_cores(tmp_path: Path) -> None:
    free = usable_cores(tmp_path)
    assert free is not None
    folder = tmp_path / "sys/fs/cgroup"
    folder.mkdir(parents=True)
    (folder / "cpu.max").write_text("50000 100000\n")
    assert usable_cores(tmp_path) == 1
    (folder / "cpu.max").unlink()
    older = folder / "cpu"
    older.mkdir()
    (older / "cpu.cfs_period_us").write_text("100000\n")
    (older / "cpu.cfs_quota_us").write_text("100000\n")
    assert usable_cores(tmp_path) == 1
    (older / "cpu.cfs_quota_us").write_text("-1\n")
    assert usable_cores(tmp_path) == free


def answers(monkeypatch: pytest.MonkeyPatch, platform: Platform, replies: dict[str, str]) -> Device:
    """Probe as on `platform`, with these answers to commands (by last word) and files (by name)."""
    monkeypatch.setattr(device_probe, "this_platform", lambda: platform)
    monkeypatch.setattr(device_probe, "_run", lambda command: replies.get(command[-1], ""))
    monkeypatch.setattr(device_probe, "_text", lambda path: replies.get(path.name, ""))
    monkeypatch.setattr(device_probe, "usable_cores", lambda: 8)
    return probe_device()


def test_android(monkeypatch: pytest.MonkeyPatch) -> None:
    device = answers(monkeypatch, Platform.ANDROID, {"getprop": GETPROP, "meminfo": MEMINFO})
    assert device == Device(Platform.ANDROID, "SM8750", 15612345 * 1024, 8)


def test_linux_on_arm_asks_the_device_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = {"cpuinfo": NEW_ARM, "compatible": "a,board\0rockchip,rk3588\0", "meminfo": MEMINFO}
    assert answers(monkeypatch, Platform.LINUX, replies).chip == "rk3588"
    replies = {"machine": "SM8550\n"}
    assert answers(monkeypatch, Platform.LINUX, replies) == Device(
        Platform.LINUX, "SM8550", None, 8
    )


def test_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = {"machdep.cpu.brand_string": "Apple M4 Pro\n", "hw.memsize": f"{24 * GIB}\n"}
    device = answers(monkeypatch, Platform.MACOS, replies)
    assert device == Device(Platform.MACOS, "Apple M4 Pro", 24 * GIB, 8)


@pytest.mark.parametrize("platform", list(Platform))
def test_nothing_known_is_no_failure(monkeypatch: pytest.MonkeyPatch, platform: Platform) -> None:
    if platform is Platform.WINDOWS and sys.platform == "win32":
        pytest.skip("there the facts come from calls, not from texts")
    assert answers(monkeypatch, platform, {}) == Device(platform, None, None, 8)


@pytest.mark.parametrize(
    ("name", "platform"),
    [
        ("linux", Platform.LINUX),
        ("android", Platform.ANDROID),
        ("darwin", Platform.MACOS),
        ("ios", Platform.IOS),
        ("win32", Platform.WINDOWS),
        ("freebsd14", Platform.LINUX),
    ],
)
def test_platforms(monkeypatch: pytest.MonkeyPatch, name: str, platform: Platform) -> None:
    monkeypatch.setattr(sys, "platform", name)
    assert this_platform() is platform


def test_termux_is_android(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys, "getandroidapilevel", lambda: 34, raising=False)
    assert this_platform() is Platform.ANDROID


def test_this_machine() -> None:
    device = probe_device()
    assert device.platform is this_platform()
    assert device.cores is not None
    assert device.cores >= 1
    assert device.ram_bytes is None or device.ram_bytes > 64 << 20


def test_commands_that_fail_say_nothing() -> None:
    assert device_probe._run([sys.executable, "-c", "print('x'); raise SystemExit(3)"]) == ""
    assert device_probe._run(["no-such-command-of-any-system"]) == ""
    assert device_probe._run([sys.executable, "-c", "print('x')"]).strip() == "x"


@given(st.text())
def test_no_text_raises(text: str) -> None:
    for parse in (
        parse_cpuinfo, parse_meminfo, parse_compatible, parse_getprop, parse_cpu_max, parse_count,
    ):  # fmt: skip
        parse(text)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names")
def test_what_is_no_file_says_nothing_and_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    os.mkfifo(tmp_path / "proc" / "cpuinfo")
    assert device_probe._linux_chip(tmp_path) is None


def test_which_mnn_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(device_probe, "version", lambda package: {"MNN": "3.6.1"}[package])
    assert installed_mnn() == "3.6.1"
    monkeypatch.setattr(device_probe, "version", missing)
    assert installed_mnn() is None
