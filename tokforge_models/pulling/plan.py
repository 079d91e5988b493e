"""What a pull would do, decided before anything is done: pure, and tested as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tokforge_models.bundle import FileRole
from tokforge_models.files.digests import segment_count, segment_span
from tokforge_models.store.manifest import Entry
from tokforge_models.store.pins import UNPINNED, Pin


class Verb(StrEnum):
    """What happens to one file; adopt means that a copy on this machine is taken."""

    KEEP = "keep"
    RESUME = "resume"
    ADOPT = "adopt"
    FETCH = "fetch"
    REFUSE = "refuse"


class Place(StrEnum):
    """Where the bytes that are here lie."""

    FINAL = "final"
    PART = "part"
    CACHE = "cache"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One file that the bundle shall have.

    Attributes:
        path: POSIX path relative to the bundle.
        role: required or reference.
        size: bytes, as the source offers it.
        sha256: digest, as the source states it, or None.
        validator: the source's name of these very bytes, or None.
        pin: what the file must be.
        blob_sha1: git's digest of it, as the source states it, or None.
    """

    path: str
    role: FileRole
    size: int
    sha256: str | None = None
    validator: str | None = None
    pin: Pin = UNPINNED
    blob_sha1: str | None = None

    @property
    def expected(self) -> str | None:
        """The digest that the file must have, where anyone says so."""
        return self.pin.sha256 or self.sha256

    @property
    def digest(self) -> str | None:
        """The digest, of either kind, that tells the right file from any other."""
        return self.expected or self.blob_sha1


@dataclass(frozen=True, slots=True)
class Found:
    """What is on disk of one file.

    Attributes:
        place: where; in a cache only with an `entry` that is the right file.
        size: bytes that the whole file will have.
        entry: the whole, verified file; None while it is not.
        fresh: whether `entry` was established just now, so that no record has it yet.
        segments: digests of the segments that are there, by index.
        validator: what the source said when these bytes came, or None.
        shared: whether the file is hard-linked elsewhere, so that it must not be written to.
        held: bytes that it takes on the disk and that are written over where they lie.
        path: where it is, if it is in a cache that is not ours.
        linkable: whether that is on the same disk.
    """

    place: Place
    size: int
    entry: Entry | None = None
    fresh: bool = False
    segments: Mapping[int, str] | None = None
    validator: str | None = None
    shared: bool = False
    held: int = 0
    path: Path | None = None
    linkable: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """What happens to one file, and why.

    Attributes:
        wanted: the file.
        verb: what is done about it.
        found: what is on disk of it, or None.
        missing_bytes: what must be fetched.
        disk_bytes: what must be free on the disk for it.
        reason: a phrase for people.
    """

    wanted: Wanted
    verb: Verb
    found: Found | None
    missing_bytes: int
    disk_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pull would do.

    Attributes:
        id: the bundle.
        source: where the bytes would come from.
        revision: the revision that would be ready.
        actions: one a file.
    """

    id: str
    source: str
    revision: str
    actions: tuple[Action, ...]

    @property
    def missing_bytes(self) -> int:
        """Bytes that must be fetched."""
        return sum(action.missing_bytes for action in self.actions)

    @property
    def disk_bytes(self) -> int:
        """Bytes that must be free on the disk."""
        return sum(action.disk_bytes for action in self.actions)

    @property
    def refused(self) -> tuple[Action, ...]:
        """Files that cannot become what they must be."""
        return tuple(action for action in self.actions if action.verb is Verb.REFUSE)


def plan_pull(
    *,
    id: str,
    source: str,
    revision: str,
    wanted: Iterable[Wanted],
    found: Mapping[str, Found],
    segment_bytes: int,
) -> Plan:
    """Decide for every wanted file what is done about it."""
    actions = (decide(file, found.get(file.path), segment_bytes) for file in wanted)
    return Plan(id, source, revision, tuple(actions))


def decide(wanted: Wanted, found: Found | None, segment_bytes: int) -> Action:
    """Decide about one file."""
    if wanted.pin.contradicts(wanted.size, wanted.sha256):
        return Action(wanted, Verb.REFUSE, found, 0, 0, _contradiction(wanted))
    if found and found.entry and found.place is Place.CACHE:
        disk = 0 if found.linkable else wanted.size
        return Action(wanted, Verb.ADOPT, found, 0, disk, "a copy is on this machine")
    if found and found.entry and _is_wanted(found.entry, wanted):
        return Action(wanted, Verb.KEEP, found, 0, 0, "verified")
    if found and found.segments and _can_go_on(found, wanted):
        missing = missing_bytes(wanted.size, found.segments, segment_bytes)
        disk = min(missing, max(wanted.size - found.held, 0))
        if found.shared:
            disk = wanted.size
        reason = f"{wanted.size - missing:,} of {wanted.size:,} bytes are here"
        return Action(wanted, Verb.RESUME, found, missing, disk, reason)
    reason = "another version is here" if found and found.entry else "nothing of it is safe yet"
    return Action(wanted, Verb.FETCH, found, wanted.size, wanted.size, reason)


def missing_bytes(size: int, segments: Mapping[int, str], segment_bytes: int) -> int:
    """Bytes of the segments that are not there."""
    spans = (
        segment_span(index, size, segment_bytes)
        for index in range(segment_count(size, segment_bytes))
        if index not in segments
    )
    return sum(stop - start for start, stop in spans)


def _is_wanted(entry: Entry, wanted: Wanted) -> bool:
    """A verified file of this revision that nobody's digest speaks against is the right one."""
    return entry.size == wanted.size and wanted.expected in {None, entry.sha256}


def _can_go_on(found: Found, wanted: Wanted) -> bool:
    """Segments of two versions must not mix, unless the whole is checked against a digest."""
    if found.size != wanted.size:
        return False
    return wanted.digest is not None or (
        wanted.validator is not None and found.validator == wanted.validator
    )


def _contradiction(wanted: Wanted) -> str:
    if wanted.pin.size not in {None, wanted.size}:
        return f"expected {wanted.pin.size} bytes, the source has {wanted.size}"
    return f"expected sha256 {wanted.pin.sha256}, the source has {wanted.sha256}"
