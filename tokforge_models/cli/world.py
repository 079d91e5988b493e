"""What a command works on: registry, store and device, and a target as a person names it.

What only resolution needs is imported where a target is resolved: `ls`, `verify` and `pull` answer
without it.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tokforge_models.bundle import Bundle, Role
from tokforge_models.cli import output
from tokforge_models.cli.progress import bar
from tokforge_models.errors import IntegrityError, UnknownBundle, UnknownFormat
from tokforge_models.files.digests import hash_file
from tokforge_models.files.disk import read_small, real_path
from tokforge_models.installed import Installed
from tokforge_models.model_files.completeness import (
    CONFIG,
    MAX_CONFIG_BYTES,
    parse_config,
    settings_of,
)
from tokforge_models.progress import Meter, Phase
from tokforge_models.registry.registry import WEIGHT_FILE, Registry, unlisted
from tokforge_models.store.store import Store

if TYPE_CHECKING:
    from tokforge_models.device import Device
    from tokforge_models.model_files.fingerprint import Fingerprint
    from tokforge_models.resolution.resolution import Overrides, Resolution


@dataclass(frozen=True, slots=True)
class World:
    """Registry and store of one command, and the device that it resolves for: this one if None."""

    registry: Registry
    store: Store
    device: Device | None

    @classmethod
    def open(cls, layers: Sequence[Path] = (), device: Device | None = None) -> World:
        """Load what a command needs; `device` is this one unless given."""
        return cls(Registry.load(layers), Store(), device)

    def find(self, name: str) -> Bundle:
        """The bundle of that name in the registry, or one that was imported under that id."""
        try:
            return self.registry.find(name)
        except UnknownBundle:
            for status in self.store.statuses():
                if status.id == name:
                    return replace(unlisted(name), role=status.role or Role.CHAT)
            raise

    def resolve(
        self,
        name: str,
        *,
        draft: str = "auto",
        overrides: Overrides | None = None,
        measured: bool = True,
    ) -> Resolved:
        """Resolve a target that is named by id, alias, repository or directory.

        Args:
            name: of the target.
            draft: as for `tokforge_models.resolution.resolution.resolve`.
            overrides: flags.
            measured: whether saved profiles count.

        Raises:
            TokforgeError: a name is unknown, or what it names cannot work.
        """
        from tokforge_models.device_probe import installed_mnn, probe_device
        from tokforge_models.resolution.resolution import resolve
        from tokforge_models.store.measurements import Measurements

        installed = self.store.installed()
        if folder := _as_folder(name):
            target, own = self._of_folder(folder)
            installed[target.id] = own
        else:
            target = self.find(name)
        fingerprints, unread = self._fingerprints(target, installed, draft)
        if draft == "auto" and target.id in installed and target.id not in fingerprints:
            draft = "none"
        kept = Measurements(self.store.home, self.store.disk).read()
        resolution = resolve(
            target,
            registry=self.registry,
            device=self.device or probe_device(),
            installed=installed,
            fingerprints=fingerprints,
            measurements=tuple(kept.measurements.values()) if measured else (),
            mnn=installed_mnn(),
            draft=self.find(draft).id if draft not in {"auto", "none", "lookup"} else draft,
            overrides=overrides,
        )
        unusable = (
            f"a measurement is left out: {error.problems[0]}" for error in kept.faulty.values()
        )
        notes = (*resolution.notes, *unread, *unusable)
        contents = {id: bundle.content for id, bundle in installed.items()}
        return Resolved(replace(resolution, notes=notes), folder, contents)

    def _of_folder(self, folder: Path) -> tuple[Bundle, Installed]:
        weights = folder / WEIGHT_FILE
        if not weights.is_file():
            raise IntegrityError(f"{folder} is no bundle", expected=WEIGHT_FILE, got="no such file")
        # A folder outside the store may hold links, as Hugging Face's cache does; MNN follows them.
        with bar() as progress:
            meter = Meter(progress, folder.name, Phase.HASHING, weights.stat().st_size)
            digest = hash_file(real_path(weights), lambda count: meter.add(WEIGHT_FILE, count))
        target = self.registry.by_weight_sha256(digest) or unlisted(folder.resolve().name)
        try:
            config = parse_config(CONFIG, read_small(real_path(folder / CONFIG), MAX_CONFIG_BYTES))
        except OSError as error:
            raise IntegrityError(
                f"{folder / CONFIG} cannot be read", got=error.strerror or str(error)
            ) from None
        if isinstance(config, str):
            raise IntegrityError(f"{folder}: {config}")
        settings, _ = settings_of(config)
        return target, Installed(target.id, "folder", folder, digest, settings)

    def _fingerprints(
        self, target: Bundle, installed: dict[str, Installed], draft: str
    ) -> tuple[dict[str, Fingerprint], tuple[str, ...]]:
        """What the files of the target and of every installed draft say.

        A draft that cannot be read is no reason to fail: it counts as not installed. Nor is a
        target whose vocabulary is of a kind unknown here, unless something is to be guessed.
        """
        from tokforge_models.model_files.fingerprint import fingerprint_of
        from tokforge_models.store.fingerprint_cache import FingerprintCache

        cache = FingerprintCache(self.store.home / "fingerprints", self.store.disk)
        known: dict[str, Fingerprint] = {}
        notes = []
        for id, bundle in list(installed.items()):
            entry = self.registry.bundles.get(id)
            if id == target.id:
                in_store = bundle.path.is_relative_to(self.store.home)
                try:
                    known[id] = (
                        cache.get(bundle.path, bundle.content)
                        if in_store
                        else fingerprint_of(bundle.path)
                    )
                except UnknownFormat as error:
                    if draft not in {"auto", "none"}:
                        raise
                    notes.append(f"{id} runs without a draft: {error.message}")
            elif entry is None or entry.role is Role.DRAFT:
                try:
                    known[id] = cache.get(bundle.path, bundle.content)
                except (IntegrityError, UnknownFormat) as error:
                    notes.append(f"{id} is left out: {error.message}")
                    del installed[id]
        return known, tuple(notes)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A resolution and what it was made from.

    Attributes:
        resolution: who runs with whom.
        folder: the directory that the target was named by, if it was.
        contents: digests of what was there to resolve with, the folder included, by id.
    """

    resolution: Resolution
    folder: Path | None
    contents: Mapping[str, str]


def describe_device(
    file: Path | None, platform: str | None, chip: str | None, ram_gb: float | None
) -> Device:
    """This device, or the one in `file`, with what flags say of it."""
    from tokforge_models.device import described, read_device
    from tokforge_models.device_probe import probe_device

    device = read_device(file) if file else probe_device()
    return described(device, platform=platform, chip=chip, ram_gb=ram_gb)


def this_command() -> str:
    """How others shall name this process while it holds a lock or a claim."""
    return shlex.join(["tokforge", *sys.argv[1:3]])[:200]


@contextmanager
def claimed(store: Store, id: str) -> Iterator[Installed]:
    """Use a ready bundle whose stamps still fit; until the end nobody can remove or mend it."""
    with store.claim(id, this_command()) as installed:
        if problems := store.status(id).problems:
            output.note(f"{id}: {'; '.join(problems)}")
        yield installed


def _as_folder(name: str) -> Path | None:
    """The directory that `name` is, if it looks like one or is one.

    Raises:
        UnknownBundle: it looks like a path, and there is no such directory.
    """
    path = Path(os.path.expanduser(name))  # noqa: PTH111 - leaves ~nobody as it is
    looks_like_one = name.startswith((".", "/", "~")) or path.is_absolute()
    if looks_like_one and not path.is_dir():
        raise UnknownBundle(f"there is no directory {name}", expected="a bundle's directory")
    has_config = path.is_dir() and (path / CONFIG).exists()
    return path if looks_like_one or has_config else None
