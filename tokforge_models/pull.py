"""Bring a bundle into the store.

In this order: choose a source; take the bundle's lock; ask the source what it has; see what is
on disk; plan; refuse what cannot be, before the first byte; bring each file; pin what nobody had
pinned; write the manifest; make the revision the one in use. Whatever ends this early, the next
pull goes on from there.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from tokforge_models.bundle import Bundle, FileRole, Source, SourceKind, State
from tokforge_models.completeness import (
    CONFIG,
    MAX_CONFIG_BYTES,
    Config,
    Needed,
    llm_config_name,
    needed_files,
    parse_config,
)
from tokforge_models.digests import content_digest
from tokforge_models.errors import FetchError, IntegrityError, StorageError, TokforgeError
from tokforge_models.journal import Header, Journal, read_journal
from tokforge_models.locks import Holder
from tokforge_models.manifest import Manifest
from tokforge_models.names import fault_in_paths, is_revision
from tokforge_models.pins import UNPINNED, Pin, pins_for
from tokforge_models.plan import Plan, Verb, Wanted, plan_pull
from tokforge_models.progress import Event, Meter, Phase, Progress, silent
from tokforge_models.sources import (
    FETCHERS,
    Fetcher,
    Listing,
    Opener,
    choose_sources,
)
from tokforge_models.store import OURS, Store
from tokforge_models.survey import survey
from tokforge_models.transfer import Transfer

PATIENCE_SECONDS = 3600.0
_BOOKKEEPING_BYTES = 1024 * 1024
CONTENT = "content-"


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull or an import came to.

    Attributes:
        id: the bundle.
        state: ready.
        source: where it came from.
        revision: the revision in use.
        path: folder of its files.
        bytes_fetched: bytes that came from the source now.
        bytes_reused: bytes that were here already.
        seconds: how long it took, waiting included.
    """

    id: str
    state: State
    source: str
    revision: str
    path: str
    bytes_fetched: int
    bytes_reused: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Offer:
    """What one source has of what a bundle needs.

    Attributes:
        source: the source.
        fetcher: bound to it.
        revision: name of the revision that this would become.
        commit: what the source calls it.
        wanted: the files.
    """

    source: Source
    fetcher: Fetcher
    revision: str
    commit: str | None
    wanted: tuple[Wanted, ...]


def pull(
    bundle: Bundle,
    store: Store,
    *,
    source: str | None = None,
    all_files: bool = False,
    progress: Progress = silent,
    command: str | None = None,
    timeout: float = PATIENCE_SECONDS,
    fetchers: Mapping[SourceKind, Opener] = FETCHERS,
) -> Pulled:
    """Make a bundle ready, fetching only what is not here yet.

    A bundle that is ready at the registry's revision, or was imported, is left as it is without
    asking any source; name a `source` to insist.

    Args:
        bundle: the registry's entry.
        store: where it goes.
        source: a kind (``path``) or a whole source (``path:DIR``); None tries the bundle's own.
        all_files: take the reference files, too.
        progress: told how it goes on, and whom it waits for.
        command: how others shall name us while we hold the lock.
        timeout: seconds to wait for another process that works on the same bundle.
        fetchers: what can be pulled from.

    Raises:
        Refused: nobody publishes it, or it must be mended while a running model uses it.
        FetchError: no source could give the bytes.
        IntegrityError: what the sources have is not what is pinned.
        StorageError: too little disk, or it may not be written; what was verified stays.
    """
    began = time.monotonic()
    sources = choose_sources(bundle, source, fetchers)
    with store.lock(
        bundle.id, command or f"tokforge pull {bundle.id}", timeout, _waiting(bundle.id, progress)
    ):
        if source is None and not all_files and (ready := _ready(bundle, store)):
            return replace(ready, seconds=time.monotonic() - began)
        failures: list[tuple[Source, TokforgeError]] = []
        for candidate in sources:
            try:
                offer = make_offer(
                    bundle,
                    store,
                    candidate,
                    fetchers=fetchers,
                    all_files=all_files,
                    progress=progress,
                )
                return take(bundle, store, offer, progress, began)
            except (FetchError, IntegrityError) as error:
                failures.append((candidate, error))
    raise _all_failed(bundle, failures)


def preview(
    bundle: Bundle,
    store: Store,
    *,
    source: str | None = None,
    all_files: bool = False,
    progress: Progress = silent,
    fetchers: Mapping[SourceKind, Opener] = FETCHERS,
) -> Plan:
    """What `pull` would do, from the first source that answers; writes nothing.

    Raises:
        TokforgeError: as `pull`, except that a refusal of a file is part of the plan.
    """
    failures: list[tuple[Source, TokforgeError]] = []
    for candidate in choose_sources(bundle, source, fetchers):
        try:
            offer = make_offer(
                bundle, store, candidate, fetchers=fetchers, all_files=all_files, progress=progress
            )
            return _plan(bundle, store, offer, progress)
        except (FetchError, IntegrityError) as error:
            failures.append((candidate, error))
    raise _all_failed(bundle, failures)


def make_offer(
    bundle: Bundle,
    store: Store,
    source: Source,
    *,
    fetchers: Mapping[SourceKind, Opener],
    all_files: bool,
    progress: Progress,
) -> Offer:
    """Ask a source what it has, and match that with what the bundle needs.

    Raises:
        FetchError: it cannot be asked, or lacks required files; all of them are named.
        IntegrityError: its configuration asks for what cannot be.
    """
    fetcher = fetchers[source.kind](source, bundle)
    listing = fetcher.listing()
    roles = _roles(bundle, fetcher, listing, all_files)
    missing = [path for path, role in roles.items() if role is FileRole.REQUIRED]
    offered = {file.path: file for file in listing.files}
    if missing := [path for path in missing if path not in offered]:
        raise FetchError(
            f"{source} is not complete",
            expected=", ".join(missing),
            got="; ".join(listing.notes) or "no such files",
        )
    revision = bundle.revision or listing.commit
    if revision is None or not is_revision(revision):
        paths = [path for path in roles if path in offered]
        listing = hashed(bundle.id, fetcher, listing, paths, progress)
        offered = {file.path: file for file in listing.files}
        revision = content_revision(listing, paths)
    pins = pins_for(bundle, store.pins.seen(bundle.id, revision))
    wanted = tuple(
        Wanted(path, role, file.size, file.sha256, file.validator, pins.get(path, UNPINNED))
        for path, role in roles.items()
        if (file := offered.get(path))
    )
    return Offer(source, fetcher, revision, listing.commit or source.revision, wanted)


def take(bundle: Bundle, store: Store, offer: Offer, progress: Progress, began: float) -> Pulled:
    """Bring what a source offers, for whoever holds the bundle's lock."""
    plan = _plan(bundle, store, offer, progress)
    _refuse_contradictions(plan)
    _refuse_full_disk(plan, store)
    with ExitStack() as stack:
        idle = all(action.verb is Verb.KEEP for action in plan.actions)
        if not idle and store.current(bundle.id) == offer.revision:
            stack.enter_context(store.locks(bundle.id).unclaimed())
        folder = store.prepare(bundle.id, offer.revision)
        header = Header(bundle.id, offer.revision, bundle.role, store.segment_bytes)
        journal_path = folder / OURS / "journal"
        transfer = Transfer(
            folder,
            Journal.open(journal_path, header, store.disk),
            offer.fetcher,
            store.disk,
            Meter(progress, bundle.id, Phase.FETCHING, sum(f.size for f in offer.wanted)),
        )
        entries = tuple(transfer.bring(action) for action in plan.actions)
        if not offer.revision.startswith(CONTENT):
            fresh = {e.path: Pin(e.size, e.sha256) for e in entries}
            for file in bundle.files:
                if file.sha256:
                    fresh.pop(file.path, None)
            store.pins.remember(bundle.id, offer.revision, fresh)
        store.write_manifest(
            Manifest(
                bundle.id,
                bundle.role,
                str(offer.source),
                offer.revision,
                offer.commit,
                store.segment_bytes,
                entries,
            )
        )
        store.use(bundle.id, offer.revision)
        for leftover in (*sorted((folder / OURS).glob("*.part")), journal_path):
            store.disk.remove(leftover)
    total = sum(entry.size for entry in entries)
    return Pulled(
        bundle.id,
        State.READY,
        str(offer.source),
        offer.revision,
        str(folder),
        transfer.fetched,
        max(total - transfer.fetched, 0),
        time.monotonic() - began,
    )


def hashed(
    id: str, fetcher: Fetcher, listing: Listing, paths: list[str], progress: Progress
) -> Listing:
    """The same listing with the digests of `paths`, read from the source itself."""
    sizes = {file.path: file.size for file in listing.files}
    meter = Meter(progress, id, Phase.HASHING, sum(sizes[path] for path in paths))
    digests = {}
    for path in paths:
        whole = hashlib.sha256()
        for chunk in fetcher.read(path, 0, sizes[path]):
            whole.update(chunk)
            meter.add(path, len(chunk))
        digests[path] = whole.hexdigest()
    files = (replace(file, sha256=digests.get(file.path, file.sha256)) for file in listing.files)
    return replace(listing, files=tuple(files))


def content_revision(listing: Listing, paths: list[str]) -> str:
    """A revision's name for content that no host has named: equal for equal files."""
    files = {file.path: (file.size, file.sha256 or "") for file in listing.files}
    return f"{CONTENT}{content_digest({path: files[path] for path in paths})[:32]}"


def needed_of(fetcher: Fetcher, listing: Listing) -> Needed:
    """What the configuration that a source offers asks for."""
    sizes = {file.path: file.size for file in listing.files}
    problems: list[str] = []

    def config(name: str) -> Config:
        size = sizes.get(name, 0)
        if size > MAX_CONFIG_BYTES:
            problems.append(f"{name} has {size} bytes")
            return {}
        parsed = parse_config(name, b"".join(fetcher.read(name, 0, size))) if size else {}
        if isinstance(parsed, str):
            problems.append(parsed)
            return {}
        return parsed

    first = config(CONFIG)
    needed = needed_files(first, config(llm_config_name(first)), sizes)
    return replace(needed, problems=(*problems, *needed.problems))


def _roles(
    bundle: Bundle, fetcher: Fetcher, listing: Listing, all_files: bool
) -> dict[str, FileRole]:
    """Which files to take, and what for."""
    if bundle.files:
        roles = {file.path: file.role for file in bundle.files}
    else:
        needed = needed_of(fetcher, listing)
        if needed.problems:
            raise IntegrityError(
                f"the configuration of {bundle.id} cannot be followed",
                got="; ".join(needed.problems),
            )
        roles = {file.path: FileRole.REFERENCE for file in listing.files}
        roles.update(dict.fromkeys(needed.files, FileRole.REQUIRED))
    if not all_files:
        roles = {path: role for path, role in roles.items() if role is FileRole.REQUIRED}
    if fault := fault_in_paths(roles):
        raise IntegrityError(f"the files of {bundle.id} cannot live in one folder", got=fault)
    return roles


def _plan(bundle: Bundle, store: Store, offer: Offer, progress: Progress) -> Plan:
    folder = store.revision_folder(bundle.id, offer.revision)
    try:
        manifest = store.manifest(bundle.id, offer.revision)
    except IntegrityError:
        manifest = None
    told = read_journal(folder / OURS / "journal")
    header = Header(bundle.id, offer.revision, bundle.role, store.segment_bytes)
    records = told[1] if told and told[0] == header else {}
    meter = Meter(progress, bundle.id, Phase.HASHING, sum(f.size for f in offer.wanted))
    found = survey(
        folder,
        offer.wanted,
        manifest=manifest,
        records=records,
        segment_bytes=store.segment_bytes,
        on_bytes=meter.add,
    )
    return plan_pull(
        id=bundle.id,
        source=str(offer.source),
        revision=offer.revision,
        wanted=offer.wanted,
        found=found,
        segment_bytes=store.segment_bytes,
    )


def _refuse_contradictions(plan: Plan) -> None:
    if refused := plan.refused:
        raise IntegrityError(
            f"{plan.source} does not have what {plan.id} is pinned to: "
            + "; ".join(f"{action.wanted.path}: {action.reason}" for action in refused),
            kept="everything that was here",
        )


def _refuse_full_disk(plan: Plan, store: Store) -> None:
    folder = store.folder(plan.id)
    free = store.disk.free(folder)
    if plan.disk_bytes and (needed := plan.disk_bytes + _BOOKKEEPING_BYTES) > free:
        raise StorageError(
            f"too little space for {plan.id} in {folder}",
            expected=f"{needed:,} bytes",
            got=f"{free:,} free",
            kept="everything verified so far",
            hint="free some space, or set TOKFORGE_HOME to another disk",
        )


def _ready(bundle: Bundle, store: Store) -> Pulled | None:
    """What `pull` answers where nothing is to be done."""
    status = store.status(bundle.id)
    if status.state is not State.READY or status.problems or status.revision is None:
        return None
    manifest = store.manifest(bundle.id, status.revision)
    imported = status.revision.startswith(CONTENT)
    if not imported and bundle.revision not in {None, status.revision}:
        return None
    entries = manifest.by_path()
    for file in bundle.files:
        entry = entries.get(file.path)
        if entry is None and file.role is FileRole.REQUIRED:
            return None
        if entry and Pin(file.size, file.sha256).contradicts(entry.size, entry.sha256):
            return None
    return Pulled(
        bundle.id,
        State.READY,
        manifest.source,
        status.revision,
        str(status.path),
        0,
        status.bytes,
        0.0,
    )


def _all_failed(
    bundle: Bundle, failures: list[tuple[Source, TokforgeError]]
) -> FetchError | IntegrityError:
    """One error for all sources: the only one's own, else a list."""
    if len(failures) == 1:
        error = failures[0][1]
        assert isinstance(error, FetchError | IntegrityError)
        return error
    wrong = any(isinstance(error, IntegrityError) for _, error in failures)
    kind = IntegrityError if wrong else FetchError
    return kind(
        f"no source could give {bundle.id}: "
        + "; ".join(f"{source}: {error.message}" for source, error in failures),
        hint=f"if you have its files: tokforge import DIR --as {bundle.id}",
    )


def _waiting(id: str, progress: Progress) -> Callable[[Holder], None]:
    return lambda holder: progress(Event(id, Phase.WAITING, note=str(holder)))
