"""Take a folder of files into the store as a bundle: copied and hashed, never linked."""

from __future__ import annotations

import time
from pathlib import Path

from tokforge_models.bundle import Bundle, Role, Source
from tokforge_models.errors import UsageError
from tokforge_models.files.locks import waiting_events
from tokforge_models.names import users_path
from tokforge_models.progress import Progress, silent
from tokforge_models.pulling.offer import Ask, foreign_offer
from tokforge_models.pulling.pull import PATIENCE_SECONDS, Pulled, take
from tokforge_models.sources.source import FETCHERS
from tokforge_models.store.store import Store


def import_bundle(
    store: Store,
    directory: Path,
    id: str,
    *,
    bundle: Bundle | None = None,
    role: Role | None = None,
    progress: Progress = silent,
    command: str | None = None,
    timeout: float = PATIENCE_SECONDS,
) -> Pulled:
    """Make a folder of files the ready bundle `id`.

    It must be complete for what its own config.json and llm_config.json ask, and agree with every
    pin that the registry has for this id. All its files are taken but hidden ones; links are not
    followed. An interrupted import goes on where it stopped.

    Args:
        store: where it goes.
        directory: the folder; its files are only read.
        id: the bundle's id, in the registry or not.
        bundle: the registry's entry, if it has one.
        role: what it is for, if the registry does not say; chat if nobody does.
        progress: told how it goes on.
        command: how others shall name us while we hold the lock.
        timeout: seconds to wait for another process that works on the same bundle.

    Raises:
        UsageError: the folder is not there, or the id cannot be one.
        IntegrityError: it is not a whole bundle, or not what is pinned; every file is named.
        FetchError: it cannot be read.
        StorageError: too little disk, or it may not be written; what was verified stays.
    """
    began = time.monotonic()
    store.folder(id)
    directory = users_path(directory)
    if not directory.is_dir():
        raise UsageError(
            f"{directory} is not there",
            expected="a folder with the bundle's files",
            hint=f"tokforge import DIR --as {id}",
        )
    target = bundle or Bundle(id, name=id, role=role or Role.CHAT, family="")
    source = Source("path", str(directory))
    fetcher = FETCHERS["path"](source, target)
    waiting = waiting_events(id, progress)
    with store.lock(id, command or f"tokforge import --as {id}", timeout, waiting):
        offer = foreign_offer(Ask(target, store, source, fetcher, True, progress))
        return take(target, store, offer, progress, began)
