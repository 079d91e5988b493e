"""tokforge.lock: what was installed, to the byte, so that another machine gets the same.

    {"schema": 1, "bundles": {id: {"source": ..., "revision": ..., "commit": text or null,
                                   "files": [{"path", "role", "size", "sha256"}]}}}

The file says what the bytes must be, and which commit has them; it does not say whom to ask. That
stays with the registry, or with the user's `--source`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokforge_models.bundle import Bundle, BundleFile, FileRole, Source, State
from tokforge_models.errors import IntegrityError, UnknownBundle, UsageError
from tokforge_models.files.digests import is_sha256
from tokforge_models.files.disk import Disk, explained, read_small
from tokforge_models.names import fault_in_paths, is_bundle_id, is_revision
from tokforge_models.sources.source import parse_source
from tokforge_models.store.manifest import Manifest, is_schema, unique_keys
from tokforge_models.store.store import Store

NAME = "tokforge.lock"
SCHEMA = 1
MAX_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Locked:
    """One bundle, frozen.

    Attributes:
        source: where it came from.
        revision: name of the revision.
        commit: what the source calls it, or None.
        files: every file, with size and sha256.
    """

    source: str
    revision: str
    commit: str | None
    files: tuple[BundleFile, ...]


def freeze(store: Store, ids: Iterable[str] | None = None) -> dict[str, Locked]:
    """What is installed of these bundles, or of all.

    Raises:
        UnknownBundle: one is not here, or none at all.
        IntegrityError: one is here but not ready.
    """
    if ids is None:
        ids = [status.id for status in store.statuses() if status.state is State.READY]
    chosen = list(dict.fromkeys(ids))
    if not chosen:
        raise UnknownBundle("nothing is installed that could be locked", hint="tokforge pull ID")
    return {id: _locked(store.manifest(id, store.ready(id).revision)) for id in chosen}


def _locked(manifest: Manifest) -> Locked:
    files = tuple(
        BundleFile(entry.path, entry.role, entry.size, entry.sha256) for entry in manifest.files
    )
    return Locked(manifest.source, manifest.revision, manifest.commit, files)


def write_lock(path: Path, locked: Mapping[str, Locked], disk: Disk) -> None:
    """Put a lock file in its place in one instant.

    Raises:
        StorageError: it cannot be written.
    """
    document = {
        "schema": SCHEMA,
        "bundles": {
            id: {
                "source": one.source,
                "revision": one.revision,
                "commit": one.commit,
                "files": [
                    {"path": file.path, "role": file.role, "size": file.size, "sha256": file.sha256}
                    for file in one.files
                ],
            }
            for id, one in sorted(locked.items())
        },
    }
    disk.write(path, (json.dumps(document, indent=2) + "\n").encode())


def read_lock(path: Path) -> dict[str, Locked]:
    """Read a lock file.

    Raises:
        StorageError: it is not there or cannot be read.
        IntegrityError: it is not exactly what `write_lock` writes.
    """
    with explained("read", path):
        data = read_small(path, MAX_BYTES)
    try:
        document = json.loads(data, object_pairs_hook=unique_keys)
        if not is_schema(document["schema"], SCHEMA):
            raise ValueError(f"schema {SCHEMA}")
        return {_checked_id(id): _parse(value) for id, value in document["bundles"].items()}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise IntegrityError(
            f"{path} is not a valid lock file",
            got=str(error)[:100],
            hint="tokforge lock writes it again from what is installed",
        ) from error


def as_locked(bundle: Bundle, locked: Locked) -> Bundle:
    """The registry's entry, pinned to what a lock file says."""
    return replace(
        bundle,
        revision=locked.revision,
        files=locked.files,
        sources=tuple(_at_commit(source, locked) for source in bundle.sources),
    )


def _at_commit(source: Source, locked: Locked) -> Source:
    try:
        before = parse_source(locked.source)
    except UsageError:
        return source
    same = (source.kind, source.location) == (before.kind, before.location)
    return replace(source, revision=locked.commit) if same and locked.commit else source


def _parse(value: Any) -> Locked:
    source, revision, commit = value["source"], value["revision"], value["commit"]
    if not (isinstance(source, str) and isinstance(commit, str | None)):
        raise TypeError("source and commit must be text")
    if not (isinstance(revision, str) and is_revision(revision)):
        raise ValueError("revision")
    if commit is not None and not is_revision(commit):
        raise ValueError("commit")
    files = tuple(_file(file) for file in value["files"])
    if not files:
        raise ValueError("no files")
    if fault := fault_in_paths(file.path for file in files):
        raise ValueError(fault)
    return Locked(source, revision, commit, files)


def _file(value: Any) -> BundleFile:
    path, size, sha256 = value["path"], value["size"], value["sha256"]
    if not isinstance(path, str) or type(size) is not int or size < 0 or not is_sha256(sha256):
        raise ValueError("a file")
    return BundleFile(path, FileRole(value["role"]), size, sha256)


def _checked_id(id: str) -> str:
    if not is_bundle_id(id):
        raise ValueError("an id")
    return id
