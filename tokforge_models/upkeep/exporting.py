"""Copy what a model needs out of the store, ready for a phone.

While it goes on, the folder holds `.tokforge-export.lock`, so that two exports never mix, and
`<file>.<number>.part` of the file under way. A file gets its name once its copy, read back, has
the digest that was verified.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tokforge_models.bundle import Bundle, FileRole
from tokforge_models.errors import IntegrityError, Refused, StorageError
from tokforge_models.files.digests import hash_file
from tokforge_models.files.disk import explained, is_plain_file, is_plain_folder, open_plain
from tokforge_models.installed import Installed
from tokforge_models.names import inside, users_path
from tokforge_models.progress import Meter, Phase, Progress, silent
from tokforge_models.store.manifest import Entry
from tokforge_models.store.store import Store, place_for

_CHUNK_BYTES = 4 * 1024 * 1024
_LOCK = ".tokforge-export.lock"
_PART = re.compile(r"(.+)\.[0-9a-f]{12}\.part")


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export came to.

    Attributes:
        id: the bundle.
        path: the folder.
        files: paths of the files in it.
        bytes: their size together.
    """

    id: str
    path: Path
    files: tuple[str, ...]
    bytes: int


def export_bundle(
    store: Store,
    id: str,
    dest: Path,
    *,
    bundle: Bundle | None = None,
    progress: Progress = silent,
    command: str | None = None,
) -> Exported:
    """Copy the required files of a ready bundle into `dest`, hashing each again on its way.

    Args:
        store: where it is.
        id: the bundle.
        dest: a folder that is not there, is empty, or holds nothing but these very files; an
            interrupted export can so be run again.
        bundle: the registry's entry, whose list of required files decides where it has one.
        progress: told of every byte.
        command: how others shall name this use of the bundle.

    Raises:
        UnknownBundle, IntegrityError: the bundle is not ready, or a file is not what it was.
        Refused: `dest` holds something else, lies in the store, or is being exported to.
        StorageError: it cannot be written.
        UsageError: `dest` names the home of nobody.
    """
    dest = users_path(dest)
    with store.claim(id, command or f"tokforge export {id}") as installed:
        entries = _required(store, installed, bundle)
        meter = Meter(progress, id, Phase.EXPORTING, sum(entry.size for entry in entries))
        _refuse_place(store, dest)
        store.disk.make_folder(dest)
        with _alone(store, dest):
            there, leftovers = _there_already(dest, entries)
            for leftover in leftovers:
                store.disk.remove(leftover)
            for entry in entries:
                if entry.path in there:
                    meter.add(entry.path, entry.size)
                else:
                    _copy(store, installed, entry, dest, meter)
    paths = tuple(entry.path for entry in entries)
    return Exported(id, dest, paths, sum(entry.size for entry in entries))


def _required(store: Store, installed: Installed, bundle: Bundle | None) -> tuple[Entry, ...]:
    have = store.manifest(installed.id, installed.revision).by_path()
    listed = (
        [file.path for file in bundle.files if file.role is FileRole.REQUIRED] if bundle else []
    )
    paths = listed or [path for path, entry in have.items() if entry.role is FileRole.REQUIRED]
    if missing := [path for path in paths if path not in have]:
        raise IntegrityError(
            f"{installed.id} lacks files that the registry requires",
            expected=", ".join(missing),
            hint=f"tokforge pull {installed.id}",
        )
    return tuple(have[path] for path in paths)


def _refuse_place(store: Store, dest: Path) -> None:
    with explained("look at", dest):
        if Path(os.path.realpath(dest)).is_relative_to(os.path.realpath(store.home)):
            raise Refused(f"{dest} lies in the store", hint="export to a folder elsewhere")
        if (dest.exists() or dest.is_symlink()) and not dest.is_dir():
            raise Refused(f"{dest} is not a folder", hint="export to a folder, new or empty")


@contextmanager
def _alone(store: Store, dest: Path) -> Iterator[None]:
    """Be the only export to `dest`."""
    from filelock import FileLock, Timeout

    path = dest / _LOCK
    lock = FileLock(path)
    with explained("lock", path):
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise Refused(
                f"another command is exporting to {dest}",
                kept="what is there",
                hint="wait for that command to end, then run this one again",
            ) from error
    try:
        yield
    finally:
        try:
            with suppress(StorageError):  # an empty file that stays is in nobody's way
                store.disk.remove(path)
        finally:
            lock.release()


def _there_already(
    dest: Path, entries: tuple[Entry, ...]
) -> tuple[frozenset[str], tuple[Path, ...]]:
    """Which of the files are in `dest`, and what an export that was killed has left there.

    Raises:
        Refused: anything else is there, too.
    """
    wanted = {entry.path: entry for entry in entries}
    there: set[str] = set()
    leftovers: list[Path] = []
    strangers: list[str] = []
    with explained("read", dest):
        for folder, subfolders, names in os.walk(dest):
            links = [name for name in subfolders if not is_plain_folder(Path(folder, name))]
            for name in (*names, *links):
                place = Path(folder, name)
                path = place.relative_to(dest).as_posix()
                part = _PART.fullmatch(path)
                if path in wanted and _is_same(place, wanted[path]):
                    there.add(path)
                elif part and part[1] in wanted and is_plain_file(place):
                    leftovers.append(place)
                elif path != _LOCK:
                    strangers.append(path)
    if strangers:
        raise Refused(
            f"{dest} is not empty",
            expected="an empty folder, or nothing but the files of this bundle",
            got=", ".join(sorted(strangers)[:5]) + (" ..." if len(strangers) > 5 else ""),
            kept="everything in it",
            hint="export to another folder",
        )
    return frozenset(there), tuple(leftovers)


def _is_same(path: Path, entry: Entry) -> bool:
    return (
        is_plain_file(path)
        and path.stat().st_size == entry.size
        and hash_file(path) == entry.sha256
    )


def _copy(store: Store, installed: Installed, entry: Entry, dest: Path, meter: Meter) -> None:
    source = inside(installed.path, entry.path)
    final = place_for(dest, entry.path, store.disk)
    part = final.with_name(f"{final.name}.{os.urandom(6).hex()}.part")
    store.disk.preallocate(part, 0)
    with explained("read", source), open_plain(source) as stream:
        while data := stream.read(_CHUNK_BYTES):
            store.disk.append(part, data)
            meter.add(entry.path, len(data))
    store.disk.sync(part)
    with explained("read", part):
        copied = hash_file(part)
    if copied != entry.sha256:
        store.disk.remove(part)
        raise IntegrityError(
            f"{entry.path} of {installed.id} is not what was verified",
            expected=f"sha256 {entry.sha256}",
            got=copied,
            kept="the files already exported",
            hint=f"tokforge verify --full --repair {installed.id}",
        )
    store.disk.publish(part, final)
