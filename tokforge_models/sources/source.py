"""Where bytes come from: one narrow seam, the sources on this machine, and the table of all.

A `Fetcher` is bound to one source. It lists the files of a revision and opens a range of one of
them; it verifies nothing, for whoever asks does. `FETCHERS` is the one table of kinds that can be
pulled from.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tokforge_models.bundle import Bundle, Source, SourceKind
from tokforge_models.errors import FetchError, UsageError
from tokforge_models.files.disk import open_plain
from tokforge_models.names import fault_in_path, inside, users_path
from tokforge_models.sources.network import Contacts, Network

_CHUNK_BYTES = 1024 * 1024
_MAX_FILES = 10_000


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file as its source describes it.

    Attributes:
        path: POSIX path relative to the bundle.
        size: bytes.
        sha256: digest, where the source states one.
        blob_sha1: git's digest of the file as a blob, where the source states one.
        validator: text that is equal only for the same bytes at the same source, or None.
    """

    path: str
    size: int
    sha256: str | None = None
    validator: str | None = None
    blob_sha1: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What a source has.

    Attributes:
        files: the files that can be read.
        commit: the source's own name of this revision, where it has one.
        notes: what else was met and why it cannot be read, one sentence each.
        foreign: whether another server says so than the usual one of this kind of source.
    """

    files: tuple[RemoteFile, ...]
    commit: str | None = None
    notes: tuple[str, ...] = ()
    foreign: bool = False


class OneAtATime(FetchError):
    """A source gives only whole files: let every other read of this one end, then read it again."""


class Fetcher(Protocol):
    """Bytes in."""

    @property
    def connections(self) -> int:
        """How many reads of one file at once are worth while."""
        ...

    def listing(self) -> Listing:
        """List the files of the revision.

        Raises:
            FetchError: the source cannot be reached, or does not have it.
        """
        ...

    def read(self, path: str, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes `start` to `stop` (excluded) of one file, cut anywhere.

        Raises:
            FetchError: they cannot be had.
            OneAtATime: they can, once no other read of this file is under way.
        """
        ...

    def close(self) -> None:
        """End every read, from any thread."""
        ...


class FolderFetcher:
    """A folder on this machine; hidden files are not part of a bundle, links are not followed.

    Args:
        root: the folder.
        name: how messages call the source.
    """

    connections = 1

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._name = name

    def listing(self) -> Listing:
        """List every regular file below the folder."""
        files: list[RemoteFile] = []
        notes: list[str] = []
        if not self._root.is_dir():
            raise FetchError(
                f"{self._name} is not there",
                expected=f"a folder at {self._root}",
                hint="name a folder that is there, or leave out --source",
            )
        try:
            for path in self._walk():
                name = path.relative_to(self._root).as_posix()
                seen = path.lstat()
                if stat.S_ISLNK(seen.st_mode):
                    notes.append(f"{name} is a symbolic link, which is not followed")
                elif not stat.S_ISREG(seen.st_mode):
                    notes.append(f"{name} is not a regular file")
                elif fault := fault_in_path(name):
                    notes.append(f"{name[:80]!r} {fault}")
                else:
                    validator = f"{seen.st_size}-{seen.st_mtime_ns}-{seen.st_ino}"
                    files.append(RemoteFile(name, seen.st_size, validator=validator))
        except OSError as error:
            raise self._cannot("list", error.filename or "", error) from error
        return Listing(tuple(files), notes=tuple(notes))

    def read(self, path: str, start: int, stop: int) -> Iterator[bytes]:
        """Yield a range of one file."""
        try:
            with open_plain(inside(self._root, path)) as stream:
                stream.seek(start)
                while start < stop:
                    data = stream.read(min(_CHUNK_BYTES, stop - start))
                    if not data:
                        raise FetchError(
                            f"{path} of {self._name} ended early",
                            expected=f"byte {stop}",
                            got=f"its end at byte {start}",
                        )
                    start += len(data)
                    yield data
        except OSError as error:
            raise self._cannot("read", path, error) from error

    def close(self) -> None:
        """Nothing to end: reading a folder takes no waiting."""

    def _walk(self) -> Iterator[Path]:
        count = 0
        for folder, subfolders, names in os.walk(self._root, onerror=_raise):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            links = [name for name in subfolders if Path(folder, name).is_symlink()]
            for name in sorted(name for name in names + links if not name.startswith(".")):
                count += 1
                if count > _MAX_FILES:
                    raise FetchError(
                        f"{self._name} cannot be a bundle",
                        expected=f"at most {_MAX_FILES} files",
                        got="more",
                    )
                yield Path(folder, name)

    def _cannot(self, doing: str, path: str, error: OSError) -> FetchError:
        return FetchError(
            f"cannot {doing} {path} of {self._name}: {error.strerror or error}",
            hint="run the same command again once it can be read",
        )


def _raise(error: OSError) -> None:
    raise error


Opener = Callable[[Source, Bundle], Fetcher]


def _open_path(source: Source, bundle: Bundle) -> Fetcher:
    """A relative path of a registry entry is relative to the file that has the entry."""
    base = Path(bundle.defined_in).parent if source in bundle.sources else Path()
    return FolderFetcher(users_path(Path(source.location), base), str(source))


def _open_package(source: Source, _bundle: Bundle) -> Fetcher:
    embedded = Path(__file__).parent.parent / "embedded"
    return FolderFetcher(inside(embedded, source.location), str(source))


def openers(
    network: Network | None = None, contacts: Contacts | None = None
) -> Mapping[SourceKind, Opener]:
    """What can be pulled from.

    Args:
        network: how the network may be used; None means as it is by default.
        contacts: told of every host that is contacted.
    """
    net, log = network or Network(), contacts or Contacts()

    def open_hf(source: Source, _: Bundle) -> Fetcher:
        from tokforge_models.sources.hugging_face import HuggingFaceFetcher

        return HuggingFaceFetcher(source, net, log)

    def open_modelscope(source: Source, _: Bundle) -> Fetcher:
        from tokforge_models.sources.modelscope import ModelScopeFetcher

        return ModelScopeFetcher(source, net, log)

    def open_url(source: Source, bundle: Bundle) -> Fetcher:
        from tokforge_models.sources.web import WebFetcher

        return WebFetcher(source, bundle, net, log)

    def open_nothing(source: Source, bundle: Bundle) -> Fetcher:
        from tokforge_models.sources.offline import OfflineFetcher

        return OfflineFetcher(source, bundle)

    local: dict[SourceKind, Opener] = {"package": _open_package, "path": _open_path}
    if net.offline:
        return {**local, "hf": open_nothing, "modelscope": open_nothing, "url": open_nothing}
    return {**local, "hf": open_hf, "modelscope": open_modelscope, "url": open_url}


FETCHERS = openers()


def parse_source(text: str) -> Source:
    """Read a source as a user writes it.

    Raises:
        UsageError: it is none.
    """
    try:
        return Source.parse(text)
    except ValueError as error:
        # What stands before an @ may be a password.
        shown = re.sub(r".*@", "...@", text, flags=re.DOTALL)[:80]
        raise UsageError(f"{shown!r} is not a source", expected=str(error)) from None


def _absolute(source: Source) -> Source:
    """A folder that the user names is relative to where the user is."""
    if source.kind != "path":
        return source
    return Source("path", str(users_path(Path(source.location))))


def choose_sources(
    bundle: Bundle, forced: str | None, fetchers: Mapping[SourceKind, Opener]
) -> tuple[Source, ...]:
    """The sources to try for a bundle, in order.

    Args:
        bundle: the registry's entry.
        forced: a kind (``hf``) or a whole source (``path:DIR``) that the user insists on.
        fetchers: what can be pulled from.

    Raises:
        FetchError: nobody publishes this bundle, or none of its sources can be pulled from.
        UsageError: `forced` is neither a kind that it has nor a source.
    """
    if forced is None:
        candidates = bundle.sources
    elif ":" in forced:
        candidates = (_absolute(parse_source(forced)),)
    else:
        candidates = tuple(source for source in bundle.sources if source.kind == forced)
        if not candidates:
            raise UsageError(
                f"{bundle.id} has no source of the kind {forced!r}",
                expected=", ".join(map(str, bundle.sources)) or "a whole source, e.g. path:DIR",
            )
    if not candidates:
        raise FetchError(
            f"{bundle.id} has no public address",
            hint=f"if you have its files: tokforge import DIR --as {bundle.id}",
        )
    usable = tuple(source for source in candidates if source.kind in fetchers)
    if not usable:
        raise FetchError(
            f"{bundle.id} cannot be pulled by this version",
            expected=f"a source of the kind {' or '.join(f'{kind}:' for kind in fetchers)}",
            got=", ".join(map(str, candidates)),
            hint=f"download it by other means, then: tokforge import DIR --as {bundle.id}",
        )
    return usable
