"""SHA-256 of files and of their segments.

A file is cut into segments of `SEGMENT_BYTES`; the last may be shorter, an empty file has none.
hashlib releases the interpreter's lock, so that hashing in threads uses every core.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tokforge_models.files.disk import open_plain

SEGMENT_BYTES = 8 * 1024 * 1024
_BUFFER_BYTES = 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Digests:
    """What a file's bytes are.

    Attributes:
        size: bytes.
        sha256: lower-case hexadecimal digest of the whole.
        segments: digests of its segments, in order.
    """

    size: int
    sha256: str
    segments: tuple[str, ...]


def is_sha256(text: object) -> bool:
    """Whether `text` is a digest as this package writes it."""
    return isinstance(text, str) and _SHA256.fullmatch(text) is not None


def is_blob_sha1(text: object) -> bool:
    """Whether `text` can be git's digest of a blob."""
    return isinstance(text, str) and _SHA1.fullmatch(text) is not None


def uncounted(count: int) -> None:
    """Take no notice of `count` more bytes."""


def segment_count(size: int, segment_bytes: int) -> int:
    """How many segments a file of `size` bytes has."""
    return -(-size // segment_bytes)


def segment_span(index: int, size: int, segment_bytes: int) -> tuple[int, int]:
    """First byte and first byte behind segment `index`."""
    start = index * segment_bytes
    return start, min(start + segment_bytes, size)


def hash_file(path: Path, on_bytes: Callable[[int], None] = uncounted) -> str:
    """Digest of a whole regular file.

    Raises:
        OSError: it cannot be read.
    """
    whole = hashlib.sha256()
    buffer = bytearray(_BUFFER_BYTES)
    view = memoryview(buffer)
    with open_plain(path) as stream:
        while count := stream.readinto(buffer):  # type: ignore[attr-defined]
            whole.update(view[:count])
            on_bytes(count)
    return whole.hexdigest()


def hash_as_blob(path: Path) -> str:
    """Digest of a whole regular file as git takes it: SHA-1 over its kind, size and bytes.

    Raises:
        OSError: it cannot be read.
    """
    header = f"blob {path.stat().st_size}\0".encode()
    whole = hashlib.sha1(header, usedforsecurity=False)
    with open_plain(path) as stream:
        while data := stream.read(_BUFFER_BYTES):
            whole.update(data)
    return whole.hexdigest()


def hash_segments(
    path: Path, segment_bytes: int, on_bytes: Callable[[int], None] = uncounted
) -> Digests:
    """Digests of a regular file and of its segments, in one pass.

    Raises:
        OSError: it cannot be read.
    """
    with open_plain(path) as stream:

        def read() -> Iterator[bytes]:
            while data := stream.read(_BUFFER_BYTES):
                on_bytes(len(data))
                yield data

        return digests_of(read(), segment_bytes)


def digests_of(chunks: Iterator[bytes], segment_bytes: int) -> Digests:
    """Digests of a stream of bytes cut anywhere."""
    whole = hashlib.sha256()
    size = 0
    segments: list[str] = []
    for segment in cut(chunks, segment_bytes):
        whole.update(segment)
        size += len(segment)
        segments.append(hashlib.sha256(segment).hexdigest())
    return Digests(size, whole.hexdigest(), tuple(segments))


def cut(chunks: Iterator[bytes], segment_bytes: int) -> Iterator[bytes]:
    """Cut a stream into pieces of `segment_bytes`; the last may be shorter."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        while len(held) >= segment_bytes:
            yield bytes(held[:segment_bytes])
            del held[:segment_bytes]
    if held:
        yield bytes(held)


def content_digest(files: Mapping[str, tuple[int, str]]) -> str:
    """One digest over paths, sizes and sha256 of `files`, whatever their order."""
    lines = (f"{path}\0{size}\0{sha256}\n" for path, (size, sha256) in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def pair_key(*contents: str) -> str:
    """Name of what is known of bundles together, by their content digests: target, then draft."""
    return hashlib.sha256(" ".join(contents).encode()).hexdigest()[:32]
