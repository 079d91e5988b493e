"""`modelscope:` sources: `modelscope:owner/name` or `modelscope:owner/name@revision`.

ModelScope lists every file with its size, its sha256 and the commit that last changed it; that
commit is in the file's address. `MODELSCOPE_ENDPOINT` names another server than the usual one,
`MODELSCOPE_API_TOKEN` the user's token, as in ModelScope's own tools.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any
from urllib.parse import quote, urlencode

from tokforge_models.bundle import Source
from tokforge_models.errors import FetchError
from tokforge_models.files.digests import is_sha256
from tokforge_models.names import fault_in_path
from tokforge_models.sources.client import Client
from tokforge_models.sources.hugging_face import MAX_FILES, checked_endpoint
from tokforge_models.sources.network import Contacts, Network
from tokforge_models.sources.remote import RemoteFetcher
from tokforge_models.sources.reply import Never, Reason, host_of, origin
from tokforge_models.sources.source import Listing, RemoteFile

_ENDPOINT = "https://modelscope.cn"
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


class ModelScopeFetcher(RemoteFetcher):
    """One repository at one revision.

    Args:
        source: the repository, with the revision that is wanted, else `master`.
        network: how the network may be used; its endpoint comes before `MODELSCOPE_ENDPOINT`.
        contacts: told of every host.

    Raises:
        FetchError: it is not the name of a repository.
    """

    def __init__(self, source: Source, network: Network, contacts: Contacts) -> None:
        if not _REPOSITORY.fullmatch(source.location):
            raise FetchError(f"{source} names no repository", expected="modelscope:OWNER/NAME")
        usual = checked_endpoint(os.environ.get("MODELSCOPE_ENDPOINT") or _ENDPOINT)
        self._endpoint = checked_endpoint(network.endpoint or usual)
        token = os.environ.get("MODELSCOPE_API_TOKEN")
        self._foreign = origin(self._endpoint) != origin(usual)
        client = Client(network, contacts, self._endpoint, lambda: None if self._foreign else token)
        super().__init__(source, network, client)
        self._commits: dict[str, str] = {}

    @property
    def _base(self) -> str:
        return f"{self._endpoint}/api/v1/models/{self._source.location}"

    def _address(self, path: str) -> str:
        query = urlencode({"Revision": self._commits[path], "FilePath": path}, quote_via=quote)
        return f"{self._base}/repo?{query}"

    def _ask(self) -> Listing:
        revision = self._source.revision or "master"
        query = urlencode({"Revision": revision, "Recursive": "True"})
        what = f"the file list of {self._source}"
        data = self._client.text(f"{self._base}/repo/files?{query}", what, self._explain)
        try:
            return self._parse(json.loads(data)["Data"]["Files"], revision)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FetchError(
                f"{what} is not what ModelScope says",
                expected="JSON with Data.Files",
                got=repr(data[:60]),
                hint=f"is {self._endpoint} a ModelScope server?",
            ) from error

    def _parse(self, entries: list[dict[str, Any]], revision: str) -> Listing:
        if len(entries) > MAX_FILES:
            raise FetchError(
                f"{self._source} cannot be a bundle",
                expected=f"at most {MAX_FILES:,} files",
                got=f"{len(entries):,}",
            )
        files, notes = [], []
        for entry in entries:
            path, size, sha256 = entry["Path"], entry.get("Size"), entry.get("Sha256")
            if entry.get("Type") == "tree":
                continue
            if fault := fault_in_path(path):
                notes.append(f"{path[:80]!r} {fault}")
                continue
            if type(size) is not int or size < 0 or not is_sha256(sha256):
                raise ValueError("a file without size and Sha256")
            self._commits[path] = str(entry.get("Revision") or revision)
            files.append(RemoteFile(path, size, sha256=sha256, validator=sha256))
        return Listing(tuple(files), notes=tuple(notes[:20]), foreign=self._foreign)

    def _explain(self, never: Never) -> FetchError:
        repo, host = self._source.location, host_of(self._endpoint)
        if never.reason in {Reason.UNAUTHORIZED, Reason.FORBIDDEN}:
            return FetchError(
                f"{host} does not give {repo} to everybody: {never.why}",
                hint="if you have an account there, set MODELSCOPE_API_TOKEN",
            )
        if never.reason is Reason.NO_FILE:
            return FetchError(
                f"{host} has no {repo}, or not all of its files: {never.why}",
                hint="check the name, or try another source with --source",
            )
        return FetchError(f"cannot use {self._source}: {never.why}", hint="try another --source")
