"""What speaks against a manifest that is valid by itself.

A manifest says what a bundle consists of; it is a file that anyone may have changed. Three others
know something about it: the bundle's own configuration, which names what MNN will open; the
digests that were pinned; and the registry's list. Reads two small files, hashes none.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tokforge_models.bundle import Bundle, FileRole
from tokforge_models.files.disk import read_small
from tokforge_models.model_files.completeness import CONFIG, MAX_CONFIG_BYTES, Needed, asked_files
from tokforge_models.names import fault_in_path, inside
from tokforge_models.store.manifest import CONTENT, Manifest, Stamp
from tokforge_models.store.pins import UNPINNED, Pin, pins_for


class _NotVerified(Exception):
    """A file that is not the verified one, by its path."""


class Kind(Enum):
    """What a doubt is about; absent files can be fetched, stray ones only moved away."""

    ABSENT = "the manifest does not require a file that is needed"
    STRAY = "a file that nobody fetched lies where MNN opens it"
    WRONG = "something is not what it must be"


@dataclass(frozen=True, slots=True)
class Doubt:
    """One reason not to use a bundle.

    Attributes:
        path: the file that it is about.
        why: what is wrong, one sentence.
        kind: what can be done about it.
        pin: what the file must be, if anyone says.
    """

    path: str
    why: str
    kind: Kind = Kind.WRONG
    pin: Pin | None = None


def doubts_about(
    manifest: Manifest, folder: Path, seen: Mapping[str, Pin], bundle: Bundle | None = None
) -> tuple[Doubt, ...]:
    """Ask everyone who knows something about a bundle.

    Args:
        manifest: the bundle's.
        folder: of its files.
        seen: what pins.json has of this revision.
        bundle: the registry's entry, if it has one; heard only where it speaks of this revision.
    """
    if bundle and not speaks_of(bundle, manifest):
        bundle = None
    pins = pins_for(bundle, seen) if bundle else dict(seen)
    known = manifest.by_path()
    core = _asked(manifest, folder, pins, frozenset())
    opened = _asked(manifest, folder, pins, _OnDisk(folder)).files
    listed = [file.path for file in bundle.files if _is_required(file.role)] if bundle else []
    needed = dict.fromkeys([*core.files, *listed, *(path for path in opened if path in pins)])
    absent = [path for path in needed if path not in known or not _is_required(known[path].role)]
    strays = [path for path in opened if path not in needed and path not in known]
    return (
        *(Doubt(CONFIG, problem) for problem in core.problems),
        *(
            Doubt(path, f"{path} is needed, and nobody verified it", Kind.ABSENT, pins.get(path))
            for path in absent
        ),
        *(
            Doubt(path, f"MNN would open {folder / path}, which nobody verified", Kind.STRAY)
            for path in strays
        ),
        *(
            Doubt(path, f"{path} is empty")
            for path in needed
            if path in known and not known[path].size
        ),
        *_of_pins(manifest, pins),
    )


def speaks_of(bundle: Bundle, manifest: Manifest) -> bool:
    """Whether a registry entry is about the revision of a manifest."""
    return bundle.revision in {None, manifest.revision} or manifest.revision.startswith(CONTENT)


def _is_required(role: FileRole) -> bool:
    return role is FileRole.REQUIRED


def _asked(
    manifest: Manifest, folder: Path, pins: Mapping[str, Pin], present: Container[str]
) -> Needed:
    """What the configuration asks for, as long as it is the one that was verified.

    Of a spoiled one nothing can be learned; that it is spoiled is found where files are checked.
    """
    entries = manifest.by_path()

    def read(path: str) -> bytes | str:
        entry, place = entries.get(path), inside(folder, path)
        if entry is None or entry.stamp != Stamp.of(place):
            raise _NotVerified(path)
        if pins.get(path, UNPINNED).contradicts(entry.size, entry.sha256):
            raise _NotVerified(path)
        return read_small(place, MAX_CONFIG_BYTES)

    try:
        return asked_files(read, present)
    except OSError:
        return Needed((CONFIG,))
    except _NotVerified as spoiled:
        return Needed((CONFIG, str(spoiled)))


def _of_pins(manifest: Manifest, pins: Mapping[str, Pin]) -> Iterator[Doubt]:
    for file in manifest.files:
        pin = pins.get(file.path, UNPINNED)
        if pin.contradicts(file.size, file.sha256):
            yield Doubt(file.path, f"{file.path} is not what {pin.by} says", pin=pin)


class _OnDisk:
    """Which paths are there, for `asked_files`; MNN opens some files only where they are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str) or fault_in_path(path):
            return False
        return os.path.lexists(inside(self._folder, path))
