"""Bring a bundle into the store.

In this order: choose a source; take the bundle's lock; ask the source what it has; see what is
on disk; plan; refuse what cannot be, before the first byte; bring each file; pin what nobody had
pinned; write the manifest; make the revision the one in use. Whatever ends this early, the next
pull goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from tokforge_models.bundle import Bundle, Source, SourceKind, State
from tokforge_models.errors import FetchError, IntegrityError, StorageError
from tokforge_models.files.locks import waiting_events
from tokforge_models.names import inside
from tokforge_models.progress import Event, Meter, Phase, Progress, silent
from tokforge_models.pulling.offer import Ask, Offer, foreign_offer, own_offer
from tokforge_models.pulling.plan import Plan, Verb, Wanted, plan_pull
from tokforge_models.pulling.survey import Copies, no_copies, survey
from tokforge_models.pulling.transfer import Transfer
from tokforge_models.sources.hf_cache import HuggingFaceCache
from tokforge_models.sources.offline import OfflineFetcher
from tokforge_models.sources.source import FETCHERS, Opener, choose_sources
from tokforge_models.store.doubts import Kind, doubts_about
from tokforge_models.store.journal import Header, Journal, read_journal
from tokforge_models.store.manifest import CONTENT, Entry, Manifest
from tokforge_models.store.pins import Pin, advice
from tokforge_models.store.store import OURS, Store, place_for

T = TypeVar("T")

PATIENCE_SECONDS = 3600.0
# Journal and manifest: a few hundred bytes a segment.
_BOOKKEEPING_BYTES = 64 * 1024
_BYTES_A_BOOKKEPT = 4096
_NETWORK = frozenset({"hf", "modelscope", "url"})


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
    path: Path
    bytes_fetched: int
    bytes_reused: int
    seconds: float


def pull(
    bundle: Bundle,
    store: Store,
    *,
    source: str | None = None,
    all_files: bool = False,
    ask: bool = False,
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
        ask: ask the source even if the bundle is ready.
        progress: told how it goes on, and whom it waits for.
        command: how others shall name us while we hold the lock.
        timeout: seconds to wait for another process that works on the same bundle.
        fetchers: what can be pulled from.

    Raises:
        FetchError: nobody publishes it, or no source could give the bytes.
        Refused: it must be mended while a running model uses it.
        IntegrityError: what the sources have is not what is pinned.
        StorageError: too little disk, or it may not be written; what was verified stays.
    """
    began = time.monotonic()
    content = source is None and not all_files and not ask
    if content and (ready := _ready(bundle, store)) and not _leftovers(ready.path):
        return replace(ready, seconds=time.monotonic() - began)
    sources = choose_sources(bundle, source, fetchers)
    with store.lock(
        bundle.id,
        command or f"tokforge pull {bundle.id}",
        timeout,
        waiting_events(bundle.id, progress),
    ):
        if content and (ready := _ready(bundle, store)):
            _tidy(store, ready.path)
            return replace(ready, seconds=time.monotonic() - began)

        def attempt(candidate: Source) -> Pulled:
            with closing(fetchers[candidate.kind](candidate, bundle)) as fetcher:
                asked = Ask(bundle, store, candidate, fetcher, all_files, progress)
                return take(bundle, store, _offer(asked), progress, began)

        return _first(bundle, sources, attempt, progress)


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

    def attempt(candidate: Source) -> Plan:
        with closing(fetchers[candidate.kind](candidate, bundle)) as fetcher:
            ask = Ask(bundle, store, candidate, fetcher, all_files, progress)
            return _plan(bundle, store, _offer(ask), progress)

    return _first(bundle, choose_sources(bundle, source, fetchers), attempt, progress)


def take(bundle: Bundle, store: Store, offer: Offer, progress: Progress, began: float) -> Pulled:
    """Bring what a source offers, for whoever holds the bundle's lock."""
    plan = _plan(bundle, store, offer, progress)
    _refuse_contradictions(plan)
    _refuse_full_disk(plan, store)
    _refuse_offline(plan, offer)
    with ExitStack() as stack:
        idle = all(action.verb is Verb.KEEP for action in plan.actions)
        if not idle and store.current(bundle.id) == offer.revision:
            stack.enter_context(store.locks(bundle.id).unclaimed())
        folder = store.prepare(bundle.id, offer.revision)
        header = Header(bundle.id, offer.revision, bundle.role, store.segment_bytes)
        transfer = Transfer(
            folder,
            Journal.open(folder / OURS / "journal", header, store.disk),
            offer.fetcher,
            store.disk,
            Meter(progress, bundle.id, Phase.FETCHING, sum(f.size for f in offer.wanted)),
        )
        for action in plan.actions:
            place_for(folder, action.wanted.path, store.disk)
        entries = tuple(transfer.bring(action) for action in plan.actions)
        manifest = Manifest(
            bundle.id,
            bundle.role,
            str(offer.source),
            offer.revision,
            offer.commit,
            store.segment_bytes,
            entries,
        )
        _refuse_doubtful(manifest, folder)
        store.pins.remember(bundle.id, offer.revision, _new_pins(bundle, offer, entries))
        store.write_manifest(manifest)
        store.use(bundle.id, offer.revision)
        _tidy(store, folder)
    total = sum(entry.size for entry in entries)
    return Pulled(
        bundle.id,
        State.READY,
        str(offer.source),
        offer.revision,
        folder,
        transfer.fetched,
        max(total - transfer.fetched, 0),
        time.monotonic() - began,
    )


def _offer(ask: Ask) -> Offer:
    """Believe what the registry names, and a server about itself, but not just any folder."""
    if ask.source in ask.bundle.sources or ask.source.kind != "path":
        return own_offer(ask)
    return foreign_offer(ask)


def _plan(bundle: Bundle, store: Store, offer: Offer, progress: Progress) -> Plan:
    folder = store.revision_folder(bundle.id, offer.revision)
    try:
        manifest = store.manifest(bundle.id, offer.revision)
    except IntegrityError:
        manifest = None
    told = read_journal(folder / OURS / "journal")
    header = Header(bundle.id, offer.revision, bundle.role, store.segment_bytes)
    records = told[1] if told and told[0].fits(header) else {}
    meter = Meter(progress, bundle.id, Phase.HASHING, sum(f.size for f in offer.wanted))
    found = survey(
        folder,
        offer.wanted,
        manifest=manifest,
        records=records,
        segment_bytes=store.segment_bytes,
        on_bytes=meter.add,
        copies=_copies(store, bundle.id, offer) if offer.source.kind in _NETWORK else no_copies,
    )
    return plan_pull(
        id=bundle.id,
        source=str(offer.source),
        revision=offer.revision,
        wanted=offer.wanted,
        found=found,
        segment_bytes=store.segment_bytes,
    )


def _copies(store: Store, id: str, offer: Offer) -> Copies:
    """Finds what may be copies: in the bundle's other revisions, in Hugging Face's cache."""
    others: dict[str, Path] = {}
    for revision in store.revisions(id):
        with suppress(IntegrityError):
            for entry in store.manifest(id, revision).files:
                if revision != offer.revision:
                    path = inside(store.revision_folder(id, revision), entry.path)
                    others[entry.sha256] = others[f"{entry.path} {entry.size}"] = path

    def find(wanted: Wanted) -> Path | None:
        if wanted.digest is None:
            return None
        key = wanted.expected or f"{wanted.path} {wanted.size}"
        return others.get(key) or HuggingFaceCache().find(wanted.digest, wanted.size)

    return find


def _refuse_contradictions(plan: Plan) -> None:
    if refused := plan.refused:
        raise IntegrityError(
            f"upstream moved: {plan.source} does not have what {plan.id} is pinned to: "
            + "; ".join(f"{action.wanted.path}: {action.reason}" for action in refused),
            kept="everything that was here; nothing here is damaged",
            hint=next(
                (advice(one.wanted.pin) for one in refused if one.wanted.pin.remembered),
                "try another source with --source, or a registry that pins what is there now",
            ),
        )


def _refuse_doubtful(manifest: Manifest, folder: Path) -> None:
    """Make no bundle of files that lack what their own configuration asks for."""
    if doubts := doubts_about(manifest, folder, {}):
        raise IntegrityError(
            f"the files of {manifest.id} are no whole bundle: "
            + "; ".join(doubt.why for doubt in doubts),
            kept="the files that were fetched",
            hint="move those files away, then run the same command again"
            if all(doubt.kind is Kind.STRAY for doubt in doubts)
            else "try another source with --source, or a registry that lists these files",
        )


def _refuse_full_disk(plan: Plan, store: Store) -> None:
    folder = store.folder(plan.id)
    free = store.disk.free(folder)
    needed = plan.disk_bytes + _BOOKKEEPING_BYTES + plan.disk_bytes // _BYTES_A_BOOKKEPT
    if plan.disk_bytes and needed > free:
        raise StorageError(
            f"too little space for {plan.id} in {folder}",
            expected=f"{needed:,} bytes",
            got=f"{free:,} free",
            kept="everything verified so far",
            hint="free some space, or set TOKFORGE_HOME to another disk",
        )


def _refuse_offline(plan: Plan, offer: Offer) -> None:
    if plan.missing_bytes and isinstance(offer.fetcher, OfflineFetcher):
        missing = [action for action in plan.actions if action.missing_bytes]
        raise FetchError(
            f"we are offline, and these files of {plan.id} are missing: "
            + ", ".join(f"{one.wanted.path} ({one.missing_bytes:,} bytes)" for one in missing),
            kept="everything that is here",
            hint="run the same command again without --offline",
        )


def _leftovers(folder: Path) -> list[Path]:
    """What a whole revision has no more use for; the journal last, since it explains the rest."""
    parts = sorted((folder / OURS).glob("*.part"))
    journal = folder / OURS / "journal"
    return [*parts, journal] if journal.exists() else parts


def _tidy(store: Store, folder: Path) -> None:
    for leftover in _leftovers(folder):
        store.disk.remove(leftover)


def _new_pins(bundle: Bundle, offer: Offer, entries: tuple[Entry, ...]) -> dict[str, Pin]:
    """Pins of what nobody had pinned; a revision that is named by its content pins itself."""
    if offer.revision.startswith(CONTENT):
        return {}
    pinned = {file.path for file in bundle.files if file.sha256}
    return {
        entry.path: Pin(entry.size, entry.sha256) for entry in entries if entry.path not in pinned
    }


def _ready(bundle: Bundle, store: Store) -> Pulled | None:
    """What `pull` answers where nothing is to be done."""
    status = store.status(bundle.id)
    if status.state is not State.READY or status.problems or status.revision is None:
        return None
    manifest = store.manifest(bundle.id, status.revision)
    imported = status.revision.startswith(CONTENT)
    if not imported and bundle.revision not in {None, status.revision}:
        return None
    seen = store.pins.seen(bundle.id, status.revision)
    if doubts_about(manifest, status.path, seen, bundle):
        return None
    return Pulled(
        bundle.id,
        State.READY,
        manifest.source,
        status.revision,
        status.path,
        0,
        status.bytes,
        0.0,
    )


def _first(
    bundle: Bundle,
    sources: tuple[Source, ...],
    attempt: Callable[[Source], T],
    progress: Progress,
) -> T:
    """The first source's answer that is one; else one error for all of them."""
    failures: list[FetchError | IntegrityError] = []
    for source in sources:
        try:
            return attempt(source)
        except (FetchError, IntegrityError) as error:
            failures.append(error)
            if source != sources[-1]:
                note = f"{source} failed, trying the next source: {error.message}"
                progress(Event(bundle.id, Phase.NOTE, note=note))
    if len(failures) == 1:
        raise failures[0]
    wrong = any(isinstance(error, IntegrityError) for error in failures)
    kind = IntegrityError if wrong else FetchError
    told = zip(sources, failures, strict=True)
    raise kind(
        f"no source could give {bundle.id}: "
        + "; ".join(f"{source}: {error.message}" for source, error in told),
        hint=f"if you have its files: tokforge import DIR --as {bundle.id}",
    )
