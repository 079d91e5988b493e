"""Devices: given as flags, read from files, and compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tokforge_models.device import GIB, Device, Platform, described, read_device
from tokforge_models.errors import RegistryError, UsageError

PHONE = Device(Platform.ANDROID, "Qualcomm SM8850", 15 * GIB, 8)


@pytest.mark.parametrize(
    ("ram", "sold", "enough"),
    [
        (3.4, 4, True),
        (3.39, 4, False),
        (7.2, 8, True),
        (4, 4, True),
        (0, 4, False),
        (None, 4, True),
    ],
)
def test_ram_is_compared_as_phones_are_sold(ram: float | None, sold: float, enough: bool) -> None:
    device = Device(Platform.ANDROID, ram_bytes=None if ram is None else round(ram * GIB))
    assert device.has_ram_gb(sold) is enough


@pytest.mark.parametrize(
    ("gib", "sold"),
    [(3.5, 4), (3.3, None), (7.2, 8), (15.6, 16), (16, 16), (13, None), (5000, None), (None, None)],
)
def test_ram_has_the_name_it_is_sold_by(gib: float | None, sold: int | None) -> None:
    ram = None if gib is None else round(gib * GIB)
    assert Device(Platform.ANDROID, ram_bytes=ram).ram_as_sold == sold


@pytest.mark.parametrize(
    ("chip", "name", "same"),
    [
        ("Qualcomm Technologies, Inc SM8850", "SM8850", True),
        ("qualcomm,sm8850", "SM8850", True),
        ("SM8850P", "SM8850", False),
        ("Dimensity 9400+", "dimensity 9400", True),
        ("Dimensity 8400", "dimensity 9400", False),
        (None, "SM8850", False),
        ("SM8850", "", False),
        ("", "", False),
    ],
)
def test_chips_are_compared_by_words(chip: str | None, name: str, same: bool) -> None:
    assert Device(Platform.ANDROID, chip).has_chip(name) is same


def test_like_devices() -> None:
    assert PHONE.is_like(Device(Platform.ANDROID, "qualcomm  sm8850"))
    assert not PHONE.is_like(Device(Platform.LINUX, "Qualcomm SM8850"))
    assert not PHONE.is_like(Device(Platform.ANDROID))


def test_flags_change_what_they_name() -> None:
    assert described(PHONE) == PHONE
    assert described(PHONE, chip="SM8650").chip == "SM8650"
    assert described(PHONE, chip="SM8650").ram_bytes == PHONE.ram_bytes
    assert described(PHONE, ram_gb=4).ram_bytes == 4 * GIB
    assert described(PHONE, platform="android") == PHONE


def test_another_platform_is_another_device() -> None:
    assert described(PHONE, platform="ios") == Device(Platform.IOS)
    assert described(PHONE, platform="linux", ram_gb=2) == Device(Platform.LINUX, None, 2 * GIB)


@pytest.mark.parametrize(
    "flags", [{"platform": "amiga"}, {"ram_gb": -1}, {"ram_gb": float("nan")}, {"ram_gb": 1e9}]
)
def test_flags_that_cannot_be(flags: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        described(PHONE, **flags)
    assert caught.value.exit_code == 2


def test_a_file_in_both_languages(tmp_path: Path) -> None:
    facts = {"platform": "android", "chip": "SM8850", "ram_gb": 3.5, "cores": 8}
    expected = Device(Platform.ANDROID, "SM8850", round(3.5 * GIB), 8)
    path = tmp_path / "device"
    path.write_text(json.dumps(facts, indent=2))
    assert read_device(path) == expected
    path.write_text("\n".join(f"{key}: {value}" for key, value in facts.items()))
    assert read_device(path) == expected
    path.write_text("platform: ios\n")
    assert read_device(path) == Device(Platform.IOS)


def test_all_faults_of_a_file_in_one_run(tmp_path: Path) -> None:
    path = tmp_path / "device.yaml"
    path.write_text("platform: amiga\nram_gb: lots\nchips: x\ncores: 0\n")
    with pytest.raises(RegistryError, match="the description of the device has 4") as caught:
        read_device(path)
    assert [(p.line, p.key, p.got) for p in caught.value.problems] == [
        (1, "platform", "'amiga'"),
        (2, "ram_gb", "'lots'"),
        (3, "chips", "an unknown one"),
        (4, "cores", "the number 0"),
    ]


@pytest.mark.parametrize("text", ["", "[]", "chip: x\n", "{", "platform: [android]\n"])
def test_files_that_are_no_device(text: str, tmp_path: Path) -> None:
    path = tmp_path / "device.yaml"
    path.write_text(text)
    with pytest.raises(RegistryError):
        read_device(path)
