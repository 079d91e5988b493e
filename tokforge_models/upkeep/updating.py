"""Move an installed bundle to what its source has now.

The new revision is filled beside the old one, which stays in use until the new one is whole.
Files that did not change are taken from the old revision. The registry's pins speak of the
registry's own revision alone; of a newer one, what the source states is checked, and pinned from
then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tokforge_models.bundle import Bundle, Source, SourceKind, State
from tokforge_models.errors import UnknownBundle
from tokforge_models.progress import Progress, silent
from tokforge_models.pulling.pull import Pulled, pull
from tokforge_models.sources.source import FETCHERS, Opener
from tokforge_models.store.store import Store

_FOLLOWING: frozenset[SourceKind] = frozenset({"hf", "modelscope", "url"})


@dataclass(frozen=True, slots=True)
class Updated:
    """What an update came to.

    Attributes:
        before: the revision that was in use.
        pulled: the revision that is in use now, and what it cost.
    """

    before: str
    pulled: Pulled

    @property
    def changed(self) -> bool:
        """Whether another revision is in use now."""
        return self.before != self.pulled.revision


def update(
    bundle: Bundle,
    store: Store,
    *,
    source: str | None = None,
    progress: Progress = silent,
    command: str | None = None,
    fetchers: Mapping[SourceKind, Opener] = FETCHERS,
) -> Updated:
    """Bring a ready bundle to the newest revision of its source.

    Args:
        bundle: the registry's entry.
        store: where it is.
        source: a whole source to ask instead, e.g. ``hf:owner/name``.
        progress: told how it goes on.
        command: how others shall name us while we hold the lock.
        fetchers: what can be pulled from.

    Raises:
        UnknownBundle: it is not installed.
        TokforgeError: as `pull`; the old revision stays in use.
    """
    status = store.status(bundle.id)
    if status.state is not State.READY or status.revision is None:
        raise UnknownBundle(f"{bundle.id} is not installed", hint=f"tokforge pull {bundle.id}")
    pulled = pull(
        followed(bundle),
        store,
        source=source,
        ask=True,
        progress=progress,
        command=command or f"tokforge update {bundle.id}",
        fetchers=fetchers,
    )
    return Updated(status.revision, pulled)


def why_it_stays(bundle: Bundle, store: Store) -> str | None:
    """Why an update of everything leaves a ready bundle as it is, or None where it does not.

    What somebody imported, or pulled from elsewhere, is no older state of what the registry's
    sources have, but something of their own choice.

    Raises:
        IntegrityError: it is not ready.
    """
    if not bundle.sources:
        return "it has no public address"
    told = store.manifest(bundle.id, store.current(bundle.id) or "").source
    if any(_is_at(told, source) for source in bundle.sources):
        return None
    return f"it came from {told}, which is not a source that the registry names"


def _is_at(told: str, source: Source) -> bool:
    place = str(replace(source, revision=None))
    return told == place or told.startswith(f"{place}@")


def followed(bundle: Bundle) -> Bundle:
    """A registry entry that follows its first network source instead of being pinned.

    One source, since two hosts need not have the same newest revision. A bundle that comes from
    this machine only is what the registry says, and nothing newer.
    """
    following = [source for source in bundle.sources if source.kind in _FOLLOWING]
    if not following:
        return bundle
    return replace(
        bundle,
        revision=None,
        files=tuple(replace(file, size=None, sha256=None) for file in bundle.files),
        sources=(replace(following[0], revision=None),),
    )
