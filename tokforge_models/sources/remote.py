"""What all sources of the network have in common: they list once, and read through one client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from tokforge_models.bundle import Source
from tokforge_models.errors import FetchError
from tokforge_models.sources.client import Client
from tokforge_models.sources.network import Network
from tokforge_models.sources.reply import Asked, Never
from tokforge_models.sources.source import Listing, RemoteFile


class RemoteFetcher(ABC):
    """A source behind a client; which requests those are is its own business.

    Args:
        source: what is fetched.
        network: how the network may be used.
        client: asks for it.
    """

    def __init__(self, source: Source, network: Network, client: Client) -> None:
        self._source = source
        self._connections = network.connections
        self._client = client
        self._listing: Listing | None = None

    @property
    def connections(self) -> int:
        """As many as the user allows, unless this server gives only whole files."""
        return self._connections if self._client.takes_ranges else 1

    def listing(self) -> Listing:
        """List the files; asked once.

        Raises:
            FetchError: the server cannot be asked, or says that it does not have it.
        """
        if self._listing is None:
            self._listing = self._ask()
        return self._listing

    def read(self, path: str, start: int, stop: int) -> Iterator[bytes]:
        """Yield a range of one file.

        Raises:
            FetchError: it cannot be had.
        """
        file = self._file(path)
        has_digest = file.sha256 is not None or file.blob_sha1 is not None
        return self._client.read(
            self._address(path),
            f"{path} of {self._source}",
            self._explain,
            Asked(start, stop, file.size, None if has_digest else file.validator),
        )

    def close(self) -> None:
        """End every read, from any thread."""
        self._client.close()

    def _file(self, path: str) -> RemoteFile:
        for file in self.listing().files:
            if file.path == path:
                return file
        raise FetchError(
            f"{self._source} does not list {path}", hint="try another source with --source"
        )

    @abstractmethod
    def _ask(self) -> Listing:
        """Ask for the list of files."""

    @abstractmethod
    def _address(self, path: str) -> str:
        """Where one of the listed files is."""

    @abstractmethod
    def _explain(self, never: Never) -> FetchError:
        """A refusal in words, with the next step."""
