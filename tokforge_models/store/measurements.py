"""The profiles of pairs that were measured on this machine.

    <home>/measurements/<key>.json    of a pair, or of a target alone

The key is made of the contents of the bundles (`pair_key`), so that a newer measurement of a pair
takes the place of the older. A file that is none is left where it is, and told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tokforge_models.errors import RegistryError
from tokforge_models.files.digests import pair_key
from tokforge_models.files.disk import Disk
from tokforge_models.resolution.measurement import (
    Measurement,
    read_measurement,
    write_measurement,
)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a store has.

    Attributes:
        measurements: by file.
        faulty: files that are no profile, each with all that is wrong.
    """

    measurements: Mapping[Path, Measurement] = field(default_factory=dict)
    faulty: Mapping[Path, RegistryError] = field(default_factory=dict)


class Measurements:
    """The profiles of a store.

    Args:
        home: root of the store.
        disk: where changes go.
    """

    def __init__(self, home: Path, disk: Disk | None = None) -> None:
        self._folder = home / "measurements"
        self._disk = disk or Disk()

    def read(self) -> Kept:
        """All that is there."""
        measurements: dict[Path, Measurement] = {}
        faulty: dict[Path, RegistryError] = {}
        for path in sorted(self._folder.glob("*.json")):
            try:
                measurements[path] = read_measurement(path)
            except RegistryError as error:
                faulty[path] = error
        return Kept(measurements, faulty)

    def prepare(self) -> None:
        """Make the folder, before anything is measured that could not be kept.

        Raises:
            StorageError: it cannot be made.
        """
        self._disk.make_folder(self._folder)

    def save(self, measurement: Measurement) -> Path:
        """Keep a profile in the place of an older one of the same bundles, and tell where.

        A crash at any instant leaves the old file or the new one.

        Raises:
            StorageError: it cannot be written; the old one is kept.
        """
        contents = filter(None, (measurement.target, measurement.draft))
        path = self._folder / f"{pair_key(*contents)}.json"
        self.prepare()
        self._disk.write(path, write_measurement(measurement))
        return path
