"""What one source has of what a bundle needs, before anything is written.

A source that the registry names is believed when it says which revision it has. Any other, and
any server that stands in for the usual one, must agree with all pins, and is called by the
registry's revision only if those pins cover every required file: what it has instead must not be
remembered as that revision's first download. It is called by the commit that it names, which
only the usual hub is believed about, else by its content.

A folder that the user names (`foreign_offer`) is hashed first, too, and must have every file that
its own configuration asks for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from tokforge_models.bundle import Bundle, FileRole, Source
from tokforge_models.errors import FetchError, IntegrityError
from tokforge_models.model_files.completeness import (
    MAX_CONFIG_BYTES,
    Needed,
    asked_files,
)
from tokforge_models.names import fault_in_paths, is_revision
from tokforge_models.progress import Meter, Phase, Progress
from tokforge_models.pulling.plan import Wanted
from tokforge_models.sources.source import Fetcher, Listing, RemoteFile
from tokforge_models.store.manifest import CONTENT, content_name
from tokforge_models.store.pins import UNPINNED, pins_for
from tokforge_models.store.store import Store

SERVED = "served-"


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of a source.

    Attributes:
        bundle: the registry's entry, or as much as is known of it.
        store: whose pins.json counts.
        source: the source.
        fetcher: bound to it.
        all_files: whether reference files are wanted, too.
        progress: told where bytes must be hashed first.
    """

    bundle: Bundle
    store: Store
    source: Source
    fetcher: Fetcher
    all_files: bool
    progress: Progress


@dataclass(frozen=True, slots=True)
class Offer:
    """What a source has of it.

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


def own_offer(ask: Ask) -> Offer:
    """What a server has, or a folder that the registry names.

    Raises:
        FetchError: it cannot be asked, or lacks required files; all of them are named.
        IntegrityError: its configuration asks for what cannot be.
    """
    bundle, listing = ask.bundle, ask.fetcher.listing()
    if bundle.files:
        roles = {file.path: file.role for file in bundle.files}
    else:
        needed = _followed(bundle, needed_of(ask.fetcher, listing))
        roles = {file.path: FileRole.REFERENCE for file in listing.files}
        roles.update(dict.fromkeys(needed.files, FileRole.REQUIRED))
    roles = _chosen(ask, roles)
    if missing := _missing(roles, listing):
        raise FetchError(
            f"{ask.source} is not complete",
            expected=", ".join(missing),
            got=_instead(missing, listing),
            hint="try another source with --source",
        )
    revision = _told_revision(ask, listing, roles)
    if revision is None or not is_revision(revision):
        if ask.source.kind in {"path", "package"}:
            listing = _hashed(ask, listing, roles)
        revision = _content_revision(bundle, listing, roles)
    return _offer(ask, listing, roles, revision)


def foreign_offer(ask: Ask) -> Offer:
    """What a folder that the user named has.

    Raises:
        FetchError: it cannot be read.
        IntegrityError: it is not a whole bundle; every missing file is named.
    """
    bundle, listing = ask.bundle, ask.fetcher.listing()
    needed = needed_of(ask.fetcher, listing)
    required = dict.fromkeys(needed.files, FileRole.REQUIRED)
    listed = {file.path: file.role for file in bundle.files}
    others = {file.path: FileRole.REFERENCE for file in listing.files}
    roles = _chosen(ask, {**others, **listed, **required})
    if missing := _missing(roles, listing):
        raise IntegrityError(
            f"{ask.source} is not a whole bundle",
            expected=", ".join(missing),
            got=_instead(missing, listing, needed),
            hint="add what is missing (a link can be replaced by a copy), then import it again",
        )
    _followed(bundle, needed)
    listing = _hashed(ask, listing, roles)
    revision = bundle.revision if _covered(bundle, roles) else None
    return _offer(ask, listing, roles, revision or _content_revision(bundle, listing, roles))


def _told_revision(ask: Ask, listing: Listing, roles: Mapping[str, FileRole]) -> str | None:
    """The revision that a source has by a word that counts, or None."""
    bundle, source = ask.bundle, ask.source
    if source in bundle.sources and not listing.foreign:
        return bundle.revision or listing.commit
    if bundle.revision and _covered(bundle, roles):
        return bundle.revision
    places = {(known.kind, known.location) for known in bundle.sources}
    # Of another repository the registry's own label says nothing, whoever repeats it.
    borrowed = listing.commit == bundle.revision and (source.kind, source.location) not in places
    return None if listing.foreign or borrowed else listing.commit


def _covered(bundle: Bundle, roles: Mapping[str, FileRole]) -> bool:
    """Whether the registry pins every required file."""
    pinned = {file.path for file in bundle.files if file.sha256}
    return all(path in pinned for path, role in roles.items() if role is FileRole.REQUIRED)


def _offer(ask: Ask, listing: Listing, roles: Mapping[str, FileRole], revision: str) -> Offer:
    pins = pins_for(ask.bundle, ask.store.pins.seen(ask.bundle.id, revision))
    wanted = tuple(
        Wanted(
            file.path,
            roles[file.path],
            file.size,
            file.sha256,
            file.validator,
            pins.get(file.path, UNPINNED),
            file.blob_sha1,
        )
        for file in listing.files
        if file.path in roles
    )
    return Offer(ask.source, ask.fetcher, revision, listing.commit or ask.source.revision, wanted)


def _chosen(ask: Ask, roles: Mapping[str, FileRole]) -> dict[str, FileRole]:
    if fault := fault_in_paths(roles):
        raise IntegrityError(
            f"the files of {ask.bundle.id} cannot live in one folder",
            got=fault,
            hint="rename or remove one of them there, or try another source with --source",
        )
    return {
        path: role for path, role in roles.items() if ask.all_files or role is FileRole.REQUIRED
    }


def _missing(roles: Mapping[str, FileRole], listing: Listing) -> list[str]:
    """Required files that a source does not have; an empty one is none."""
    offered = {file.path for file in listing.files if file.size}
    return [
        path for path, role in roles.items() if role is FileRole.REQUIRED and path not in offered
    ]


def _instead(missing: Collection[str], listing: Listing, needed: Needed | None = None) -> str:
    """What is there instead of missing files."""
    empty = [f"{file.path} is empty" for file in listing.files if file.path in missing]
    asked = needed.problems if needed else ()
    return "; ".join(dict.fromkeys((*empty, *asked, *listing.notes))) or "no such files"


def _followed(bundle: Bundle, needed: Needed) -> Needed:
    if needed.problems:
        raise IntegrityError(
            f"the configuration of {bundle.id} cannot be followed",
            got="; ".join(needed.problems),
            hint="mend that file there, or try another source with --source",
        )
    return needed


def _hashed(ask: Ask, listing: Listing, paths: Collection[str]) -> Listing:
    """The same listing with the digests of `paths`, read from the source itself."""
    wanted = [file for file in listing.files if file.path in paths]
    meter = Meter(ask.progress, ask.bundle.id, Phase.HASHING, sum(file.size for file in wanted))

    def digest(file: RemoteFile) -> str:
        whole = hashlib.sha256()
        for chunk in ask.fetcher.read(file.path, 0, file.size):
            whole.update(chunk)
            meter.add(file.path, len(chunk))
        return whole.hexdigest()

    return replace(listing, files=tuple(replace(file, sha256=digest(file)) for file in wanted))


def _content_revision(bundle: Bundle, listing: Listing, paths: Collection[str]) -> str:
    """A revision's name for content that no host has named: equal for equal files.

    Where a server states no digests, its validators are all that tells versions apart.
    """
    pinned = {file.path: file.sha256 for file in bundle.files}
    chosen = [file for file in listing.files if file.path in paths]
    told = {file.path: pinned.get(file.path) or file.sha256 for file in chosen}
    known = all(told.values())
    files = {file.path: (file.size, told[file.path] or file.validator or "") for file in chosen}
    return content_name(CONTENT if known else SERVED, files)


def needed_of(fetcher: Fetcher, listing: Listing) -> Needed:
    """What the configuration that a source offers asks for."""
    sizes = {file.path: file.size for file in listing.files}

    def read(name: str) -> bytes | str:
        if name not in sizes:
            return f"{name} is not there"
        if sizes[name] > MAX_CONFIG_BYTES:
            return f"{name} has {sizes[name]} bytes"
        return b"".join(fetcher.read(name, 0, sizes[name]))

    return asked_files(read, sizes)
