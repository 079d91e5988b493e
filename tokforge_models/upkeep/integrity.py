"""Is every file still what it was when it was verified, and if not, mend it.

A stamp that fits is believed; another stamp means only that the file is hashed again. What this
finds is written into the manifest (a new stamp, or none for a file that failed), so that whoever
looks next sees it on disk.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tokforge_models.bundle import Bundle, BundleFile, FileRole, Source, SourceKind, State
from tokforge_models.errors import IntegrityError, Refused, StorageError, TokforgeError, UsageError
from tokforge_models.files.digests import hash_file
from tokforge_models.files.disk import is_plain_folder, read_small
from tokforge_models.files.locks import waiting_events
from tokforge_models.model_files.completeness import (
    CONFIG,
    MAX_CONFIG_BYTES,
    parse_config,
    settings_of,
)
from tokforge_models.names import inside
from tokforge_models.progress import Meter, Phase, Progress, silent
from tokforge_models.sources.source import FETCHERS, Opener, parse_source
from tokforge_models.store.doubts import Doubt, Kind, doubts_about, speaks_of
from tokforge_models.store.manifest import Entry, Manifest, Stamp
from tokforge_models.store.pins import UNPINNED, Pin, pins_for
from tokforge_models.store.store import OURS, Look, Store, look

_PATIENCE_SECONDS = 10.0
_THREADS = 8


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file, checked.

    Attributes:
        path: POSIX path relative to the bundle.
        ok: whether it is what it must be.
        expected: the sha256 that it must have, or None where only its presence is asked for.
        actual: the sha256 that it has (or had when it was hashed and its stamp still fits);
            None where it is missing or cannot be read.
        size: bytes that it must have; 0 where that is not known.
    """

    path: str
    ok: bool
    expected: str | None
    actual: str | None
    size: int


@dataclass(frozen=True, slots=True)
class BundleReport:
    """One bundle, checked.

    Attributes:
        id: the bundle.
        state: as it is on disk now.
        ok: whether it is ready and every file is what it must be.
        files: every file that it must have.
        problems: what is wrong beyond single files, and why a repair failed.
        extra: files that nobody asked for; harmless.
    """

    id: str
    state: State
    ok: bool
    files: tuple[FileReport, ...]
    problems: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


def verify(
    store: Store,
    ids: Iterable[str] | None = None,
    *,
    bundles: Mapping[str, Bundle],
    full: bool = False,
    repair: bool = False,
    progress: Progress = silent,
    fetchers: Mapping[SourceKind, Opener] = FETCHERS,
) -> tuple[BundleReport, ...]:
    """Check bundles, one report each.

    Args:
        store: where they are.
        ids: which; None means every one of which something is here.
        bundles: the registry's entries, for their pins and sources; may lack imported ones.
        full: hash every file, whatever its stamp says.
        repair: fetch what is damaged, segment by segment, and check again.
        progress: told of every byte hashed or fetched.
        fetchers: what can be pulled from.

    Raises:
        StorageError: the store cannot be read at all. A bundle that fails is no error but a report.
    """
    if ids is None:
        ids = [status.id for status in store.statuses()]
    reports = []
    for id in ids:
        bundle = bundles.get(id)
        report = _check(store, id, bundle, full, progress)
        if repair and not report.ok and report.state in {State.READY, State.DAMAGED}:
            failed = _repair(store, id, bundle, progress, fetchers)
            # Damage that could be neither written down nor mended is seen by no stamp.
            report = _check(store, id, bundle, full and bool(failed), progress)
            report = replace(report, problems=(*report.problems, *failed))
        reports.append(report)
    return tuple(reports)


def _check(
    store: Store, id: str, bundle: Bundle | None, full: bool, progress: Progress
) -> BundleReport:
    status = store.status(id)
    if status.state in {State.ABSENT, State.PARTIAL} or status.revision is None:
        return BundleReport(id, status.state, False, (), status.problems)
    try:
        manifest = store.manifest(id, status.revision)
    except IntegrityError as error:
        return BundleReport(id, State.DAMAGED, False, (), (error.message,))
    folder = store.revision_folder(id, status.revision)
    looks = {entry.path: look(folder, entry) for entry in manifest.files}
    doubtful = [entry for entry in manifest.files if _doubtful(looks[entry.path], full)]
    hashed = _hash(id, folder, doubtful, progress)
    checked = tuple(_judge(entry, looks[entry.path], hashed) for entry in manifest.files)
    unwritten = _remember(store, manifest, checked, progress) if checked != manifest.files else ""
    seen, blind = _seen(store, manifest)
    pins = _pins(seen, manifest, bundle)
    doubts = doubts_about(replace(manifest, files=checked), folder, seen, bundle)
    files = [
        _report(entry, looks[entry.path], hashed.get(entry.path), pins.get(entry.path, UNPINNED))
        for entry in checked
    ]
    known = manifest.by_path()
    files += [_unverified(doubt) for doubt in doubts if doubt.path not in known]
    whole = all(file.ok for file in files) and not doubts and not blind
    problems = (*(doubt.why for doubt in doubts), *blind, *_settings_problems(folder))
    if not whole and unwritten:
        problems = (*problems, unwritten)
    state = State.READY if whole else State.DAMAGED
    ok = whole and not problems
    doubted = {doubt.path for doubt in doubts}
    extra = tuple(path for path in _extra(folder, manifest) if path not in doubted)
    return BundleReport(id, state, ok, tuple(files), problems, extra)


def _doubtful(seen: Look, full: bool) -> bool:
    """Whether a file must be hashed to know what it is."""
    return seen in {Look.CHANGED, Look.FAILED, Look.SIZE} or (full and seen is Look.SAME)


def _hash(
    id: str, folder: Path, entries: list[Entry], progress: Progress
) -> dict[str, tuple[Stamp, str] | None]:
    """Digests of files, with their stamps from before; None: unreadable. Large ones first."""
    wanted = sorted(entries, key=lambda entry: -entry.size)
    meter = Meter(progress, id, Phase.HASHING, sum(entry.size for entry in wanted))

    stopped = threading.Event()

    def count(path: str, bytes_read: int) -> None:
        # Whoever interrupts a check must not wait for gigabytes to be hashed to their end.
        if stopped.is_set():
            raise InterruptedError
        meter.add(path, bytes_read)

    def digest(entry: Entry) -> tuple[Stamp, str] | None:
        path = inside(folder, entry.path)
        try:
            stamp = Stamp.of(path)
            return stamp, hash_file(path, partial(count, entry.path))
        except OSError:
            return None

    if not wanted:
        return {}
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1, len(wanted))) as pool:
        try:
            found = pool.map(digest, wanted)
            return dict(zip((entry.path for entry in wanted), found, strict=True))
        finally:
            stopped.set()


def _judge(
    entry: Entry,
    seen: Look,
    hashed: Mapping[str, tuple[Stamp, str] | None],
) -> Entry:
    """The entry with the stamp that it deserves now."""
    if entry.path in hashed:
        found = hashed[entry.path]
        right = found is not None and found[1] == entry.sha256
        return replace(entry, stamp=found[0] if found and right else None)
    return entry if seen is Look.SAME else replace(entry, stamp=None)


def _remember(
    store: Store, manifest: Manifest, checked: tuple[Entry, ...], progress: Progress
) -> str:
    """Write down what was found, unless someone else is changing the bundle.

    A verdict stands whether or not it can be written, so that a store that may only be read can
    be verified, too. On a full disk a damaged file is at least touched, so that its stamp no longer
    vouches for it.

    Returns:
        Why it is not written down, or nothing.
    """
    try:
        with store.lock(
            manifest.id,
            f"tokforge verify {manifest.id}",
            _PATIENCE_SECONDS,
            waiting_events(manifest.id, progress),
        ):
            if store.manifest(manifest.id, manifest.revision) == manifest:
                store.write_manifest(replace(manifest, files=checked))
    except (StorageError, Refused) as error:
        folder = store.revision_folder(manifest.id, manifest.revision)
        vouched = {entry.path for entry in manifest.files if look(folder, entry) is Look.SAME}
        try:
            for entry in checked:
                if entry.stamp is None and entry.path in vouched:
                    store.disk.touch(inside(folder, entry.path))
        except StorageError:
            return f"this verdict is not written down, and only --full finds it again: {error.what}"
        return f"this verdict is not written down, and will be sought again: {error.what}"
    return ""


def _seen(store: Store, manifest: Manifest) -> tuple[dict[str, Pin], tuple[str, ...]]:
    """What pins.json says of a revision, or why it says nothing."""
    try:
        return store.pins.seen(manifest.id, manifest.revision), ()
    except (IntegrityError, StorageError) as error:
        return {}, (f"{error.message} ({error.hint})",)


def _pins(seen: Mapping[str, Pin], manifest: Manifest, bundle: Bundle | None) -> Mapping[str, Pin]:
    """What the files must be by others' word than the manifest's own."""
    return pins_for(bundle, seen) if bundle and speaks_of(bundle, manifest) else seen


def _report(entry: Entry, seen: Look, hashed: tuple[Stamp, str] | None, pin: Pin) -> FileReport:
    actual = hashed[1] if hashed else entry.sha256 if entry.stamp and seen is Look.SAME else None
    expected = pin.sha256 or entry.sha256
    ok = entry.stamp is not None and actual == expected and pin.size in {None, entry.size}
    return FileReport(entry.path, ok, expected, actual, pin.size or entry.size)


def _unverified(doubt: Doubt) -> FileReport:
    pin = doubt.pin or UNPINNED
    return FileReport(doubt.path, False, pin.sha256, None, pin.size or 0)


def _settings_problems(folder: Path) -> tuple[str, ...]:
    try:
        config = parse_config(CONFIG, read_small(folder / CONFIG, MAX_CONFIG_BYTES))
    except OSError:
        return ()
    return () if isinstance(config, str) else settings_of(config)[1]


def _extra(folder: Path, manifest: Manifest) -> tuple[str, ...]:
    known = manifest.by_path()
    found = []
    for parent, subfolders, names in os.walk(folder):
        if Path(parent) == folder and OURS in subfolders:
            subfolders.remove(OURS)
        links = [name for name in subfolders if not is_plain_folder(Path(parent, name))]
        for name in (*names, *links):
            path = Path(parent, name).relative_to(folder).as_posix()
            if path not in known:
                found.append(path)
    return tuple(sorted(found))


def _repair(
    store: Store,
    id: str,
    bundle: Bundle | None,
    progress: Progress,
    fetchers: Mapping[SourceKind, Opener],
) -> tuple[str, ...]:
    """Mend a bundle; what stood in the way comes back in words."""
    from tokforge_models.pulling.pull import pull

    try:
        pull(
            _target(store, id, bundle),
            store,
            all_files=True,
            progress=progress,
            command=f"tokforge verify --repair {id}",
            fetchers=fetchers,
        )
    except TokforgeError as error:
        return (f"not repaired: {error.message}" + (f" ({error.hint})" if error.hint else ""),)
    return ()


def _target(store: Store, id: str, bundle: Bundle | None) -> Bundle:
    """What to pull so that the revision in use is whole again.

    The folder that an import came from is a source as good as any, since its bytes are checked
    against the manifest's digests. No other source is taken from a manifest: a file on disk does
    not decide which hosts are contacted.

    Raises:
        IntegrityError: nothing says what the bundle must be.
    """
    revision = store.current(id)
    try:
        manifest = store.manifest(id, revision or "")
    except TokforgeError as error:
        if bundle is None:
            raise IntegrityError(
                f"nothing says what {id} must be", hint=f"tokforge import DIR --as {id}"
            ) from error
        return bundle
    seen = store.pins.seen(id, manifest.revision)
    pins = _pins(seen, manifest, bundle)
    doubts = doubts_about(manifest, store.revision_folder(id, manifest.revision), seen, bundle)
    roles = {entry.path: entry.role for entry in manifest.files}
    roles |= {doubt.path: FileRole.REQUIRED for doubt in doubts if doubt.kind is Kind.ABSENT}
    known = manifest.by_path()
    files = tuple(
        BundleFile(path, role, *_must_be(known.get(path), pins.get(path, UNPINNED)))
        for path, role in roles.items()
    )
    named = bundle.sources if bundle and bundle.revision in {None, manifest.revision} else ()
    sources = (*named, *(source for source in _import_source(manifest) if source not in named))
    base = bundle or Bundle(id, id, manifest.role, family="")
    return replace(base, revision=manifest.revision, files=files, sources=sources)


def _must_be(entry: Entry | None, pin: Pin) -> tuple[int | None, str | None]:
    """Size and digest that a file must have: a pin counts more than a manifest.

    What pins.json says is left to whoever pulls, who reads it, too, and tells it from a registry.
    """
    if entry is None or pin.contradicts(entry.size, entry.sha256):
        return (None, None) if pin.remembered else (pin.size, pin.sha256)
    return entry.size, entry.sha256


def _import_source(manifest: Manifest) -> tuple[Source, ...]:
    try:
        source = parse_source(manifest.source)
    except UsageError:
        return ()
    local = source.kind == "path" and Path(source.location).is_absolute()
    return (source,) if local else ()
