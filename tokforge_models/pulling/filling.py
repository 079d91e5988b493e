"""Completes one partial: threads fetch what is missing, this one hashes what is there, in order.

workers   take a run of segments, write each chunk to its place, hash the segment, and say in
          the journal that it is there; what they could not finish goes back
caller    follows from the first segment to the last, so that the whole digest ends with the
          transfer; segments from before are hashed against the journal on the way, and join
          what is missing if they are not what it says
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from tokforge_models.errors import FetchError
from tokforge_models.files.digests import segment_count, segment_span
from tokforge_models.files.disk import Disk, explained, open_plain
from tokforge_models.progress import Meter
from tokforge_models.pulling.plan import Wanted
from tokforge_models.pulling.runs import next_run
from tokforge_models.sources.source import Fetcher, OneAtATime
from tokforge_models.store.journal import Journal

_BUFFER_BYTES = 1024 * 1024
_GLANCE_SECONDS = 0.2
_PARTING_SECONDS = 0.5


class _Stopped(Exception):
    """The other side has ended the work."""


class Filling:
    """One partial on its way.

    Args:
        part: the partial, preallocated.
        wanted: the file.
        journal: says which segments are there; told of those that come.
        fetcher: where the others come from.
        disk: how they are written.
        meter: told of every byte that is behind.
    """

    def __init__(
        self,
        part: Path,
        wanted: Wanted,
        *,
        journal: Journal,
        fetcher: Fetcher,
        disk: Disk,
        meter: Meter,
    ) -> None:
        self._part = part
        self._wanted = wanted
        self._journal = journal
        self._fetcher = fetcher
        self._disk = disk
        self._meter = meter
        self._count = segment_count(wanted.size, journal.header.segment_bytes)
        self._before = dict(journal.records[wanted.path].segments)
        self._missing = set(range(self._count)) - self._before.keys()
        self._done: dict[int, str] = {}
        self._workers: set[threading.Thread] = set()
        self._failure: BaseException | None = None
        self._over = False
        self._changed = threading.Condition()
        self.fetched = 0

    def run(self) -> tuple[str, tuple[str, ...]]:
        """Fill the partial.

        Returns:
            The digest of the whole, and those of its segments.

        Raises:
            FetchError: the source did not give what was asked for.
            StorageError: it cannot be written or read.
        """
        whole = hashlib.sha256()
        buffer = memoryview(bytearray(min(_BUFFER_BYTES, self._journal.header.segment_bytes)))
        try:
            for index in range(self._count):
                whole = self._append(whole, index, buffer)
        except BaseException:
            self._end()
            raise
        return whole.hexdigest(), tuple(self._done[index] for index in range(self._count))

    def _append(self, whole: hashlib._Hash, index: int, buffer: memoryview) -> hashlib._Hash:
        """The digest of everything up to the end of segment `index`, once that is there."""
        told = self._before.get(index)
        if told is not None:
            longer, segment = whole.copy(), hashlib.sha256()
            self._hash(index, buffer, (longer, segment))
            if segment.hexdigest() == told:
                self._done[index] = told
                start, stop = self._span(index)
                self._meter.add(self._wanted.path, stop - start)
                return longer
            with self._changed:
                self._missing.add(index)
        self._wait_for(index)
        self._hash(index, buffer, (whole,))
        return whole

    def _hash(self, index: int, buffer: memoryview, digests: Iterable[hashlib._Hash]) -> None:
        start, stop = self._span(index)
        with explained("read", self._part), open_plain(self._part) as stream:
            stream.seek(start)
            while start < stop:
                count = stream.readinto(buffer[: stop - start])  # type: ignore[attr-defined]
                if not count:
                    return
                for digest in digests:
                    digest.update(buffer[:count])
                start += count

    def _wait_for(self, index: int) -> None:
        with self._changed:
            while index not in self._done:
                if self._failure:
                    raise self._failure
                self._hire()
                self._changed.wait(_GLANCE_SECONDS)

    def _hire(self) -> None:
        """Have as many workers as are of use; called with the lock."""
        places = min(self._fetcher.connections, len(self._missing)) - len(self._workers)
        for _ in range(places):
            worker = threading.Thread(target=self._work, daemon=True, name="tokforge-fetch")
            self._workers.add(worker)
            worker.start()

    def _work(self) -> None:
        try:
            while run := self._take():
                self._fetch(run)
        except (OneAtATime, _Stopped):
            pass  # what is missing is known; whoever is left, or hired next, brings it
        except BaseException as failure:  # noqa: BLE001  # it is raised again where it is awaited
            with self._changed:
                self._failure = self._failure or failure
        finally:
            with self._changed:
                self._workers.discard(threading.current_thread())
                self._changed.notify_all()

    def _take(self) -> range | None:
        with self._changed:
            if self._over or self._failure or not self._missing:
                return None
            if len(self._workers) > self._fetcher.connections:
                return None
            run = next_run(self._missing, self._fetcher.connections)
            self._missing.difference_update(run)
            return run

    def _fetch(self, run: range) -> None:
        """Bring a run of segments; those that did not come whole are missing again."""
        index = run.start
        at, stop = self._span(run.start)[0], self._span(run.stop - 1)[1]
        digest = hashlib.sha256()
        try:
            for chunk in self._fetcher.read(self._wanted.path, at, stop):
                self._received(len(chunk), at, stop)
                used = 0
                while used < len(chunk):
                    end = self._span(index)[1]
                    piece = chunk[used : used + end - at]
                    self._disk.write_at(self._part, at, piece)
                    digest.update(piece)
                    used, at = used + len(piece), at + len(piece)
                    if at == end:
                        self._finished(index, digest.hexdigest())
                        index, digest = index + 1, hashlib.sha256()
            if index < run.stop:
                raise FetchError(
                    f"the source ended early within {self._wanted.path}",
                    expected=f"bytes up to {stop}",
                    got=f"bytes up to {at}",
                    kept="every segment that was whole",
                    hint="run the same command again",
                )
        finally:
            with self._changed:
                self._missing.update(range(index, run.stop))

    def _received(self, count: int, at: int, stop: int) -> None:
        with self._changed:
            self.fetched += count
            if self._over or self._failure:
                raise _Stopped
        if at + count > stop:
            raise FetchError(
                f"the source gave more of {self._wanted.path} than was asked for",
                expected=f"bytes up to {stop}",
                got=f"{at + count - stop} bytes more",
            )
        self._meter.add(self._wanted.path, count)

    def _finished(self, index: int, digest: str) -> None:
        with self._changed:
            if self._over:
                raise _Stopped
            self._journal.segment(self._wanted.path, index, digest)
            self._done[index] = digest
            self._changed.notify_all()

    def _end(self) -> None:
        """Let no worker go on; one that waits for the network ends when its read does."""
        with self._changed:
            self._over = True
            workers = tuple(self._workers)
        self._fetcher.close()
        deadline = time.monotonic() + _PARTING_SECONDS
        for worker in workers:
            worker.join(max(deadline - time.monotonic(), 0))

    def _span(self, index: int) -> tuple[int, int]:
        return segment_span(index, self._wanted.size, self._journal.header.segment_bytes)
