"""Keeps fingerprints by content, so that a vocabulary is parsed once.

One file a bundle content, ``<key>.fingerprint``: a line with the SHA-256 of all that follows, a
line of JSON (schema, ids, attention, context length, number of tokens), then the length of every
token as 32 bits little-endian, then the tokens' bytes. A file that is damaged or of another schema
is written anew.
"""

from __future__ import annotations

import hashlib
import json
import struct
from itertools import accumulate, pairwise
from pathlib import Path

from tokforge_models.errors import IntegrityError, StorageError
from tokforge_models.files.disk import Disk, read_small
from tokforge_models.model_files.fingerprint import Fingerprint, fingerprint_of
from tokforge_models.names import inside
from tokforge_models.store.manifest import is_schema

SCHEMA = 1
_MAX_BYTES = 128 << 20


class FingerprintCache:
    """Fingerprints of the store's bundles, in a folder.

    Args:
        folder: made at the first write.
        disk: where changes go.
    """

    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        self._folder = folder
        self._disk = disk or Disk()

    def get(self, directory: Path, key: str) -> Fingerprint:
        """The fingerprint of the bundle in `directory`.

        Args:
            directory: the bundle's files.
            key: digest of the bundle's content; another content must have another key.

        Raises:
            IntegrityError: a file of the bundle is missing or damaged.
            UnknownFormat: its tokenizer is of a type that nothing here reads.
            Refused: `key` is no name of a file.
        """
        path = inside(self._folder, f"{key}.fingerprint")
        if (known := _load(path)) is not None:
            return known
        try:
            fingerprint = fingerprint_of(directory)
        except IntegrityError as error:
            raise IntegrityError(
                error.what,
                expected=error.expected,
                got=error.got,
                hint="tokforge verify --full --repair fetches it again",
            ) from error
        try:
            self._disk.make_folder(self._folder)
            self._disk.write(path, pack(fingerprint))
        except StorageError:
            # A cache that cannot be written costs time, not the answer.
            pass
        return fingerprint


def _load(path: Path) -> Fingerprint | None:
    try:
        return unpack(read_small(path, _MAX_BYTES))
    except OSError:
        return None


def pack(fingerprint: Fingerprint) -> bytes:
    """The bytes of a cache file."""
    lengths = [len(token) for token in fingerprint.tokens]
    head = {
        "schema": SCHEMA,
        "special_ids": sorted(fingerprint.special_ids),
        "stop_ids": sorted(fingerprint.stop_ids),
        "attention": fingerprint.attention,
        "context_length": fingerprint.context_length,
        "tokens": len(lengths),
    }
    body = struct.pack(f"<{len(lengths)}I", *lengths) + b"".join(fingerprint.tokens)
    return _sealed(json.dumps(head).encode() + b"\n" + body)


def _sealed(rest: bytes) -> bytes:
    return hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def unpack(data: bytes) -> Fingerprint | None:
    """The fingerprint in a cache file's bytes, or None where they are not whole."""
    _, _, rest = data.partition(b"\n")
    if data != _sealed(rest):
        return None
    line, _, body = rest.partition(b"\n")
    try:
        head = json.loads(line)
        if not is_schema(head["schema"], SCHEMA):
            return None
        lengths = struct.unpack_from(f"<{head['tokens']}I", body)
        ends = accumulate(lengths, initial=4 * len(lengths))
        return Fingerprint(
            tokens=tuple(body[start:end] for start, end in pairwise(ends)),
            special_ids=frozenset(head["special_ids"]),
            stop_ids=frozenset(head["stop_ids"]),
            attention=head["attention"],
            context_length=head["context_length"],
        )
    except (ValueError, TypeError, LookupError, RecursionError, struct.error):
        return None
