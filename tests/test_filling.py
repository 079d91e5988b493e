"""A partial is completed whatever the order in which its segments come."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store_kit import FastDisk
from tokforge_models.bundle import FileRole, Role
from tokforge_models.errors import FetchError
from tokforge_models.progress import Event, Meter, Phase
from tokforge_models.pulling.filling import Filling
from tokforge_models.pulling.plan import Wanted
from tokforge_models.sources.source import Listing, OneAtATime
from tokforge_models.store.journal import Header, Journal

DATA = hashlib.shake_128(b"data").digest(3000)


class Scripted:
    """A source whose reads are cut where a script says, and that counts what runs at once."""

    def __init__(self, data: bytes, connections: int, chunk: int) -> None:
        self.data = data
        self.most = connections
        self.chunk = chunk
        self.whole_only = False
        self.reads: list[tuple[int, int]] = []
        self.at_once = 0
        self.peak = 0
        self.lock = threading.Lock()

    @property
    def connections(self) -> int:
        return 1 if self.whole_only else self.most

    def listing(self) -> Listing:
        return Listing(())

    def close(self) -> None:
        """Nothing waits."""

    def read(self, path: str, start: int, stop: int) -> Iterator[bytes]:
        with self.lock:
            self.reads.append((start, stop))
            self.at_once += 1
            self.peak = max(self.peak, self.at_once)
        try:
            for at in range(start, stop, self.chunk):
                yield self.data[at : min(at + self.chunk, stop)]
        finally:
            with self.lock:
                self.at_once -= 1


def fill(
    folder: Path, source: Scripted, segment: int, have: dict[int, str], on_disk: bytes
) -> tuple[Filling, tuple[str, tuple[str, ...]], list[Event], Journal]:
    header = Header("demo", "r1", Role.DRAFT, segment)
    journal = Journal.open(folder / "journal", header, FastDisk())
    journal.begin("file", len(source.data), None, have)
    part = folder / "x.part"
    part.write_bytes(on_disk)
    events: list[Event] = []
    filling = Filling(
        part,
        Wanted("file", FileRole.REQUIRED, len(source.data)),
        journal=journal,
        fetcher=source,
        disk=FastDisk(),
        meter=Meter(events.append, "demo", Phase.FETCHING, len(source.data)),
    )
    return filling, filling.run(), events, journal


def digests(data: bytes, segment: int) -> tuple[str, ...]:
    return tuple(
        hashlib.sha256(data[at : at + segment]).hexdigest() for at in range(0, len(data), segment)
    )


@settings(max_examples=60)
@given(
    size=st.integers(0, 3000),
    segment=st.integers(1, 700),
    connections=st.integers(1, 5),
    chunk=st.integers(1, 900),
    data=st.data(),
)
def test_any_size_segment_chunk_and_start_gives_the_file(
    size: int, segment: int, connections: int, chunk: int, data: st.DataObject
) -> None:
    whole = DATA[:size]
    segments = digests(whole, segment)
    have = data.draw(st.sets(st.sampled_from(range(len(segments))))) if segments else set()
    rotten = data.draw(st.sets(st.sampled_from(sorted(have)))) if have else set()
    on_disk = bytearray(size)
    for index in have:
        at = index * segment
        on_disk[at : at + segment] = whole[at : at + segment]
        if index in rotten:
            on_disk[at] ^= 1
    source = Scripted(whole, connections, chunk)
    with TemporaryDirectory() as folder:
        known = {index: segments[index] for index in have}
        filling, result, events, journal = fill(
            Path(folder), source, segment, known, bytes(on_disk)
        )
        assert Path(folder, "x.part").read_bytes() == whole
    assert result == (hashlib.sha256(whole).hexdigest(), segments)
    missing = set(range(len(segments))) - (have - rotten)
    asked = [index for a, b in source.reads for index in range(a // segment, -(-b // segment))]
    assert sorted(asked) == sorted(missing)
    assert filling.fetched == sum(len(whole[i * segment : (i + 1) * segment]) for i in missing)
    assert source.peak <= connections
    assert journal.records["file"].segments == dict(enumerate(segments))
    assert [event.done for event in events] == sorted(event.done for event in events)
    if events:
        assert events[-1].done == size


def test_a_source_of_whole_files_is_read_by_one_that_starts_over(tmp_path: Path) -> None:
    class Whole(Scripted):
        def read(self, path: str, start: int, stop: int) -> Iterator[bytes]:
            if not self.whole_only:
                self.whole_only = True
                raise OneAtATime("only whole files")
            return super().read(path, start, stop)

    source = Whole(DATA, 4, 500)
    _, (sha256, _), _, _ = fill(tmp_path, source, 100, {}, bytes(len(DATA)))
    assert sha256 == hashlib.sha256(DATA).hexdigest()
    assert source.peak == 1


def test_what_was_whole_before_a_failure_is_in_the_journal(tmp_path: Path) -> None:
    class Ends(Scripted):
        def read(self, path: str, start: int, stop: int) -> Iterator[bytes]:
            for chunk in super().read(path, start, stop):
                if start <= 1500 < start + len(chunk):
                    raise FetchError("the line is dead")
                yield chunk
                start += len(chunk)

    source = Ends(DATA, 1, 100)
    with pytest.raises(FetchError, match="the line is dead"):
        fill(tmp_path, source, 400, {}, bytes(len(DATA)))
    header = Header("demo", "r1", Role.DRAFT, 400)
    safe = Journal.open(tmp_path / "journal", header, FastDisk()).records["file"].segments
    assert safe == dict(enumerate(digests(DATA, 400)[:3]))
