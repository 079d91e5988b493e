"""Reads a file that anyone may have put there: never waits for a pipe, never reads without end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_PART_BYTES = 8 << 20
# Opening a pipe that nobody writes to waits, unless this says not to.
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)


def read_regular(path: Path, limit: int) -> bytes:
    """The bytes of a regular file; links are followed.

    Args:
        path: the file.
        limit: bytes that it may have at most.

    Raises:
        OSError: it is not there, no regular file, larger, or may not be read.
    """
    with open(path, "rb", opener=_open) as stream:
        size = os.fstat(stream.fileno()).st_size
        parts = []
        # Part by part: room for all of them would be taken at once, the limit's and not the file's.
        while size <= limit and (part := stream.read(_PART_BYTES)):
            parts.append(part)
            size = max(size, sum(map(len, parts)))
    if size > limit:
        raise OSError(errno.EFBIG, f"larger than {limit:,} bytes")
    return b"".join(parts)


def read_head(path: Path, count: int) -> bytes:
    """The first `count` bytes of a regular file, or all where it has fewer.

    Raises:
        OSError: as `read_regular`.
    """
    with open(path, "rb", opener=_open) as stream:
        return stream.read(count)


def read_tail(path: Path, count: int) -> bytes:
    """The last `count` bytes of a regular file, or all where it has fewer.

    Raises:
        OSError: as `read_regular`.
    """
    with open(path, "rb", opener=_open) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - count, 0))
        return stream.read(count)


def _open(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | _NO_WAITING)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor
