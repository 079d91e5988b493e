"""`url:` sources: `url:https://host/folder`, any server that gives files by their names.

Such a server has no listing. Which files there are is known from the registry, or from what the
bundle's own configuration asks for; size and validator are asked for file by file.
"""

from __future__ import annotations

from urllib.parse import quote

from tokforge_models.bundle import Bundle, Source
from tokforge_models.errors import FetchError
from tokforge_models.model_files.completeness import (
    CONFIG,
    MAX_CONFIG_BYTES,
    Config,
    llm_config_name,
    needed_files,
    parse_config,
)
from tokforge_models.sources.client import Client
from tokforge_models.sources.hugging_face import checked_endpoint
from tokforge_models.sources.network import Contacts, Network
from tokforge_models.sources.remote import RemoteFetcher
from tokforge_models.sources.reply import Never, Reason, host_of, number_in, validator_of
from tokforge_models.sources.source import Listing, RemoteFile


class WebFetcher(RemoteFetcher):
    """One folder of a server.

    Args:
        source: its address.
        bundle: whose files it has.
        network: how the network may be used; an endpoint means nothing here.
        contacts: told of every host.

    Raises:
        FetchError: it is no address.
    """

    def __init__(
        self, source: Source, bundle: Bundle, network: Network, contacts: Contacts
    ) -> None:
        self._base = checked_endpoint(source.location)
        self._bundle = bundle
        self._files: dict[str, RemoteFile] = {}
        super().__init__(source, network, Client(network, contacts, self._base))

    @property
    def _by_hand(self) -> str:
        return f"download it by other means, then: tokforge import DIR --as {self._bundle.id}"

    def _address(self, path: str) -> str:
        return f"{self._base}/{quote(path)}"

    def _ask(self) -> Listing:
        """Ask for every file that the bundle may have."""
        for path in self._paths():
            self._look(path)
        return Listing(tuple(self._files.values()))

    def _file(self, path: str) -> RemoteFile:
        return self._files[path]

    def _paths(self) -> list[str]:
        if self._bundle.files:
            return [file.path for file in self._bundle.files]
        first = self._config(CONFIG)
        second = self._config(llm_config_name(first))
        return list(needed_files(first, second, ()).files)

    def _config(self, name: str) -> Config:
        """A configuration file, or an empty one where it cannot be read: others complain."""
        file = self._look(name) if name else None
        if file is None or file.size > MAX_CONFIG_BYTES:
            return {}
        parsed = parse_config(name, b"".join(self.read(name, 0, file.size)))
        return {} if isinstance(parsed, str) else parsed

    def _look(self, path: str) -> RemoteFile | None:
        if path in self._files:
            return self._files[path]
        what = f"{path} of {self._source}"
        try:
            headers = self._client.head(self._address(path), what, self._explain)
        except _Absent:
            return None
        length = number_in(headers.get("Content-Length"))
        if length is None:
            raise FetchError(
                f"{host_of(self._base)} does not say how long {path} is",
                hint=self._by_hand,
            )
        file = RemoteFile(path, length, validator=validator_of(headers))
        return self._files.setdefault(path, file)

    def _explain(self, never: Never) -> FetchError:
        host = host_of(self._base)
        if never.reason is Reason.NO_FILE:
            return _Absent(
                f"{host} has no such file: {never.why}", hint="try another source with --source"
            )
        if never.reason is Reason.CHANGED:
            return FetchError(
                f"{self._source} changed while it was fetched: {never.why}",
                kept="the files that were whole",
                hint="run the same command again to fetch the new version",
            )
        if never.reason in {Reason.UNAUTHORIZED, Reason.FORBIDDEN}:
            return FetchError(
                f"{host} does not give {self._source} to everybody: {never.why}",
                hint=self._by_hand,
            )
        return FetchError(f"cannot use {self._source}: {never.why}", hint="try another --source")


class _Absent(FetchError):
    """A file that the server does not have, which may be all right."""
