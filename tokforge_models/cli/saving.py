"""Save what was measured, and tell what it changes about how a target runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokforge_models.cli.world import World
from tokforge_models.resolution.measurement import Measurement
from tokforge_models.resolution.resolution import Resolution
from tokforge_models.store.measurements import Measurements

UNSET = "as the bundle says"


def save_profiles(
    world: World, target: str, profiles: Iterable[Measurement]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Save profiles of a target, and say what `auto` does otherwise from now on.

    Args:
        world: registry, store and device.
        target: as the user named it.
        profiles: to be saved.

    Returns:
        the files, and the changes, a sentence each.

    Raises:
        StorageError: the store cannot be written.
    """
    before = world.resolve(target).resolution
    kept = Measurements(world.store.home, world.store.disk)
    files = tuple([kept.save(profile) for profile in profiles])
    return files, changes(before, world.resolve(target).resolution)


def changes(before: Resolution, after: Resolution) -> tuple[str, ...]:
    """What a target runs with otherwise than before, a sentence each."""
    same_draft = before.draft == after.draft
    old, new = (_facts(each, of_draft=same_draft) for each in (before, after))
    return tuple(
        f"{what}: {old.get(what, UNSET)}, now {new.get(what, UNSET)}"
        for what in dict.fromkeys((*old, *new))
        if old.get(what) != new.get(what)
    )


def _facts(resolution: Resolution, *, of_draft: bool) -> dict[str, object]:
    settings = resolution.settings
    draft = settings.draft.given() if settings.draft and of_draft else {}
    return {
        "draft": resolution.draft.id if resolution.draft else "none",
        "lookup": "allowed" if resolution.lookup else "off",
        "d": settings.d,
        **{f"{name} of the target": value for name, value in settings.target.given().items()},
        **{f"{name} of the draft": value for name, value in draft.items()},
    }
