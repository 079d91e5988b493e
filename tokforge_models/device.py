"""What a device is, as far as pairing rules ask."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
