"""A network source while we are offline: what is known of it, and no socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from tokforge_models.bundle import Bundle, FileRole, Source
from tokforge_models.errors import FetchError
from tokforge_models.sources.hf_cache import HuggingFaceCache
from tokforge_models.sources.source import Listing, RemoteFile

_HINT = "run the same command again without --offline"


class OfflineFetcher:
    """Lists what registry and Hugging Face cache say of a revision; can read nothing.

    Args:
        source: the source that must not be asked.
        bundle: the registry's entry.
    """

    connections = 1

    def __init__(self, source: Source, bundle: Bundle) -> None:
        self._source = source
        self._bundle = bundle

    def listing(self) -> Listing:
        """What is known without asking.

        Raises:
            FetchError: not enough; every required file of which too little is known is named.
        """
        commit = self._source.revision or self._bundle.revision
        files = {
            file.path: RemoteFile(file.path, file.size, sha256=file.sha256)
            for file in self._bundle.files
            if file.size is not None and file.sha256 is not None
        }
        if self._source.kind == "hf" and commit:
            for file in HuggingFaceCache().snapshot(self._source.location, commit):
                files.setdefault(file.path, file)
        unknown = [
            file.path
            for file in self._bundle.files
            if file.role is FileRole.REQUIRED and file.path not in files
        ]
        if unknown or not files:
            raise FetchError(
                f"we are offline, and these files of {self._bundle.id} are missing: "
                + (", ".join(unknown) or "all of them"),
                hint=_HINT,
            )
        return Listing(tuple(files.values()), commit)

    def read(self, path: str, start: int, stop: int) -> Iterator[bytes]:
        """Refuse."""
        return self._refuse(f"bytes {start} to {stop} of {path} of {self._bundle.id}")

    def close(self) -> None:
        """Nothing to end."""

    def _refuse(self, what: str) -> NoReturn:
        raise FetchError(f"we are offline, and {what} are missing", hint=_HINT)
