"""Copy what a model needs out of the store, ready for a phone."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tokforge_models.bundle import Bundle, FileRole
from tokforge_models.digests import hash_file
from tokforge_models.disk import explained, is_plain_file, is_plain_folder, open_plain
from tokforge_models.errors import IntegrityError, Refused
from tokforge_models.installed import Installed
from tokforge_models.manifest import Entry
from tokforge_models.names import inside
from tokforge_models.progress import Meter, Phase, Progress, silent
from tokforge_models.store import Store, place_for

_CHUNK_BYTES = 4 * 1024 * 1024


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
        Refused: `dest` holds something else, or lies in the store.
        StorageError: it cannot be written.
    """
    dest = dest.expanduser().absolute()
    with store.claim(id, command or f"tokforge export {id}") as installed:
        entries = _required(store, installed, bundle)
        meter = Meter(progress, id, Phase.EXPORTING, sum(entry.size for entry in entries))
        there = _there_already(store, dest, entries)
        store.disk.make_folder(dest)
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


def _there_already(store: Store, dest: Path, entries: tuple[Entry, ...]) -> frozenset[str]:
    """Which of the files are in `dest`; whatever else is there is refused."""
    if dest.resolve().is_relative_to(store.home.resolve()):
        raise Refused(f"{dest} lies in the store", hint="export to a folder elsewhere")
    if not dest.exists() and not dest.is_symlink():
        return frozenset()
    wanted = {entry.path: entry for entry in entries}
    leftovers = {f"{path}.part" for path in wanted} - wanted.keys()
    there: set[str] = set()
    strangers: list[str] = []
    with explained("read", dest):
        if not dest.is_dir():
            raise Refused(f"{dest} is not a folder")
        for folder, subfolders, names in os.walk(dest):
            links = [name for name in subfolders if not is_plain_folder(Path(folder, name))]
            for name in (*names, *links):
                path = Path(folder, name).relative_to(dest).as_posix()
                if path in wanted and _is_same(dest / path, wanted[path]):
                    there.add(path)
                elif path not in leftovers:
                    strangers.append(path)
    if strangers:
        raise Refused(
            f"{dest} is not empty",
            expected="an empty folder, or nothing but the files of this bundle",
            got=", ".join(sorted(strangers)[:5]) + (" ..." if len(strangers) > 5 else ""),
            kept="everything in it",
        )
    return frozenset(there)


def _is_same(path: Path, entry: Entry) -> bool:
    return (
        is_plain_file(path)
        and path.stat().st_size == entry.size
        and hash_file(path) == entry.sha256
    )


def _copy(store: Store, installed: Installed, entry: Entry, dest: Path, meter: Meter) -> None:
    source = inside(installed.path, entry.path)
    final = place_for(dest, entry.path, store.disk)
    part = final.with_name(f"{final.name}.part")
    whole = hashlib.sha256()
    store.disk.remove(part)
    store.disk.preallocate(part, 0)
    with explained("read", source), open_plain(source) as stream:
        while data := stream.read(_CHUNK_BYTES):
            whole.update(data)
            store.disk.append(part, data)
            meter.add(entry.path, len(data))
    if whole.hexdigest() != entry.sha256:
        store.disk.remove(part)
        raise IntegrityError(
            f"{entry.path} of {installed.id} is not what was verified",
            expected=f"sha256 {entry.sha256}",
            got=whole.hexdigest(),
            kept="the files already exported",
            hint=f"tokforge verify --full --repair {installed.id}",
        )
    store.disk.sync(part)
    store.disk.publish(part, final)
