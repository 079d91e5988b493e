"""What the tests of the store share: small bundles, a counting source, and a disk that fails."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tokforge_models.bundle import Bundle, BundleFile, FileRole, Role, Source, SourceKind
from tokforge_models.errors import FetchError
from tokforge_models.files.digests import segment_span
from tokforge_models.files.disk import Disk
from tokforge_models.sources.source import FETCHERS, Listing, Opener, RemoteFile
from tokforge_models.store.store import Store

SEGMENT = 1000
CONFIG = {"llm_model": "llm.mnn", "llm_weight": "llm.mnn.weight", "backend_type": "cpu"}
LLM_CONFIG = {"tie_embeddings": [100, 200, 16, 4, 128]}


def make_files(weight_bytes: int = 4300, seed: int = 1) -> dict[str, bytes]:
    """The files of a small, complete bundle."""
    noise = random.Random(seed)
    return {
        "config.json": json.dumps({**CONFIG, "thread_num": 2}).encode(),
        "llm_config.json": json.dumps(LLM_CONFIG).encode(),
        "llm.mnn": noise.randbytes(1500),
        "llm.mnn.weight": noise.randbytes(weight_bytes),
        "tokenizer.txt": b"430 3\n",
    }


def write_files(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def bundle_of(
    files: Mapping[str, bytes],
    *,
    id: str = "demo",
    pinned: bool = True,
    listed: bool = True,
    revision: str | None = "r1",
    role: Role = Role.DRAFT,
    sources: tuple[Source, ...] = (Source("url", "memory"),),
) -> Bundle:
    entries = tuple(
        BundleFile(
            name,
            FileRole.REQUIRED,
            len(data) if pinned else None,
            sha256(data) if pinned else None,
        )
        for name, data in files.items()
    )
    return Bundle(
        id,
        name=id,
        role=role,
        family="test",
        sources=sources,
        revision=revision,
        files=entries if listed else (),
    )


@dataclass
class MemoryHub:
    """A source in memory that counts what it gives and can be told to misbehave."""

    files: dict[str, bytes]
    commit: str | None = None
    reads: list[tuple[str, int, int]] = field(default_factory=list)
    given: int = 0
    cut_after: int | None = None
    extra: bytes = b""
    listing_error: str = ""
    connections: int = 1
    foreign: bool = False

    def opener(self) -> dict[SourceKind, Opener]:
        return {**FETCHERS, "hf": lambda source, bundle: self, "url": lambda source, bundle: self}

    def listing(self) -> Listing:
        if self.listing_error:
            raise FetchError(self.listing_error)
        files = (
            RemoteFile(name, len(data), validator=sha256(data)) for name, data in self.files.items()
        )
        return Listing(tuple(files), commit=self.commit, foreign=self.foreign)

    def close(self) -> None:
        """Nothing to end."""

    def read(self, path: str, start: int, stop: int) -> Iterator[bytes]:
        self.reads.append((path, start, stop))
        data = self.files[path][start:stop] + self.extra
        for at in range(0, len(data), 700):
            if self.cut_after is not None and self.given >= self.cut_after:
                return
            piece = data[at : at + 700]
            self.given += len(piece)
            yield piece


def segments_read(hub: MemoryHub) -> set[tuple[str, int]]:
    """Every segment of which a byte was asked for."""
    return {
        (path, index)
        for path, start, stop in hub.reads
        for index in range(start // SEGMENT, -(-stop // SEGMENT))
    }


def safe_segments(store: Store, bundle: Bundle, files: Mapping[str, bytes]) -> set[tuple[str, int]]:
    """Segments that journal or final names say are safe, checked against the true bytes."""
    from tokforge_models.pulling.survey import part_path
    from tokforge_models.store.journal import read_journal

    folder = store.revision_folder(bundle.id, bundle.revision or "")
    told = read_journal(folder / ".tokforge" / "journal")
    safe = set()
    for name, data in files.items():
        final = folder / name
        count = -(-len(data) // SEGMENT)
        if final.exists():
            assert final.read_bytes() == data, "a wrong byte was published"
            safe |= {(name, index) for index in range(count)}
        elif told and (record := told[1].get(name)):
            for index in range(count) if record.whole else record.segments:
                start, stop = segment_span(index, len(data), SEGMENT)
                assert part_path(folder, name).read_bytes()[start:stop] == data[start:stop]
                safe.add((name, index))
    return safe


STEPS = (
    "_make_folder",
    "_write",
    "_append",
    "_resize",
    "_link",
    "_sync",
    "_sync_folder",
    "_replace",
    "_touch",
    "_remove",
    "_remove_folder",
)


class FastDisk(Disk):
    """A disk that does not wait for the platter: what a kill leaves does not depend on it."""

    def _sync(self, path: Path) -> None:
        assert path.exists()

    def _sync_folder(self, path: Path) -> None:
        assert path.is_dir()


class FaultyDisk(FastDisk):
    """A disk whose n-th step goes wrong, and every later one, too, if `lasting`.

    A write that goes wrong leaves a first half of its bytes.
    """

    def __init__(self, at: int, fail: Callable[[], None], *, lasting: bool = False) -> None:
        self.steps = 0
        self._at = at
        self._fail = fail
        self._lasting = lasting

    def _goes_wrong(self) -> bool:
        self.steps += 1
        return self.steps == self._at or (self._lasting and self.steps > self._at)


def _faulty(name: str) -> Callable[..., None]:
    def step(self: FaultyDisk, *args: object, **options: object) -> None:
        plain = getattr(FastDisk, name)
        if self._goes_wrong():
            if name in {"_write", "_append"}:
                path, data = args
                assert isinstance(data, bytes)
                plain(self, path, data[: len(data) // 2], **options)
            self._fail()
        plain(self, *args, **options)

    return step


for _name in STEPS:
    setattr(FaultyDisk, _name, _faulty(_name))


def no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def forbidden() -> None:
    raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def interrupted() -> None:
    raise KeyboardInterrupt


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
