"""What a file of a revision must be, and pins.json, which remembers what was seen first.

pins.json (beside `bundles/`):

    {"schema": 1, "bundles": {id: {revision: {path: {"size": n, "sha256": ...}}}}}

The registry's own pins always come first; only what nobody pinned is remembered here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tokforge_models.bundle import Bundle
from tokforge_models.errors import IntegrityError
from tokforge_models.files.digests import is_sha256
from tokforge_models.files.disk import Disk, explained, read_small
from tokforge_models.names import fault_in_path, is_bundle_id, is_revision
from tokforge_models.store.manifest import is_schema, unique_keys

SCHEMA = 1
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Pin:
    """What a file must be; None where that is not known.

    Attributes:
        size: bytes.
        sha256: digest of the whole file.
        by: who says so, for people.
        remembered: whether that is pins.json; else it is the registry.
    """

    size: int | None = None
    sha256: str | None = None
    by: str = field(default="the registry", compare=False)
    remembered: bool = field(default=False, compare=False)

    def contradicts(self, size: int | None, sha256: str | None) -> bool:
        """Whether a file with these facts cannot be the pinned one."""
        return _differ(self.size, size) or _differ(self.sha256, sha256)


UNPINNED = Pin()


def advice(pin: Pin) -> str:
    """What to do where a source does not have what `pin`, from pins.json, says."""
    return (
        f"{pin.by} remembers another first download: try another source with --source, or, "
        "if you trust this one, take that bundle's lines out of that file"
    )


def _differ(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


def pins_for(bundle: Bundle, seen: Mapping[str, Pin]) -> dict[str, Pin]:
    """The registry's pins of `bundle`, filled up from what was `seen` first of that revision."""
    pins = dict(seen)
    for file in bundle.files:
        before = seen.get(file.path, UNPINNED)
        if file.sha256 is not None:
            before = replace(before, sha256=file.sha256, by=UNPINNED.by, remembered=False)
        pins[file.path] = before if file.size is None else replace(before, size=file.size)
    return pins


class PinFile:
    """pins.json: what first downloads pinned.

    Args:
        path: where it is or will be.
        disk: how it is written.
    """

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk

    def seen(self, id: str, revision: str) -> dict[str, Pin]:
        """What was seen first of a revision of a bundle; empty if nothing was.

        Raises:
            IntegrityError: the file is not valid.
        """
        seen = self._read().get(id, {}).get(revision, {})
        return {
            path: replace(pin, by=str(self._path), remembered=True) for path, pin in seen.items()
        }

    def remember(self, id: str, revision: str, pins: Mapping[str, Pin]) -> None:
        """Add pins of files of which none is remembered yet.

        Raises:
            IntegrityError: the file is not valid.
            StorageError: it cannot be written.
        """
        with self._locked():
            known = self._read()
            before = known.setdefault(id, {}).setdefault(revision, {})
            after = {**pins, **before}
            if after != before:
                known[id][revision] = after
                self._disk.write(self._path, _to_bytes(known))

    def _read(self) -> dict[str, dict[str, dict[str, Pin]]]:
        if not self._path.exists() and not self._path.is_symlink():
            return {}
        with explained("read", self._path):
            data = read_small(self._path, MAX_BYTES)
        try:
            return _from_bytes(data)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise IntegrityError(
                f"{self._path} is not valid",
                expected=f"pins as this program writes them (schema {SCHEMA})",
                hint="move that file away; pins of files that you have are then made anew",
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock

        self._disk.make_folder(self._path.parent)
        lock = FileLock(self._path.with_name(f"{self._path.name}.lock"))
        with explained("lock", self._path):
            lock.acquire()
        try:
            yield
        finally:
            lock.release()


def _to_bytes(known: Mapping[str, Mapping[str, Mapping[str, Pin]]]) -> bytes:
    bundles = {
        id: {
            revision: {
                path: {"size": pin.size, "sha256": pin.sha256} for path, pin in sorted(pins.items())
            }
            for revision, pins in revisions.items()
        }
        for id, revisions in sorted(known.items())
    }
    return (json.dumps({"schema": SCHEMA, "bundles": bundles}, indent=1) + "\n").encode()


def _from_bytes(data: bytes) -> dict[str, dict[str, dict[str, Pin]]]:
    document = json.loads(data, object_pairs_hook=unique_keys)
    if not is_schema(document["schema"], SCHEMA) or document.keys() != {"schema", "bundles"}:
        raise ValueError("schema")
    return {
        id: {
            _checked(revision, is_revision(revision)): {
                _checked(path, fault_in_path(path) is None): _pin(pin) for path, pin in pins.items()
            }
            for revision, pins in revisions.items()
        }
        for id, revisions in document["bundles"].items()
        if _checked(id, is_bundle_id(id))
    }


def _pin(value: Any) -> Pin:
    size, sha256 = value["size"], value["sha256"]
    if type(size) is not int or size < 0 or not is_sha256(sha256) or len(value) != 2:
        raise ValueError("pin")
    return Pin(size, sha256)


def _checked(name: str, good: bool) -> str:
    if not good:
        raise ValueError(name)
    return name
