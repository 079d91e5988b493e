"""The manifest: what a whole bundle consists of, as it was when its bytes were hashed.

`.tokforge/manifest.json` (one JSON object; no other keys):

    schema         1
    id, role       the bundle's; role is chat or draft
    source         where the bytes came from, e.g. "package:demo-chat"
    revision       name of the folder that holds it
    commit         what the source calls this revision, or null
    segment_bytes  length of a segment
    files          a list of {path, role, size, sha256, segments: [sha256 ...], stamp}

A stamp is `[size, mtime_ns, inode]`. A file whose stamp still fits is taken to be unchanged;
another stamp means only that it must be hashed again. `null` marks a file that failed its last
check. A manifest is read with distrust: whatever is not exactly this is `IntegrityError`. One of a
revision that is called by its content must have that content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokforge_models.bundle import FileRole, Role
from tokforge_models.errors import IntegrityError
from tokforge_models.files.digests import content_digest, is_sha256, segment_count
from tokforge_models.files.disk import read_small
from tokforge_models.names import fault_in_paths, is_bundle_id, is_revision

SCHEMA = 1
CONTENT = "content-"
MAX_BYTES = 32 * 1024 * 1024
_MAX_SIZE = 1 << 50


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the file system says about a file without reading it."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The stamp of `path` itself, not of what it may link to.

        Raises:
            OSError: there is nothing.
        """
        seen = path.lstat()
        return cls(seen.st_size, seen.st_mtime_ns, seen.st_ino)


@dataclass(frozen=True, slots=True)
class Entry:
    """One verified file.

    Attributes:
        path: POSIX path relative to the revision's folder.
        role: required or reference.
        size: bytes.
        sha256: digest of the whole file.
        segments: digest of each segment.
        stamp: of the moment it was verified; None where its last check failed.
    """

    path: str
    role: FileRole
    size: int
    sha256: str
    segments: tuple[str, ...]
    stamp: Stamp | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A whole bundle."""

    id: str
    role: Role
    source: str
    revision: str
    commit: str | None
    segment_bytes: int
    files: tuple[Entry, ...]

    @property
    def content(self) -> str:
        """Digest over the required files: equal for bundles that are the same model."""
        return content_digest(
            {
                file.path: (file.size, file.sha256)
                for file in self.files
                if file.role is FileRole.REQUIRED
            }
        )

    def by_path(self) -> Mapping[str, Entry]:
        """The files by their path."""
        return {file.path: file for file in self.files}


def content_name(prefix: str, files: Mapping[str, tuple[int, str]]) -> str:
    """Name of a revision that is called by the sizes and digests of its files, by path."""
    return f"{prefix}{content_digest(files)[:32]}"


def to_bytes(manifest: Manifest) -> bytes:
    """Write a manifest as it stands on disk."""
    document = {
        "schema": SCHEMA,
        "id": manifest.id,
        "role": manifest.role,
        "source": manifest.source,
        "revision": manifest.revision,
        "commit": manifest.commit,
        "segment_bytes": manifest.segment_bytes,
        "files": [entry_to_json(file) for file in manifest.files],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """One file as the manifest and the journal write it."""
    stamp = entry.stamp
    return {
        "path": entry.path,
        "role": entry.role,
        "size": entry.size,
        "sha256": entry.sha256,
        "segments": list(entry.segments),
        "stamp": [stamp.size, stamp.mtime_ns, stamp.inode] if stamp else None,
    }


def read_manifest(path: Path, *, id: str, revision: str) -> Manifest:
    """Read the manifest of revision `revision` of bundle `id`.

    Raises:
        IntegrityError: it is not there, or is not exactly what this module writes.
    """
    try:
        return from_bytes(read_small(path, MAX_BYTES), id=id, revision=revision)
    except OSError as error:
        raise IntegrityError(
            f"the manifest of {id} cannot be read", got=error.strerror or str(error)
        ) from error


def from_bytes(data: bytes, *, id: str, revision: str) -> Manifest:
    """Parse a manifest that stands where that of revision `revision` of bundle `id` should.

    Raises:
        IntegrityError: it is not exactly what this module writes.
    """
    try:
        document = json.loads(data, object_pairs_hook=unique_keys)
        manifest = _manifest(document)
        _need(manifest.id == id, f"id {id}")
        _need(manifest.revision == revision, f"revision {revision}")
    except (ValueError, RecursionError) as error:
        raise IntegrityError(
            f"the manifest of {id} is not valid", expected=str(error)[:200] or "JSON"
        ) from error
    return manifest


def is_schema(value: Any, schema: int) -> bool:
    """Whether `value` is that very number: in JSON, 1.0 and true are others."""
    return type(value) is int and value == schema


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object whose keys are unique, for `json.loads`.

    Raises:
        ValueError: they are not.
    """
    built = dict(pairs)
    _need(len(built) == len(pairs), "every key once")
    return built


def entry_from_json(value: Any, segment_bytes: int) -> Entry:
    """Parse one file as the manifest and the journal write it; its path is not checked.

    Raises:
        ValueError: it is not one; the message says what was expected.
    """
    keys = {"path", "role", "size", "sha256", "segments", "stamp"}
    _need(
        isinstance(value, dict) and value.keys() == keys, f"a file with {', '.join(sorted(keys))}"
    )
    size, segments = value["size"], value["segments"]
    _need(isinstance(value["path"], str), "a path that is text")
    _need(_is_count(size, _MAX_SIZE), "a size")
    _need(is_sha256(value["sha256"]), "a sha256")
    _need(
        isinstance(segments, list) and all(is_sha256(segment) for segment in segments),
        "segments that are sha256",
    )
    _need(len(segments) == segment_count(size, segment_bytes), "as many segments as the size has")
    return Entry(
        value["path"],
        FileRole(value["role"]),
        size,
        value["sha256"],
        tuple(segments),
        _stamp(value["stamp"]),
    )


def _manifest(value: Any) -> Manifest:
    keys = {"schema", "id", "role", "source", "revision", "commit", "segment_bytes", "files"}
    _need(isinstance(value, dict), "an object")
    _need(is_schema(value.get("schema"), SCHEMA), f"schema {SCHEMA}")
    _need(value.keys() == keys, f"the keys {', '.join(sorted(keys))}")
    _need(isinstance(value["id"], str) and is_bundle_id(value["id"]), "a bundle's id")
    _need(isinstance(value["revision"], str) and is_revision(value["revision"]), "a revision")
    _need(isinstance(value["source"], str), "a source that is text")
    _need(isinstance(value["commit"], str | None), "a commit that is text or null")
    _need(_is_count(value["segment_bytes"], _MAX_SIZE) and value["segment_bytes"] > 0, "a length")
    _need(isinstance(value["files"], list) and value["files"], "a list of files")
    files = tuple(entry_from_json(file, value["segment_bytes"]) for file in value["files"])
    if fault := fault_in_paths(file.path for file in files):
        raise ValueError(f"safe names, but {fault}")
    if value["revision"].startswith(CONTENT):
        told = {file.path: (file.size, file.sha256) for file in files}
        _need(value["revision"] == content_name(CONTENT, told), "files with the revision's content")
    return Manifest(
        value["id"],
        Role(value["role"]),
        value["source"],
        value["revision"],
        value["commit"],
        value["segment_bytes"],
        files,
    )


def _stamp(value: Any) -> Stamp | None:
    if value is None:
        return None
    _need(
        isinstance(value, list)
        and len(value) == 3
        and all(isinstance(number, int) and not isinstance(number, bool) for number in value),
        "a stamp of three numbers",
    )
    return Stamp(*value)


def _is_count(value: Any, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit


def _need(holds: object, expected: str) -> None:
    if not holds:
        raise ValueError(expected)
