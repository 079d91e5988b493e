"""`hf:` sources: `hf:owner/name` or `hf:owner/name@revision`.

huggingface_hub says which endpoint (`HF_ENDPOINT`), which token (`HF_TOKEN`, the token file) and
whether we are offline (`HF_HUB_OFFLINE`). Requests are our own client's: huggingface_hub's takes
a listing of any size for any time, and ours must end.

The revision is resolved to a commit once, and that commit is in every other address. What the hub
says of a file is its size and its sha256 (large files) or git's blob sha1 (small ones).
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from tokforge_models.bundle import Source
from tokforge_models.errors import FetchError
from tokforge_models.files.digests import is_sha256
from tokforge_models.names import fault_in_path
from tokforge_models.sources.client import Client
from tokforge_models.sources.network import Contacts, Network
from tokforge_models.sources.remote import RemoteFetcher
from tokforge_models.sources.reply import Never, Reason, host_of, origin
from tokforge_models.sources.source import Listing, RemoteFile

MAX_FILES = 10_000
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")


class HuggingFaceFetcher(RemoteFetcher):
    """One repository at one revision.

    Args:
        source: the repository, with the revision that is wanted, else `main`.
        network: how the network may be used; its endpoint comes before `HF_ENDPOINT`.
        contacts: told of every host.

    Raises:
        FetchError: it is not the name of a repository, or `HF_HUB_OFFLINE` is set.
    """

    def __init__(self, source: Source, network: Network, contacts: Contacts) -> None:
        from huggingface_hub import constants

        if not _REPOSITORY.fullmatch(source.location):
            raise FetchError(f"{source} names no repository", expected="hf:OWNER/NAME[@REVISION]")
        if constants.HF_HUB_OFFLINE:
            raise FetchError(
                f"{source} may not be asked: HF_HUB_OFFLINE is set",
                hint="unset HF_HUB_OFFLINE, then run the same command again",
            )
        self._endpoint = checked_endpoint(network.endpoint or constants.ENDPOINT)
        self._foreign = origin(self._endpoint) != origin(checked_endpoint(constants.ENDPOINT))
        token = _no_token if self._foreign else _saved_token
        super().__init__(source, network, Client(network, contacts, self._endpoint, token))

    def _ask(self) -> Listing:
        wanted = quote(self._source.revision or "main", safe="")
        what = f"the file list of {self._source}"
        address = f"{self._endpoint}/api/models/{self._source.location}/revision/{wanted}"
        data = self._client.text(f"{address}?blobs=true", what, self._explain)
        try:
            return replace(_parse(json.loads(data)), foreign=self._foreign)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FetchError(
                f"{what} is not what a hub says",
                expected="JSON with sha and siblings",
                got=repr(data[:60]),
                hint=f"is {self._endpoint} a hub, and does this network want a login?",
            ) from error

    def _address(self, path: str) -> str:
        commit = self.listing().commit
        return f"{self._endpoint}/{self._source.location}/resolve/{commit}/{quote(path)}"

    def _explain(self, never: Never) -> FetchError:
        """The four refusals of a hub, and the rest, each with the next step."""
        repo, host = self._source.location, host_of(self._endpoint)
        page = f"{self._endpoint}/{repo}"
        if never.reason is Reason.GATED:
            return FetchError(
                f"{repo} is gated: {never.why}",
                hint=f"ask for access on {page}, then set HF_TOKEN or run: hf auth login",
            )
        if never.reason is Reason.UNAUTHORIZED:
            return FetchError(
                f"{host} gives {repo} only to those who log in, or has no such repository: "
                f"{never.why}",
                hint="check the name; if it is yours, set HF_TOKEN or run: hf auth login",
            )
        if never.reason is Reason.NO_REPOSITORY:
            return FetchError(
                f"{host} has no repository {repo} that your token may see: {never.why}",
                hint="check the name, and that the token is of the right account",
            )
        if never.reason is Reason.FORBIDDEN:
            return FetchError(
                f"{host} refuses {repo}: {never.why}",
                hint=f"see whether {page} opens in a browser; a token may lack the right to read",
            )
        if never.reason is Reason.NO_REVISION:
            return FetchError(
                f"{repo} has no revision {self._source.revision or 'main'}: {never.why}",
                hint=f"see which there are: {page}/commits/main",
            )
        if never.reason is Reason.NO_FILE:
            return FetchError(
                f"{host} lists a file of {repo} that it does not have: {never.why}",
                hint="try another source with --source, or again later",
            )
        return FetchError(f"cannot use {self._source}: {never.why}", hint="try another --source")


def checked_endpoint(text: str) -> str:
    """The base address of a hub, without a final slash.

    Raises:
        FetchError: it is none.
    """
    try:
        scheme, host, _ = origin(text)
    except ValueError:
        scheme = host = ""
    if scheme not in {"http", "https"} or not host:
        raise FetchError(
            f"{text[:200]!r} is no address of a hub", expected="https://HOST", hint="--endpoint URL"
        )
    return text.rstrip("/")


def _saved_token() -> str | None:
    from huggingface_hub import constants, get_token

    return None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()


def _no_token() -> None:
    """The user's token is meant for the hub that HF_ENDPOINT names, not for another one."""


def _parse(info: Any) -> Listing:
    """Read what the hub says of a model, with distrust.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it is not that.
        FetchError: it cannot be a bundle.
    """
    commit = info["sha"]
    if not (isinstance(commit, str) and _COMMIT.fullmatch(commit)):
        raise ValueError("sha")
    siblings = info["siblings"]
    if len(siblings) > MAX_FILES:
        raise FetchError(
            "this repository cannot be a bundle",
            expected=f"at most {MAX_FILES:,} files",
            got=f"{len(siblings):,}",
        )
    files, notes = [], []
    for sibling in siblings:
        path = sibling["rfilename"]
        if fault := fault_in_path(path):
            notes.append(f"{path[:80]!r} {fault}")
        else:
            files.append(_remote_file(path, sibling))
    return Listing(tuple(files), commit, tuple(notes[:20]))


def _remote_file(path: str, sibling: dict[str, Any]) -> RemoteFile:
    lfs = sibling.get("lfs")
    size = sibling["size"] if lfs is None else lfs["size"]
    if type(size) is not int or size < 0:
        raise ValueError("size")
    if lfs is None:
        blob = sibling["blobId"]
        if not (isinstance(blob, str) and _COMMIT.fullmatch(blob)):
            raise ValueError("blobId")
        return RemoteFile(path, size, validator=blob, blob_sha1=blob)
    if not is_sha256(lfs["sha256"]):
        raise ValueError("lfs")
    return RemoteFile(path, size, sha256=lfs["sha256"], validator=lfs["sha256"])
