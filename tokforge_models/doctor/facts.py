"""What was seen of a machine; nothing here looks or judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tokforge_models.device import Device
from tokforge_models.errors import Problem
from tokforge_models.resolution.measurement import Measurement
from tokforge_models.store.store import BundleStatus

EXTRAS = {
    "serve": {
        "starlette": "`tokforge serve`",
        "uvicorn": "`tokforge serve`",
        "pydantic": "`tokforge serve`",
        "prometheus-client": "`tokforge serve`",
        "llguidance": "answers of `tokforge serve` by a JSON schema",
    },
    "plot": {"matplotlib": "`tokforge bench --plot`, `tokforge tune --plot`"},
}
"""Packages that need not be installed, by the extra that brings them, and what each gives."""


@dataclass(frozen=True, slots=True)
class Python:
    """The interpreter.

    Attributes:
        version: as it calls itself.
        release: major and minor version.
        is_64_bit: whether its addresses have 64 bits.
    """

    version: str
    release: tuple[int, int]
    is_64_bit: bool


@dataclass(frozen=True, slots=True)
class Mnn:
    """What runs models.

    Attributes:
        version: None where it is not installed.
        has_wheel: whether MNN is published for such a machine at all.
        fault: why it cannot be imported; None where it can, or was not tried.
        backends: by name, ``here``, ``missing`` or ``unknown``.
    """

    version: str | None
    has_wheel: bool
    fault: str | None
    backends: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of the store.

    Attributes:
        path: where it is or will be.
        exists: whether it is there.
        write_fault: why nothing can be written there; None where something can.
        free_bytes: that may still be written; None where that is not told.
        is_open: whether every user of this machine may write into it.
        unreadable: what in it cannot be read, some of it.
    """

    path: Path
    exists: bool
    write_fault: str | None
    free_bytes: int | None
    is_open: bool
    unreadable: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A saved profile and whose it is.

    Attributes:
        path: its file.
        measurement: what it says.
        target: id of the installed bundle of that content; None where there is none.
        draft: the same of the draft.
    """

    path: Path
    measurement: Measurement
    target: str | None
    draft: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was seen.

    Attributes:
        python: the interpreter.
        tokforge: version of this package.
        mnn: what runs models.
        device: what this machine is.
        free_memory: bytes that a new process may take; None where that is not told.
        packages: version of each package in `EXTRAS` that is installed.
        layers: registry files in force, weakest first.
        registry_problems: what is wrong with them.
        home: the store's folder.
        store_faults: what of the store cannot be read, each in a sentence.
        bundles: of which something is here.
        profiles: saved measurements.
        faulty_profiles: files that are none, with what is wrong.
        network: settings that decide how downloads go, by name, without any secret.
    """

    python: Python
    tokforge: str
    mnn: Mnn
    device: Device
    free_memory: int | None
    packages: Mapping[str, str]
    layers: tuple[Path, ...]
    registry_problems: tuple[Problem, ...]
    home: Home
    store_faults: tuple[str, ...]
    bundles: tuple[BundleStatus, ...]
    profiles: tuple[Profile, ...]
    faulty_profiles: tuple[tuple[Path, Problem], ...]
    network: Mapping[str, str]
