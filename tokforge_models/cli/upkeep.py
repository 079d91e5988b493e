"""`tokforge lock|update|prune`: bundles after their download."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tokforge_models.bundle import State
from tokforge_models.cli import output
from tokforge_models.cli.option_groups import Fetching, takes_groups
from tokforge_models.cli.options import Json, Layers, OptionalIds
from tokforge_models.errors import StorageError, TokforgeError


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the root command."""
    app.command()(lock)
    app.command()(takes_groups(update))
    app.command()(prune)


def lock(layers: Layers, ids: OptionalIds, json: Json = False) -> None:
    """Write tokforge.lock: commit, files, sizes and sha256 of what is installed."""
    from tokforge_models.cli.world import World
    from tokforge_models.upkeep.lockfile import NAME, freeze, write_lock

    world = World.open(layers)
    frozen = freeze(world.store, [world.find(id).id for id in ids] or None)
    path = Path.cwd() / NAME
    write_lock(path, frozen, world.store.disk)
    if json:
        output.document({"path": str(path), "bundles": list(frozen)})
    else:
        output.line(f"{path}: {', '.join(frozen)}")


def update(
    layers: Layers,
    ids: OptionalIds,
    fetching: Fetching,
    source: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="Ask this source instead, e.g. hf:OWNER/NAME."),
    ] = None,
    json: Json = False,
) -> None:
    """Move installed bundles to what their sources have now; only what changed is fetched."""
    from tokforge_models.cli.progress import bar
    from tokforge_models.cli.pulling import Failed, Outcome, conclude, telling
    from tokforge_models.cli.world import World, this_command
    from tokforge_models.sources.source import openers
    from tokforge_models.upkeep.updating import update as update_bundle
    from tokforge_models.upkeep.updating import why_it_stays

    world = World.open(layers)
    ready = [one.id for one in world.store.statuses() if one.state is State.READY]
    wanted = [world.find(id) for id in ids or ready]
    network = fetching.network()
    outcomes: list[Outcome] = []
    with bar() as progress:
        for bundle in wanted:
            contacts = telling(bundle.id, progress)
            try:
                if not ids and (why := why_it_stays(bundle, world.store)):
                    output.note(f"{bundle.id} stays as it is: {why}")
                    continue
                updated = update_bundle(
                    bundle,
                    world.store,
                    source=source,
                    progress=progress,
                    command=this_command(),
                    fetchers=openers(network, contacts),
                )
            except TokforgeError as error:
                failed = Failed(bundle.id, world.store.status(bundle.id).state, error)
                outcomes.append(Outcome(failed, contacts.hosts))
                continue
            outcomes.append(Outcome(updated.pulled, contacts.hosts))
            if updated.changed:
                output.note(
                    f"{bundle.id} was at {updated.before}; that stays until: "
                    "tokforge prune --unused"
                )
    conclude(outcomes, json)


def prune(
    partials: Annotated[
        bool, typer.Option("--partials", help="Downloads that did not end.")
    ] = False,
    unused: Annotated[
        bool, typer.Option("--unused", help="Revisions that are not the one in use.")
    ] = False,
    older_than: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="DAYS", help="Only what did not change for so many days."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would go; remove nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Remove what nobody needs; without an option, show what that would be."""
    from tokforge_models.cli.pulling import end_with
    from tokforge_models.cli.world import this_command
    from tokforge_models.store.store import Store
    from tokforge_models.upkeep.pruning import (
        DAY_SECONDS,
        Kind,
        Swept,
        find_litter,
        stale_keys,
        sweep,
    )
    from tokforge_models.upkeep.removal import bytes_on_disk

    asked = partials or unused or older_than is not None
    both = not (partials or unused)
    kinds = [
        kind for kind, wanted in ((Kind.PARTIAL, partials), (Kind.UNUSED, unused)) if wanted or both
    ]
    store = Store()
    seconds = (older_than or 0.0) * DAY_SECONDS
    litter = find_litter(store, kinds, older_than_seconds=seconds)
    removes = asked and not dry_run
    swept = sweep(store, litter, command=this_command()) if removes else Swept(litter, ())
    errors: list[TokforgeError] = [error for _, error in swept.kept]
    # After the sweep: what it removed has no more contents.
    keys = stale_keys(store, older_than_seconds=seconds) if Kind.UNUSED in kinds else ()
    of_keys = sum(map(bytes_on_disk, keys))
    if removes:
        for path in keys:
            try:
                store.disk.remove(path)
            except StorageError as error:
                errors.append(error)
    freed = output.size(sum(one.bytes for one in swept.removed) + of_keys)
    if json:
        output.several(
            {
                "removed": removes,
                "litter": [asdict(one) for one in swept.removed],
                "stale": {"files": len(keys), "bytes": of_keys},
                "kept": [
                    {"id": one.id, "revision": one.revision, "error": output.failure(error)}
                    for one, error in swept.kept
                ],
            },
            errors,
        )
    else:
        for one in swept.removed:
            output.line(f"{one.id} {one.revision}: {one.kind}, {output.size(one.bytes)}")
        if keys:
            output.line(f"{len(keys)} files about bundles that are gone, {output.size(of_keys)}")
        for failed in errors:
            output.error(failed.kind, failed.message, failed.hint, as_json=False)
        options = "--partials, --unused, --older-than DAYS"
        output.line(f"{freed} freed" if removes else f"{freed} could go: {options}")
    end_with(errors)
