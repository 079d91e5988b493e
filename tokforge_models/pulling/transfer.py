"""Does what a plan says, one file after the other, so that it can be killed at any instant.

A file is filled in a partial, segment by segment (filling.py): bytes, then a line in the journal.
Its whole digest runs along. Only when that is right does the file get its final name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tokforge_models.errors import IntegrityError
from tokforge_models.files.digests import hash_as_blob, hash_file, segment_span
from tokforge_models.files.disk import Disk, explained, open_plain
from tokforge_models.progress import Meter
from tokforge_models.pulling.filling import Filling
from tokforge_models.pulling.plan import Action, Place, Verb, Wanted
from tokforge_models.pulling.survey import part_path
from tokforge_models.sources.source import Fetcher
from tokforge_models.store.journal import Journal
from tokforge_models.store.manifest import Entry, Stamp
from tokforge_models.store.pins import advice
from tokforge_models.store.store import place_for

_COPY_BYTES = 1024 * 1024


@dataclass(slots=True)
class Transfer:
    """Brings the files of one revision from one source into its folder.

    Attributes:
        folder: of the revision.
        journal: of the revision, open.
        fetcher: where the bytes come from.
        disk: how they are written.
        meter: told of every byte that is behind.
        fetched: bytes that came from the fetcher so far.
    """

    folder: Path
    journal: Journal
    fetcher: Fetcher
    disk: Disk
    meter: Meter
    fetched: int = 0

    def bring(self, action: Action) -> Entry:
        """Do what was decided about one file, and say what it is now.

        Raises:
            FetchError: the source did not give what was asked for.
            IntegrityError: the file is not what it must be, however often it is fetched.
            StorageError: it cannot be written.
        """
        if action.verb is Verb.KEEP:
            return self._keep(action)
        wanted = action.wanted
        if entry := self._adopt(action) if action.verb is Verb.ADOPT else None:
            self.meter.add(wanted.path, wanted.size)
        else:
            if action.verb is Verb.RESUME:
                self._reopen(action)
            else:
                self._begin(wanted)
            entry = self._right(wanted)
        self.journal.whole(entry, wanted.validator)
        self._publish(entry)
        return entry

    def _right(self, wanted: Wanted) -> Entry:
        """Fill the partial that was begun; once more from its beginning if that goes wrong."""
        entry = self._fill(wanted)
        if not self._is_right(entry, wanted):
            self._begin(wanted)
            entry = self._fill(wanted)
        if not self._is_right(entry, wanted):
            self.journal.begin(wanted.path, wanted.size, None)
            self.disk.remove(self._part(wanted))
            raise IntegrityError(
                f"{wanted.path} is not what it must be, even when fetched twice",
                expected=f"sha256 {wanted.expected}"
                if wanted.expected
                else f"git's blob {wanted.blob_sha1}",
                got=entry.sha256 if wanted.expected else f"another (sha256 {entry.sha256})",
                kept="the files that were right",
                hint=advice(wanted.pin)
                if wanted.pin.remembered
                else "the source or the line spoils it: try another network, or --source",
            )
        return entry

    def _part(self, wanted: Wanted) -> Path:
        return part_path(self.folder, wanted.path)

    def _keep(self, action: Action) -> Entry:
        found = action.found
        assert found is not None
        assert found.entry is not None
        if found.fresh:
            self.journal.whole(found.entry, action.wanted.validator)
        if found.place is Place.PART:
            self._publish(found.entry)
        self.meter.add(action.wanted.path, action.wanted.size)
        return found.entry

    def _publish(self, entry: Entry) -> None:
        final = place_for(self.folder, entry.path, self.disk)
        self.disk.publish(part_path(self.folder, entry.path), final)

    def _begin(self, wanted: Wanted) -> None:
        self.journal.begin(wanted.path, wanted.size, wanted.validator)
        self.disk.remove(self._part(wanted))
        self.disk.preallocate(self._part(wanted), wanted.size)

    def _reopen(self, action: Action) -> None:
        """Make a partial of what is there, if it is not one already.

        One line of the journal says at once what the partial has, so that no kill in between can
        make verified segments unknown.
        """
        found, wanted, part = action.found, action.wanted, self._part(action.wanted)
        assert found is not None
        assert found.segments
        begun = self.journal.records.get(wanted.path)
        final = place_for(self.folder, wanted.path, self.disk)
        if found.place is Place.FINAL and found.shared:
            self.disk.remove(part)
            self.disk.preallocate(part, wanted.size)
            for index in found.segments:
                start, stop = self._span(index, wanted)
                self.disk.write_at(part, start, _read(final, start, stop))
        if found.place is Place.FINAL or begun is None or begun.whole:
            self.journal.begin(wanted.path, wanted.size, wanted.validator, found.segments)
        if found.place is Place.FINAL and not found.shared:
            self.disk.publish(final, part)
        self.disk.preallocate(part, wanted.size)

    def _span(self, index: int, wanted: Wanted) -> tuple[int, int]:
        return segment_span(index, wanted.size, self.journal.header.segment_bytes)

    def _fill(self, wanted: Wanted) -> Entry:
        """Complete the partial, hashing it from its first byte to its last."""
        part = self._part(wanted)
        filling = Filling(
            part,
            wanted,
            journal=self.journal,
            fetcher=self.fetcher,
            disk=self.disk,
            meter=self.meter,
        )
        try:
            sha256, segments = filling.run()
        finally:
            self.fetched += filling.fetched
        self.disk.sync(part)
        return Entry(wanted.path, wanted.role, wanted.size, sha256, segments, Stamp.of(part))

    def _adopt(self, action: Action) -> Entry | None:
        """Take a copy on this machine; None where it changed since it was looked at.

        The journal never speaks of segments of such a partial: it may be another program's file,
        too, and must not be written to.
        """
        found, wanted, part = action.found, action.wanted, self._part(action.wanted)
        assert found is not None
        assert found.path is not None
        assert found.entry is not None
        self.journal.begin(wanted.path, wanted.size, wanted.validator)
        self.disk.remove(part)
        if self.disk.link(found.path, part):
            return found.entry if Stamp.of(part) == found.entry.stamp else None
        self.disk.preallocate(part, wanted.size)
        with explained("read", found.path), open_plain(found.path) as stream:
            at = 0
            while at < wanted.size and (data := stream.read(_COPY_BYTES)):
                self.disk.write_at(part, at, data)
                at += len(data)
        self.disk.sync(part)
        with explained("read", part):
            stamp, sha256 = Stamp.of(part), hash_file(part)
        return replace(found.entry, stamp=stamp) if sha256 == found.entry.sha256 else None

    def _is_right(self, entry: Entry, wanted: Wanted) -> bool:
        if wanted.expected:
            return entry.sha256 == wanted.expected
        if wanted.blob_sha1:
            part = self._part(wanted)
            with explained("read", part):
                return hash_as_blob(part) == wanted.blob_sha1
        return True


def _read(path: Path, start: int, stop: int) -> bytes:
    with explained("read", path), open_plain(path) as stream:
        stream.seek(start)
        pieces = []
        while start < stop and (piece := stream.read(stop - start)):
            pieces.append(piece)
            start += len(piece)
        return b"".join(pieces)
