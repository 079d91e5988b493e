"""Take out of the store what nobody needs: only what was asked for, and never what is in use."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tokforge_models.errors import IntegrityError, TokforgeError
from tokforge_models.files.digests import pair_key
from tokforge_models.files.disk import is_plain_folder
from tokforge_models.store.store import OURS, Store
from tokforge_models.upkeep.removal import bytes_on_disk

_PATIENCE_SECONDS = 10.0
DAY_SECONDS = 86_400.0


class Kind(StrEnum):
    """Why something is not needed."""

    PARTIAL = "partial"
    UNUSED = "unused"


@dataclass(frozen=True, slots=True)
class Litter:
    """A revision, or what lies beside the files of one, that is not needed.

    Attributes:
        id: the bundle.
        revision: the revision.
        kind: a partial one, or a whole one that is not the one in use.
        bytes: that its removal frees.
        age_seconds: since something in it changed.
    """

    id: str
    revision: str
    kind: Kind
    bytes: int
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep came to.

    Attributes:
        removed: what is gone.
        kept: what could not be removed, each with the reason.
    """

    removed: tuple[Litter, ...]
    kept: tuple[tuple[Litter, TokforgeError], ...]


def find_litter(
    store: Store, kinds: Iterable[Kind], *, older_than_seconds: float = 0.0
) -> tuple[Litter, ...]:
    """Everything of these kinds that did not change for so long; removes nothing."""
    chosen = frozenset(kinds)
    return tuple(
        litter
        for status in store.statuses()
        for litter in _of_bundle(store, status.id)
        if litter.kind in chosen and litter.age_seconds >= older_than_seconds
    )


def sweep(store: Store, litter: Iterable[Litter], *, command: str) -> Swept:
    """Remove what `find_litter` found and is litter still; what cannot go holds up nothing else."""
    removed, kept = [], []
    for one in litter:
        try:
            if _sweep(store, one, command):
                removed.append(one)
        except TokforgeError as error:
            kept.append((one, error))
    return Swept(tuple(removed), tuple(kept))


def _sweep(store: Store, litter: Litter, command: str) -> bool:
    """Whether it was litter still, and is gone.

    Raises:
        Refused: a running command works on the bundle, or may have begun with this revision.
        StorageError: something may not be removed.
    """
    with ExitStack() as held:
        held.enter_context(store.lock(litter.id, command, _PATIENCE_SECONDS))
        if litter.kind is Kind.UNUSED:
            # Whoever runs a model may have begun before another revision came into use.
            held.enter_context(store.locks(litter.id).unclaimed())
        still = {(other.revision, other.kind) for other in _of_bundle(store, litter.id)}
        if (litter.revision, litter.kind) not in still:
            return False
        _remove(store, litter)
        return True


def stale_keys(store: Store, *, older_than_seconds: float = 0.0) -> tuple[Path, ...]:
    """Files about contents that no revision here has: fingerprints, and what was learned of pairs.

    Each can be made again, so that whoever still reads one loses nothing but time.
    """
    contents = _contents(store)
    known = {f"{content}.fingerprint" for content in contents}
    known |= {f"{pair_key(target)}.json" for target in contents}
    known |= {f"{pair_key(target, draft)}.json" for target in contents for draft in contents}
    kept = (*_glob(store, "fingerprints", "*.fingerprint"), *_glob(store, "learned", "*.json"))
    return tuple(
        path for path in kept if path.name not in known and _age([path]) >= older_than_seconds
    )


def _contents(store: Store) -> frozenset[str]:
    found = set()
    for status in store.statuses():
        for revision in store.revisions(status.id):
            with suppress(IntegrityError):
                found.add(store.manifest(status.id, revision).content)
    return frozenset(found)


def _glob(store: Store, folder: str, pattern: str) -> list[Path]:
    place = store.home / folder
    return sorted(place.glob(pattern)) if is_plain_folder(place) else []


def _of_bundle(store: Store, id: str) -> Iterator[Litter]:
    current = store.current(id)
    for revision in store.revisions(id):
        folder = store.revision_folder(id, revision)
        if revision == current:
            if left := _leftovers(folder):
                yield _litter(id, revision, Kind.PARTIAL, folder, left)
        elif any(path.is_file() for path in folder.rglob("*")):
            kind = Kind.UNUSED if _is_whole(store, id, revision) else Kind.PARTIAL
            yield _litter(id, revision, kind, folder, [folder])


def _litter(id: str, revision: str, kind: Kind, folder: Path, parts: list[Path]) -> Litter:
    freed = sum(bytes_on_disk(part) for part in parts)
    return Litter(id, revision, kind, freed, _age((folder, *folder.rglob("*"))))


def _age(paths: Iterable[Path]) -> float:
    """Seconds since one of them changed; what somebody removes meanwhile changed now."""
    try:
        newest = max(path.lstat().st_mtime for path in paths)
    except FileNotFoundError:
        return 0.0
    return max(time.time() - newest, 0.0)


def _is_whole(store: Store, id: str, revision: str) -> bool:
    try:
        store.manifest(id, revision)
    except IntegrityError:
        return False
    return True


def _leftovers(folder: Path) -> list[Path]:
    ours = folder / OURS
    return sorted(ours.glob("*.part")) if is_plain_folder(ours) else []


def _remove(store: Store, litter: Litter) -> None:
    folder = store.revision_folder(litter.id, litter.revision)
    if litter.revision == store.current(litter.id):
        for path in (*_leftovers(folder), folder / OURS / "journal"):
            store.disk.remove(path)
    else:
        store.disk.remove_tree(folder)
