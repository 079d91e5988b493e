"""The store: which bundles are here, in which state, and where.

    $TOKFORGE_HOME (else the platform's user data directory)
      bundles/<id>/current              names the revision in use; written last of all
      bundles/<id>/<revision>/          the files; real files, never links
      bundles/<id>/<revision>/.tokforge/manifest.json   what they must be (manifest.py)
      bundles/<id>/<revision>/.tokforge/journal         what is safe so far (journal.py)
      bundles/<id>/<revision>/.tokforge/*.part          files that are not whole yet
      pins.json                         what first downloads pinned (pins.py)
      pins.json.lock                    held while that is written
      locks/<id>/                       who works on it, who uses it (locks.py)
      fingerprints/<content>.fingerprint   what its files say, kept (fingerprint_cache.py)
      measurements/*.json               what was measured here (measurement.py)
      learned/                          what the engine learned of pairs (the engine's learned.py)

A state is always read from the disk, never remembered:

    absent   nothing of it is here
    partial  something is here, but `current` names nothing yet
    ready    `current` names a revision whose manifest is valid and whose files are all there
    damaged  `current` is there, but what it names is not whole, failed its last check, or is not
             what its configuration or pins.json asks for (doubts.py)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tokforge_models.bundle import Role, Settings, State
from tokforge_models.errors import (
    IntegrityError,
    MayOnlyRead,
    StorageError,
    UnknownBundle,
    UsageError,
)
from tokforge_models.files.digests import SEGMENT_BYTES
from tokforge_models.files.disk import Disk, is_plain_folder, read_small
from tokforge_models.files.locks import Holder, Locks, no_matter
from tokforge_models.installed import Installed
from tokforge_models.model_files.completeness import (
    CONFIG,
    MAX_CONFIG_BYTES,
    parse_config,
    settings_of,
)
from tokforge_models.names import inside, is_bundle_id, is_revision, users_path
from tokforge_models.store.doubts import doubts_about
from tokforge_models.store.journal import read_journal
from tokforge_models.store.manifest import Entry, Manifest, Stamp, read_manifest, to_bytes
from tokforge_models.store.pins import PinFile

OURS = ".tokforge"
_CURRENT_BYTES = 1024


@dataclass(frozen=True, slots=True)
class BundleStatus:
    """One bundle as it is on disk.

    Attributes:
        id: its id.
        role: what it is for; None where nothing on disk says so.
        state: absent, partial, ready or damaged.
        revision: the revision in use, else the one that is being filled.
        bytes: size of the files of a ready or damaged bundle.
        partial_bytes: verified bytes of files and revisions that are not whole yet.
        path: the folder of that revision, else of the bundle.
        problems: what is wrong, in words; a ready bundle may have some, too.
    """

    id: str
    role: Role | None
    state: State
    revision: str | None
    bytes: int
    partial_bytes: int
    path: Path
    problems: tuple[str, ...] = ()


class Look(Enum):
    """What a glance at a file says, without reading it."""

    SAME = "is unchanged since it was verified"
    CHANGED = "was touched since it was verified"
    FAILED = "is not what was verified"
    SIZE = "has another size than was verified"
    MISSING = "is missing"
    NOT_A_FILE = "is not a regular file"

    @property
    def whole(self) -> bool:
        """Whether the file may still be what it was."""
        return self in {Look.SAME, Look.CHANGED}


def look(folder: Path, entry: Entry) -> Look:
    """Compare one file with its stamp, reading nothing."""
    path = folder
    for part in entry.path.split("/"):
        if not is_plain_folder(path):
            return Look.MISSING
        path = path / part
    try:
        stamp = Stamp.of(path)
    except OSError:
        return Look.MISSING
    if path.is_symlink() or not path.is_file():
        return Look.NOT_A_FILE
    if stamp.size != entry.size:
        return Look.SIZE
    if entry.stamp is None:
        return Look.FAILED
    return Look.SAME if stamp == entry.stamp else Look.CHANGED


class Store:
    """All bundles of one user.

    Args:
        home: root of the store; None means $TOKFORGE_HOME, else the user data directory.
        disk: how everything is written.
        segment_bytes: length of the segments that are verified, resumed and mended one by one.

    Raises:
        UsageError: `home` is no path here.
    """

    def __init__(
        self, home: Path | None = None, disk: Disk | None = None, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self.home = users_path(home or default_home())
        self.disk = disk or Disk()
        self.segment_bytes = segment_bytes
        self.pins = PinFile(self.home / "pins.json", self.disk)

    def folder(self, id: str) -> Path:
        """Folder of all revisions of a bundle.

        Raises:
            UsageError: `id` cannot be a bundle's id.
        """
        if not is_bundle_id(id):
            raise UsageError(
                f"{id[:80]!r} cannot be the id of a bundle",
                expected="lower-case letters, digits, '.', '_' and '-'",
            )
        return self.home / "bundles" / id

    def revision_folder(self, id: str, revision: str) -> Path:
        """Folder of the files of one revision.

        Raises:
            UsageError: `id` or `revision` cannot be a folder's name.
        """
        if not is_revision(revision):
            raise UsageError(f"{revision[:80]!r} cannot be the name of a revision")
        return self.folder(id) / revision

    def locks(self, id: str) -> Locks:
        """The locks of a bundle."""
        return Locks(self.home / "locks" / self.folder(id).name, self.disk)

    def lock(
        self,
        id: str,
        command: str,
        timeout: float,
        waiting: Callable[[Holder], None] = no_matter,
    ) -> AbstractContextManager[None]:
        """Be the one process that works on a bundle; see `Locks.exclusive`."""
        return self.locks(id).exclusive(command, timeout, waiting)

    @contextmanager
    def claim(self, id: str, command: str) -> Iterator[Installed]:
        """Use a ready bundle: until the end, nobody can remove or mend it.

        Where this user may only read, it is used without a claim: whoever may write there is not
        held off.

        Args:
            id: the bundle.
            command: how others shall name this use, e.g. ``tokforge run qwen3-4b``.

        Raises:
            UnknownBundle: it is not here.
            IntegrityError: it is here but not ready.
            Refused: it is being removed or mended right now.
        """
        self.ready(id)
        with ExitStack() as held:
            try:
                held.enter_context(self.locks(id).claim(command))
            except MayOnlyRead:
                if os.access(self.folder(id), os.W_OK):
                    raise
            yield self.ready(id)

    def ready(self, id: str) -> Installed:
        """One ready bundle.

        Raises:
            UnknownBundle: it is not here.
            IntegrityError: it is here but not ready.
        """
        status, manifest = self._glance(id)
        if status.state is State.ABSENT:
            raise UnknownBundle(f"{id} is not installed", hint=f"tokforge pull {id}")
        if status.state is not State.READY or manifest is None:
            raise IntegrityError(
                f"{id} is {status.state}: {'; '.join(status.problems) or 'not all of it is here'}",
                expected=State.READY,
                hint=f"tokforge pull {id}",
            )
        return self._installed(manifest)

    def installed(self) -> dict[str, Installed]:
        """All ready bundles, by id; hashes nothing."""
        glances = map(self._glance, self._ids())
        return {
            status.id: self._installed(manifest)
            for status, manifest in glances
            if status.state is State.READY and manifest is not None
        }

    def statuses(self) -> tuple[BundleStatus, ...]:
        """Every bundle of which something is here, by id; hashes nothing."""
        found = map(self.status, self._ids())
        return tuple(status for status in found if status.state is not State.ABSENT)

    def status(self, id: str) -> BundleStatus:
        """State of one bundle; hashes nothing."""
        return self._glance(id)[0]

    def _ids(self) -> list[str]:
        try:
            names = sorted(path.name for path in (self.home / "bundles").iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StorageError(f"cannot read {self.home / 'bundles'}: {error.strerror}") from error
        return [name for name in names if is_bundle_id(name)]

    def _glance(self, id: str) -> tuple[BundleStatus, Manifest | None]:
        """State of a bundle, with the manifest of the revision in use, if that can be read."""
        folder = self.folder(id)
        if not folder.is_symlink() and not folder.exists():
            return BundleStatus(id, None, State.ABSENT, None, 0, 0, folder), None
        if not is_plain_folder(folder):
            return self._damaged(id, f"{folder} is not a folder; remove it by hand"), None
        if not ((folder / "current").exists() or (folder / "current").is_symlink()):
            return self._status_without_current(id), None
        revision = self.current(id)
        if revision is None:
            return self._damaged(id, "what `current` says is not a revision"), None
        try:
            manifest = self.manifest(id, revision)
        except IntegrityError as error:
            place = self.revision_folder(id, revision)
            return self._damaged(id, error.message, revision, place), None
        return self._status_of(manifest), manifest

    def current(self, id: str) -> str | None:
        """The revision in use, or None where nothing valid is named."""
        try:
            text = read_small(self.folder(id) / "current", _CURRENT_BYTES).decode("ascii").strip()
        except (OSError, ValueError):
            return None
        return text if is_revision(text) else None

    def revisions(self, id: str) -> tuple[str, ...]:
        """Every revision of which something is here."""
        folder = self.folder(id)
        if not is_plain_folder(folder):
            return ()
        try:
            names = sorted(path.name for path in folder.iterdir() if is_plain_folder(path))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StorageError(f"cannot read {folder}: {error.strerror}") from error
        return tuple(name for name in names if is_revision(name))

    def manifest(self, id: str, revision: str) -> Manifest:
        """What a revision consists of.

        Raises:
            IntegrityError: it says nothing valid.
        """
        folder = self.revision_folder(id, revision)
        if not (is_plain_folder(folder) and is_plain_folder(folder / OURS)):
            raise IntegrityError(f"revision {revision} of {id} has no manifest")
        return read_manifest(folder / OURS / "manifest.json", id=id, revision=revision)

    def write_manifest(self, manifest: Manifest) -> None:
        """Put a manifest in its place, for whoever holds the bundle's lock."""
        folder = self.revision_folder(manifest.id, manifest.revision)
        self.disk.write(folder / OURS / "manifest.json", to_bytes(manifest))

    def use(self, id: str, revision: str) -> None:
        """Make a whole revision the one in use; from here on the bundle is ready."""
        self.disk.write(self.folder(id) / "current", f"{revision}\n".encode())

    def prepare(self, id: str, revision: str) -> Path:
        """Make the folders of a revision, and return that of its files.

        Raises:
            StorageError: one of them is a link or a file, or cannot be made.
        """
        files = self.revision_folder(id, revision)
        for folder in (files.parent, files, files / OURS):
            refuse_link(folder)
        self.disk.make_folder(files / OURS)
        return files

    def _status_of(self, manifest: Manifest) -> BundleStatus:
        id, revision = manifest.id, manifest.revision
        folder = self.revision_folder(id, revision)
        looks = [(entry, look(folder, entry)) for entry in manifest.files]
        problems = [f"{entry.path} {seen.value}" for entry, seen in looks if seen is not Look.SAME]
        whole = all(seen.whole for _, seen in looks)
        if whole and (doubts := self._doubts(manifest)):
            whole, problems = False, [*problems, *doubts]
        return BundleStatus(
            id,
            manifest.role,
            State.READY if whole else State.DAMAGED,
            revision,
            sum(entry.size for entry in manifest.files),
            self._partial_bytes(id, without=revision if whole else None),
            folder,
            tuple(problems),
        )

    def _doubts(self, manifest: Manifest) -> list[str]:
        folder = self.revision_folder(manifest.id, manifest.revision)
        try:
            seen = self.pins.seen(manifest.id, manifest.revision)
        except (IntegrityError, StorageError) as error:
            return [f"{error.message} ({error.hint})"]
        return [doubt.why for doubt in doubts_about(manifest, folder, seen)]

    def _status_without_current(self, id: str) -> BundleStatus:
        folder = self.folder(id)
        revisions = self.revisions(id)
        if not any(files for _, _, files in os.walk(folder)):
            return BundleStatus(id, None, State.ABSENT, None, 0, 0, folder)
        journals = {
            revision: found[0]
            for revision in revisions
            if (found := read_journal(folder / revision / OURS / "journal"))
        }
        revision = next(iter(journals or revisions), None)
        return BundleStatus(
            id,
            journals[revision].role if revision in journals else None,
            State.PARTIAL,
            revision,
            0,
            self._partial_bytes(id, without=None),
            folder / revision if revision else folder,
        )

    def _damaged(
        self, id: str, problem: str, revision: str | None = None, path: Path | None = None
    ) -> BundleStatus:
        path = path or self.folder(id)
        return BundleStatus(id, None, State.DAMAGED, revision, 0, 0, path, (problem,))

    def _partial_bytes(self, id: str, *, without: str | None) -> int:
        total = 0
        for revision in self.revisions(id):
            found = read_journal(self.revision_folder(id, revision) / OURS / "journal")
            if found and revision != without:
                header, records = found
                total += sum(record.safe_bytes(header.segment_bytes) for record in records.values())
        return total

    def _installed(self, manifest: Manifest) -> Installed:
        folder = self.revision_folder(manifest.id, manifest.revision)
        settings = Settings()
        try:
            config = parse_config(CONFIG, read_small(folder / CONFIG, MAX_CONFIG_BYTES))
        except OSError:
            config = "unreadable"
        if not isinstance(config, str):
            settings, _ = settings_of(config)
        return Installed(manifest.id, manifest.revision, folder, manifest.content, settings)


def refuse_link(folder: Path) -> None:
    """Let pass a folder that is one, or that is not there yet.

    Raises:
        StorageError: something else is in its place.
    """
    if (folder.exists() or folder.is_symlink()) and not is_plain_folder(folder):
        raise StorageError(
            f"{folder} is in the way",
            expected="a folder",
            got="a link or a file",
            hint="move it away, then run the same command again",
        )


def place_for(folder: Path, path: str, disk: Disk) -> Path:
    """Where the file `path` belongs below `folder`; makes the folders on the way.

    Raises:
        Refused: the name is not safe.
        StorageError: a link or a file is in the way, or a folder in the file's own place.
    """
    final = inside(folder, path)
    parts = path.split("/")
    for depth in range(1, len(parts)):
        refuse_link(folder.joinpath(*parts[:depth]))
    if is_plain_folder(final):
        raise StorageError(
            f"{final} is in the way",
            expected="a file",
            got="a folder",
            hint="move it away, then run the same command again",
        )
    disk.make_folder(final.parent)
    return final


def default_home() -> Path:
    """$TOKFORGE_HOME, else the platform's user data directory."""
    if home := os.environ.get("TOKFORGE_HOME"):
        return Path(home)
    from platformdirs import user_data_path

    return user_data_path("tokforge", appauthor=False)
