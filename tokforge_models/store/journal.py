"""The journal: what is already safe of a bundle that is not whole yet.

`.tokforge/journal` is a text of JSON lines that only grows:

    {"journal": 1, "id": ..., "revision": ..., "role": ..., "segment_bytes": n}
    {"begin": path, "size": n, "validator": text or null, "segments": {"0": sha256 ...}}
                                                            a partial of this file was begun
    {"segment": path, "index": n, "sha256": ...}            this segment is in the partial
    {"whole": {path, role, size, sha256, segments, stamp}}  all of it is there and was hashed

`begin` says which segments the partial has, and forgets what was said before of its path.
`whole` is written before the file gets its final name, which changes no stamp, so that either
place can be trusted without hashing again. A kill can only leave a last line that is not
complete; such a line, and any other that makes no sense, is passed over: it names nothing that
is lost, only something that is fetched again.

Segments are hashed again when a partial is resumed, so a journal can waste time but cannot
publish a wrong byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tokforge_models.bundle import Role
from tokforge_models.files.digests import is_sha256, segment_count, segment_span
from tokforge_models.files.disk import Disk, read_small
from tokforge_models.names import fault_in_path, is_bundle_id, is_revision
from tokforge_models.store.manifest import (
    Entry,
    entry_from_json,
    entry_to_json,
    is_schema,
    unique_keys,
)

SCHEMA = 1
MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Header:
    """Which bundle a journal is about."""

    id: str
    revision: str
    role: Role
    segment_bytes: int

    def fits(self, other: Header) -> bool:
        """Whether what was written under one header holds under the other."""
        return self == replace(other, role=self.role)


@dataclass(slots=True)
class Record:
    """What is known of one file.

    Attributes:
        size: bytes that the whole file will have.
        validator: what the source said about this version of the file, or None.
        segments: digests of the segments that are in the partial, by index.
        whole: the finished file, once it is.
    """

    size: int
    validator: str | None
    segments: dict[int, str] = field(default_factory=dict)
    whole: Entry | None = None

    def safe_bytes(self, segment_bytes: int) -> int:
        """Bytes of this file that need not be fetched again."""
        if self.whole:
            return self.size
        spans = (segment_span(index, self.size, segment_bytes) for index in self.segments)
        return sum(stop - start for start, stop in spans)


class Journal:
    """An open journal: what it says, and the ways to add to it."""

    def __init__(self, path: Path, header: Header, disk: Disk, records: dict[str, Record]) -> None:
        self.header = header
        self._path = path
        self._disk = disk
        self._records = records

    @classmethod
    def open(cls, path: Path, header: Header, disk: Disk) -> Journal:
        """Go on with the journal at `path` if it is about `header`, else begin an empty one."""
        found = read_journal(path)
        if found is None or not found[0].fits(header):
            disk.write(path, _line({"journal": SCHEMA, **_header_to_json(header)}))
            return cls(path, header, disk, {})
        if not _ends_with_newline(path):
            disk.append(path, b"\n")
        return cls(path, header, disk, found[1])

    @property
    def records(self) -> Mapping[str, Record]:
        """What is known, by path."""
        return self._records

    def begin(
        self,
        path: str,
        size: int,
        validator: str | None,
        segments: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """Say that a partial of `path`, which has these segments, is being filled."""
        has = {str(index): sha256 for index, sha256 in segments.items()}
        self._append({"begin": path, "size": size, "validator": validator, "segments": has})
        self._records[path] = Record(size, validator, dict(segments))

    def segment(self, path: str, index: int, sha256: str) -> None:
        """Say that segment `index` of a begun partial is in its place."""
        self._append({"segment": path, "index": index, "sha256": sha256})
        self._records[path].segments[index] = sha256

    def whole(self, entry: Entry, validator: str | None) -> None:
        """Say that a file is all there, hashed, with this stamp."""
        self._append({"whole": entry_to_json(entry)})
        self._records[entry.path] = Record(entry.size, validator, whole=entry)

    def _append(self, value: dict[str, Any]) -> None:
        self._disk.append(self._path, _line(value))


def read_journal(path: Path) -> tuple[Header, dict[str, Record]] | None:
    """Read what a journal says, or None where there is none that can be read."""
    try:
        lines = read_small(path, MAX_BYTES).split(b"\n")
    except OSError:
        return None
    header = _header(_parse(lines[0]))
    if header is None:
        return None
    records: dict[str, Record] = {}
    for line in lines[1:-1]:
        value = _parse(line)
        if value is not None:
            try:
                _apply(value, header.segment_bytes, records)
            except (KeyError, TypeError, ValueError):
                continue
    return header, records


def _apply(value: dict[str, Any], segment_bytes: int, records: dict[str, Record]) -> None:
    if "whole" in value:
        entry = entry_from_json(value["whole"], segment_bytes)
        _check_path(entry.path)
        known = records.get(entry.path)
        records[entry.path] = Record(entry.size, known.validator if known else None, whole=entry)
    elif "begin" in value:
        path, size, validator = value["begin"], value["size"], value["validator"]
        _check_path(path)
        segments = value["segments"]
        if type(size) is not int or size < 0 or not isinstance(validator, str | None):
            raise ValueError("not a size and a validator")
        if not isinstance(segments, dict):
            raise ValueError("not segments by their index")
        record = Record(size, validator)
        for index, sha256 in segments.items():
            _add_segment(record, int(index), sha256, segment_bytes)
        records[path] = record
    elif "segment" in value:
        record = records[value["segment"]]
        _add_segment(record, value["index"], value["sha256"], segment_bytes)


def _add_segment(record: Record, index: Any, sha256: Any, segment_bytes: int) -> None:
    count = segment_count(record.size, segment_bytes)
    if type(index) is int and 0 <= index < count and is_sha256(sha256):
        record.segments[index] = sha256


def _check_path(path: Any) -> None:
    if not isinstance(path, str) or fault_in_path(path):
        raise ValueError("not a safe path")


def _header(value: dict[str, Any] | None) -> Header | None:
    if value is None or not is_schema(value.get("journal"), SCHEMA):
        return None
    id, revision, length = value.get("id"), value.get("revision"), value.get("segment_bytes")
    if not (isinstance(id, str) and is_bundle_id(id)):
        return None
    if not (isinstance(revision, str) and is_revision(revision)):
        return None
    if type(length) is not int or length < 1:
        return None
    try:
        return Header(id, revision, Role(str(value.get("role"))), length)
    except ValueError:
        return None


def _header_to_json(header: Header) -> dict[str, Any]:
    return {
        "id": header.id,
        "revision": header.revision,
        "role": header.role,
        "segment_bytes": header.segment_bytes,
    }


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _ends_with_newline(path: Path) -> bool:
    return read_small(path, MAX_BYTES).endswith(b"\n")
