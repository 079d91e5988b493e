"""Every change that this package makes to the file system.

`Disk` has two layers. Its public methods are what the store is written in; each is safe to be
killed in. They are built from a few steps (`_write`, `_replace`, ...), each about one system
call, and nothing else in the package writes, renames or removes a file. A test that wants a full
disk, a forbidden folder or a kill at the n-th step overrides the steps.

What a crash of the system (not of the process) may cost: bytes of a partial file are not forced
to the disk one segment at a time, because whoever resumes hashes them again; a file is forced
out before it gets its final name, and so is every small file that `write` replaces.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tokforge_models.errors import MayOnlyRead, StorageError

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
# File systems that cannot force a folder out say one of these.
_CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES})
KEPT = "everything verified so far"


def explain(doing: str, path: Path, error: OSError) -> StorageError:
    """Turn the system's refusal of `doing` something to `path` into our error."""
    if doing in {"read", "write", "remove"} and _is_odd(path):
        hint = f"something else is in its place: move {path} away, then run the same command again"
    elif error.errno in _NO_SPACE:
        hint = "free some space, then run the same command again"
    elif error.errno in _FORBIDDEN:
        hint = "allow this user to write there, or set TOKFORGE_HOME to another folder"
    else:
        hint = "run the same command again once the cause is gone"
    reason = error.strerror or type(error).__name__
    kind = MayOnlyRead if error.errno in _FORBIDDEN else StorageError
    return kind(f"cannot {doing} {path}: {reason}", kept=KEPT, hint=hint)


@contextmanager
def explained(doing: str, path: Path) -> Iterator[None]:
    """Let `OSError` leave as `StorageError`."""
    try:
        yield
    except OSError as error:
        raise explain(doing, path, error) from error


def _is_odd(path: Path) -> bool:
    """Whether something is there that is no regular file, such as a folder or a pipe."""
    return os.path.lexists(path) and not is_plain_file(path)


def is_there(path: Path) -> bool:
    """Whether something is at `path`; true also where we may not look, as reading it will say."""
    try:
        return path.exists()
    except OSError:
        return True


def is_plain_file(path: Path) -> bool:
    """Whether `path` itself, not what it may link to, is a regular file."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def is_plain_folder(path: Path) -> bool:
    """Whether `path` itself, not what it may link to, is a folder."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def open_plain(path: Path) -> IO[bytes]:
    """Open a regular file for unbuffered reading, following no link at its last part.

    Raises:
        OSError: it is not there, not a regular file, or may not be read.
    """
    if not is_plain_file(path):
        path.lstat()
        raise _not_regular()
    return _open(path, "rb")


def _not_regular() -> OSError:
    return OSError(errno.EINVAL, "not a regular file")


# A link at the last part is not followed, and a pipe there is not waited for, where the system
# can tell.
_WARY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def _open(path: Path, mode: str) -> IO[bytes]:
    """Open a regular file without buffer."""
    return open(path, mode, buffering=0, opener=_open_wary)


def _open_wary(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | _WARY, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular()
    return descriptor


def real_path(path: Path) -> Path:
    """Where the links of a path lead; of a circle of links, one of them.

    For what a person points at, whose links are theirs; never for a file of the store.
    """
    return Path(os.path.realpath(path))


def read_small(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes.

    Raises:
        OSError: as `open_plain`, or the file is larger.
    """
    with open_plain(path) as stream:
        told = os.fstat(stream.fileno()).st_size
        rest = limit + 1 if told <= limit else 0
        pieces = []
        while rest and (piece := stream.read(min(rest, 1 << 20))):
            pieces.append(piece)
            rest -= len(piece)
        data = b"".join(pieces)
    if max(told, len(data)) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes")
    return data


class Disk:
    """Changes to the file system; all raise `StorageError`, none follows a symbolic link."""

    def make_folder(self, path: Path) -> None:
        """Make `path` and its missing parents."""
        with explained("make the folder", path):
            missing = []
            while not path.is_dir():
                missing.append(path)
                path = path.parent
            for folder in reversed(missing):
                self._make_folder(folder)

    def write(self, path: Path, data: bytes) -> None:
        """Put a small file there in one instant: the old content or the new, never a mixture."""
        temporary = path.with_name(f"{path.name}.tmp")
        with explained("write", path):
            self._write(temporary, data, offset=None)
            self._sync(temporary)
            self._replace(temporary, path)
            self._sync_folder(path.parent)

    def append(self, path: Path, data: bytes) -> None:
        """Add `data` to the end of a file; a kill may leave a first part of it."""
        with explained("write", path):
            self._append(path, data)

    def preallocate(self, path: Path, size: int) -> None:
        """Make sure that `path` is a file of exactly `size` bytes, keeping what it has."""
        with explained("write", path):
            self._resize(path, size)

    def link(self, existing: Path, path: Path) -> bool:
        """Give a file a second name, if that can be done; False where it cannot."""
        try:
            self._link(existing, path)
        except OSError:
            return False
        return True

    def write_at(self, path: Path, offset: int, data: bytes) -> None:
        """Overwrite a part of an existing file; a kill may leave a first part of it."""
        with explained("write", path):
            self._write(path, data, offset=offset)

    def sync(self, path: Path) -> None:
        """Force the bytes of a file out to the disk."""
        with explained("write", path):
            self._sync(path)

    def touch(self, path: Path) -> None:
        """Give a file the time of now, so that no stamp of before fits; needs no space."""
        with explained("touch", path):
            self._touch(path)

    def publish(self, partial: Path, final: Path) -> None:
        """Give a finished, synced file its final name in one instant."""
        with explained("write", final):
            self._replace(partial, final)
            self._sync_folder(final.parent)

    def remove(self, path: Path) -> None:
        """Remove a file or a link, which may be missing."""
        with explained("remove", path):
            self._remove(path)

    def remove_tree(self, path: Path) -> None:
        """Remove a folder and all below it, or a file or link in its place."""
        if not is_plain_folder(path):
            self.remove(path)
            return
        with explained("remove", path):
            for folder, subfolders, files in os.walk(path, topdown=False):
                for name in files:
                    self._remove(Path(folder, name))
                for name in subfolders:
                    if (child := Path(folder, name)).is_symlink():
                        self._remove(child)
                    else:
                        self._remove_folder(child)
            self._remove_folder(path)

    def free(self, path: Path) -> int:
        """Bytes that may still be written where `path` is or will be."""
        with explained("look at", path):
            while not path.exists():
                path = path.parent
            return shutil.disk_usage(path).free

    # The steps.

    def _make_folder(self, path: Path) -> None:
        path.mkdir(exist_ok=True)

    def _write(self, path: Path, data: bytes, *, offset: int | None) -> None:
        with _open(path, "wb" if offset is None else "r+b") as stream:
            stream.seek(offset or 0)
            _write_all(stream, data)

    def _link(self, existing: Path, path: Path) -> None:
        path.hardlink_to(existing)

    def _append(self, path: Path, data: bytes) -> None:
        with _open(path, "ab") as stream:
            _write_all(stream, data)

    def _resize(self, path: Path, size: int) -> None:
        with _open(path, "ab") as stream:
            stream.truncate(size)

    def _sync(self, path: Path) -> None:
        with _open(path, "r+b") as stream:
            os.fsync(stream.fileno())

    def _sync_folder(self, path: Path) -> None:
        if os.name == "nt":
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _CANNOT_SYNC:
                raise
        finally:
            os.close(descriptor)

    def _replace(self, source: Path, target: Path) -> None:
        source.replace(target)

    def _touch(self, path: Path) -> None:
        os.utime(path)

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def _remove_folder(self, path: Path) -> None:
        path.rmdir()


def _write_all(stream: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]
