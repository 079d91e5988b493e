"""What is on disk of the files that a pull wants.

Only what no stamp vouches for is hashed. Bytes that are right stay, wherever a crash or a
clumsy hand left them: under the final name, or in a partial, whole or in segments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tokforge_models.bundle import FileRole
from tokforge_models.files.digests import (
    Digests,
    hash_as_blob,
    hash_segments,
    segment_count,
    segment_span,
)
from tokforge_models.files.disk import is_plain_file
from tokforge_models.names import inside
from tokforge_models.pulling.plan import Found, Place, Wanted
from tokforge_models.store.journal import Record
from tokforge_models.store.manifest import Entry, Manifest, Stamp
from tokforge_models.store.store import OURS, Look, look

OnBytes = Callable[[str, int], None]
Copies = Callable[[Wanted], Path | None]


def no_copies(wanted: Wanted) -> None:
    """Look for a copy of `wanted` nowhere."""


def part_path(folder: Path, path: str) -> Path:
    """Where the partial of the file `path` of a revision lies."""
    return folder / OURS / f"{hashlib.sha256(path.encode()).hexdigest()[:16]}.part"


@dataclass(frozen=True, slots=True)
class _Known:
    """What manifest and journal say of one file.

    Attributes:
        entries: the whole file, as each of them has it.
        trusted: digests that the whole file may have.
        digests: of the segments that the whole file may have, by index.
        begun: of the segments that are in a partial, if one was begun.
        size: bytes of the whole file.
        validator: what the source said when it came.
    """

    entries: tuple[Entry, ...]
    trusted: frozenset[str]
    digests: Mapping[int, str]
    begun: Mapping[int, str] | None
    size: int | None
    validator: str | None


def survey(
    folder: Path,
    wanted: Iterable[Wanted],
    *,
    manifest: Manifest | None,
    records: Mapping[str, Record],
    segment_bytes: int,
    on_bytes: OnBytes,
    copies: Copies = no_copies,
) -> dict[str, Found]:
    """Find out what is on disk of each wanted file; changes nothing.

    Args:
        folder: of the revision.
        wanted: the files.
        manifest: of the revision, if it has a valid one.
        records: what its journal says.
        segment_bytes: length of a segment; a manifest with another one tells only whole digests.
        on_bytes: called with a path and a number of bytes whenever something was hashed.
        copies: finds what may be a copy of a file, outside the store.

    Raises:
        Refused: a wanted name is not safe.
    """
    entries = manifest.by_path() if manifest else {}
    usable = manifest is not None and manifest.segment_bytes == segment_bytes
    found = {}
    for file in wanted:
        known = _known(entries.get(file.path), usable, records.get(file.path))
        here = _find(folder, file, known, segment_bytes, on_bytes)
        if not (here and here.entry) and (copy := copies(file)):
            here = _copy(copy, folder, file, segment_bytes, on_bytes) or here
        if here:
            found[file.path] = here
    return found


def _copy(
    copy: Path, folder: Path, file: Wanted, segment_bytes: int, on_bytes: OnBytes
) -> Found | None:
    """What may be a copy of a file, if its bytes are the right ones."""
    try:
        stamp = Stamp.of(copy)
        digests = hash_segments(copy, segment_bytes, lambda count: on_bytes(file.path, count))
        right = digests.sha256 == file.expected or (
            file.expected is None and hash_as_blob(copy) == file.blob_sha1
        )
        while not folder.exists():
            folder = folder.parent
        linkable = copy.stat().st_dev == folder.stat().st_dev
    except OSError:
        return None
    if not right or digests.size != file.size:
        return None
    entry = _entry(file.path, file.role, digests, stamp)
    return Found(Place.CACHE, file.size, entry, path=copy, linkable=linkable)


def _known(entry: Entry | None, usable: bool, record: Record | None) -> _Known:
    whole = record.whole if record else None
    told = tuple(known for known in (whole, entry) if known)
    entries = tuple(known for known in told if known is whole or usable)
    begun = record.segments if record and not whole else None
    digests = {**dict(enumerate(entries[0].segments if entries else ())), **(begun or {})}
    return _Known(
        entries,
        trusted=frozenset(known.sha256 for known in told),
        digests=digests,
        begun=begun,
        size=record.size if record else entry.size if entry else None,
        validator=record.validator if record else None,
    )


def _find(
    folder: Path, file: Wanted, known: _Known, segment_bytes: int, on_bytes: OnBytes
) -> Found | None:
    final = inside(folder, file.path)
    part = part_path(folder, file.path)
    for told in known.entries:
        entry = replace(told, role=file.role)
        if look(folder, entry) is Look.SAME:
            return Found(Place.FINAL, entry.size, entry)
        if is_plain_file(part) and Stamp.of(part) == entry.stamp:
            return Found(Place.PART, entry.size, entry)
    there = _is_below(folder, final)
    in_part = known.digests if known.begun is None else known.begun
    if is_plain_file(part) and known.size is not None and (known.begun or not there):
        return Found(Place.PART, known.size, segments=in_part, validator=known.validator)
    return _examine(final, file, known, segment_bytes, on_bytes) if there else None


def _is_below(folder: Path, final: Path) -> bool:
    """Whether `final` is a regular file that no link on the way leads to."""
    return is_plain_file(final) and final.parent.resolve() == (
        folder.resolve() / final.parent.relative_to(folder)
    )


def _examine(
    final: Path, file: Wanted, known: _Known, segment_bytes: int, on_bytes: OnBytes
) -> Found | None:
    """Hash a file that no stamp vouches for."""
    try:
        stamp = Stamp.of(final)
        links = final.lstat().st_nlink
        digests = hash_segments(final, segment_bytes, lambda count: on_bytes(file.path, count))
    except OSError:
        return None
    if digests.sha256 in known.trusted or digests.sha256 == file.expected:
        entry = _entry(file.path, file.role, digests, stamp)
        return Found(Place.FINAL, digests.size, entry, fresh=True)
    good = _good_segments(digests, known.digests, file.size, segment_bytes)
    return Found(
        Place.FINAL,
        file.size if good else digests.size,
        segments=good,
        validator=known.validator,
        shared=links > 1,
        held=digests.size,
    )


def _entry(path: str, role: FileRole, digests: Digests, stamp: Stamp) -> Entry:
    return Entry(path, role, digests.size, digests.sha256, digests.segments, stamp)


def _good_segments(
    digests: Digests, known: Mapping[int, str], size: int, segment_bytes: int
) -> dict[int, str]:
    """Segments with the digest that they should have, at their full length."""
    return {
        index: digests.segments[index]
        for index in range(min(segment_count(size, segment_bytes), len(digests.segments)))
        if known.get(index) == digests.segments[index]
        and segment_span(index, size, segment_bytes)[1] <= digests.size
    }
