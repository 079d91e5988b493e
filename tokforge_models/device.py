"""What a device is, as far as pairing rules ask: probed, read from a file, or given as flags."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from tokforge_models.errors import UsageError
from tokforge_models.reading.fields import Fields, read_strictly

GIB = 1 << 30
# A phone sold with 4 GB reports a MemTotal of 3.5 to 3.8 GiB: firmware and GPU keep the rest.
RAM_AS_SOLD = 0.85
MAX_RAM_GB = 65_536
_SOLD_GB = (
    *(1, 2, 3, 4, 6, 8, 12, 16, 18, 24, 32, 36, 48, 64, 96),
    *(128, 192, 256, 384, 512, 768, 1024),
)


class Platform(StrEnum):
    """Operating systems that a rule or a bundle's needs can name."""

    ANDROID = "android"
    IOS = "ios"
    LINUX = "linux"
    MACOS = "macos"
    WINDOWS = "windows"


@dataclass(frozen=True, slots=True)
class Device:
    """Facts about one device; None where they are not known.

    Attributes:
        platform: operating system.
        chip: name of the SoC or CPU, e.g. ``SM8850``.
        ram_bytes: total memory as the system reports it (MemTotal).
        cores: logical processors that this process may use.
    """

    platform: Platform
    chip: str | None = None
    ram_bytes: int | None = None
    cores: int | None = None

    def has_ram_gb(self, sold: float) -> bool:
        """Whether this is a device sold with `sold` GB of RAM or more; true where unknown."""
        return self.ram_bytes is None or self.ram_bytes >= RAM_AS_SOLD * sold * GIB

    @property
    def ram_as_sold(self) -> int | None:
        """GB of RAM that such a device is sold with; None where no usual size fits."""
        if self.ram_bytes is None:
            return None
        sold = next((size for size in _SOLD_GB if size * GIB >= self.ram_bytes), None)
        return sold if sold is not None and self.has_ram_gb(sold) else None

    def has_chip(self, name: str) -> bool:
        """Whether the chip's name contains `name` as whole words, case aside."""
        wanted, words = _words(name), _words(self.chip or "")
        starts = range(len(words) - len(wanted) + 1)
        return bool(wanted) and any(words[i : i + len(wanted)] == wanted for i in starts)

    def is_like(self, other: Device) -> bool:
        """Whether a measurement on one says something about the other: same system, same chip."""
        return self.platform == other.platform and _words(self.chip or "") == _words(
            other.chip or ""
        )


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def read_device(path: Path) -> Device:
    """Read a device from a JSON or YAML file with the keys platform, chip, ram_gb and cores.

    Raises:
        RegistryError: with every problem of the file.
    """
    return read_strictly(
        path,
        device_in,
        what="the description of the device",
        hint="docs/resolution.md lists its keys",
    )


def device_in(fields: Fields) -> Device | None:
    """The device that a mapping describes; None, with the reasons noted, where it is none."""
    fields.require("platform", "the name of an operating system")
    platform = fields.choice("platform", Platform)
    ram_gb = fields.number("ram_gb", 0, MAX_RAM_GB)
    chip = fields.text("chip")
    cores = fields.integer("cores", 1, 65_536)
    fields.done()
    if platform is None:
        return None
    return Device(platform, chip, None if ram_gb is None else round(ram_gb * GIB), cores)


def described(
    device: Device,
    *,
    platform: str | None = None,
    chip: str | None = None,
    ram_gb: float | None = None,
) -> Device:
    """`device` with what a user says of it. Another platform makes it another device, of which
    only what is said is known.

    Raises:
        UsageError: the platform has no such name, or the RAM cannot be.
    """
    if platform is not None and platform != device.platform:
        if platform not in set(Platform):
            raise UsageError(
                "no such platform", expected=", ".join(Platform), got=repr(platform[:40])
            )
        device = Device(Platform(platform))
    if chip is not None:
        device = replace(device, chip=chip)
    if ram_gb is not None:
        if not 0 <= ram_gb <= MAX_RAM_GB:
            raise UsageError(
                "no such amount of RAM", expected=f"0 to {MAX_RAM_GB} GB", got=f"{ram_gb:g}"
            )
        device = replace(device, ram_bytes=round(ram_gb * GIB))
    return device
