"""Does what a plan says, one file after the other, so that it can be killed at any instant.

A file is filled in a partial, segment by segment: bytes, then a line in the journal. Its whole
digest runs along. Only when that is right does the file get its final name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tokforge_models.digests import cut, segment_count, segment_span
from tokforge_models.disk import Disk, explained, open_plain
from tokforge_models.errors import FetchError, IntegrityError
from tokforge_models.journal import Journal
from tokforge_models.manifest import Entry, Stamp
from tokforge_models.plan import Action, Place, Verb, Wanted
from tokforge_models.progress import Meter
from tokforge_models.sources import Fetcher
from tokforge_models.store import place_for
from tokforge_models.survey import part_path


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
        if action.verb is Verb.RESUME:
            self._reopen(action)
        else:
            self._begin(action.wanted)
        entry = self._fill(action.wanted)
        if not _is_right(entry, action.wanted):
            self._begin(action.wanted)
            entry = self._fill(action.wanted)
        if not _is_right(entry, action.wanted):
            self.journal.begin(action.wanted.path, action.wanted.size, None)
            self.disk.remove(self._part(action.wanted))
            raise IntegrityError(
                f"{action.wanted.path} is not what it must be, even when fetched twice",
                expected=f"sha256 {action.wanted.expected}",
                got=entry.sha256,
                kept="the files that were right",
            )
        self.journal.whole(entry, action.wanted.validator)
        self._publish(entry)
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
        have = dict(self.journal.records[wanted.path].segments)
        count = segment_count(wanted.size, self.journal.header.segment_bytes)
        whole = hashlib.sha256()
        segments: list[str] = []
        while (index := len(segments)) < count:
            if index in have:
                data = _read(part, *self._span(index, wanted))
                if hashlib.sha256(data).hexdigest() == have[index]:
                    whole.update(data)
                    segments.append(have[index])
                    self.meter.add(wanted.path, len(data))
                    continue
                del have[index]
            end = next((later for later in range(index, count) if later in have), count)
            for data in self._fetch(wanted, index, end):
                whole.update(data)
                digest = hashlib.sha256(data).hexdigest()
                self.disk.write_at(part, self._span(len(segments), wanted)[0], data)
                self.journal.segment(wanted.path, len(segments), digest)
                segments.append(digest)
        self.disk.sync(part)
        stamp = Stamp.of(part)
        return Entry(
            wanted.path, wanted.role, wanted.size, whole.hexdigest(), tuple(segments), stamp
        )

    def _fetch(self, wanted: Wanted, index: int, end: int) -> Iterator[bytes]:
        """The segments `index` to `end` (excluded), each at its exact length or not at all."""
        start, stop = self._span(index, wanted)[0], self._span(end - 1, wanted)[1]
        done = start
        for segment in cut(self._counted(wanted, start, stop), self.journal.header.segment_bytes):
            done += len(segment)
            if done != self._span(index, wanted)[1]:
                break
            yield segment
            index += 1
        if done != stop:
            raise FetchError(
                f"the source ended early within {wanted.path}",
                expected=f"bytes {start} to {stop}",
                got=f"bytes {start} to {done}",
                kept="every segment that was whole",
                hint="run the same command again",
            )

    def _counted(self, wanted: Wanted, start: int, stop: int) -> Iterator[bytes]:
        left = stop - start
        for chunk in self.fetcher.read(wanted.path, start, stop):
            self.fetched += len(chunk)
            left -= len(chunk)
            if left < 0:
                raise FetchError(
                    f"the source gave more of {wanted.path} than was asked for",
                    expected=f"bytes {start} to {stop}",
                    got=f"{-left} bytes more",
                )
            self.meter.add(wanted.path, len(chunk))
            yield chunk


def _is_right(entry: Entry, wanted: Wanted) -> bool:
    return wanted.expected in {None, entry.sha256}


def _read(path: Path, start: int, stop: int) -> bytes:
    with explained("read", path), open_plain(path) as stream:
        stream.seek(start)
        pieces = []
        while start < stop and (piece := stream.read(stop - start)):
            pieces.append(piece)
            start += len(piece)
        return b"".join(pieces)
