"""`tokforge ls|show|verify|import|export|rm`: the bundles on this machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokforge_models.bundle import Bundle, FileRole, Role, State
from tokforge_models.cli import output
from tokforge_models.cli.options import Ids, Json, Layers, OptionalIds
from tokforge_models.errors import IntegrityError, TokforgeError

if TYPE_CHECKING:
    from tokforge_models.cli.world import World
    from tokforge_models.store.store import BundleStatus
    from tokforge_models.upkeep.integrity import BundleReport


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the root command."""
    app.command("ls")(list_bundles)
    app.command()(show)
    app.command()(verify)
    app.command("import")(import_)
    app.command()(export)
    app.command("rm")(remove)


def list_bundles(layers: Layers, json: Json = False) -> None:
    """List all bundles with role, size and state."""
    from tokforge_models.cli.world import World

    world = World.open(layers)
    here = {status.id: status for status in world.store.statuses()}
    ids = [*world.registry.bundles, *(id for id in here if id not in world.registry.bundles)]
    rows = [_listed(world, here.get(id) or world.store.status(id)) for id in ids]
    if json:
        output.document(rows)
        return
    output.table(
        ("ID", "ROLE", "STATE", "SIZE", "PARTIAL"),
        [
            (
                row["id"],
                row["role"],
                row["state"],
                output.size(row["bytes"]),
                output.size(row["partial_bytes"]) if row["partial_bytes"] else "",
            )
            for row in rows
        ],
    )


def _listed(world: World, status: BundleStatus) -> dict[str, Any]:
    bundle = world.registry.bundles.get(status.id)
    role = bundle.role if bundle else status.role or Role.CHAT
    size = status.bytes if status.state in {State.READY, State.DAMAGED} else None
    return {
        "id": status.id,
        "role": role,
        "state": status.state,
        "bytes": size if size is not None else _published_bytes(bundle),
        "partial_bytes": status.partial_bytes,
        "path": status.path if status.state is not State.ABSENT else None,
    }


def _published_bytes(bundle: Bundle | None) -> int | None:
    """What a download would weigh, where that is known or about known."""
    sizes = [
        file.size if file.size is not None else file.about_bytes
        for file in (bundle.files if bundle else ())
        if file.role is FileRole.REQUIRED
    ]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="Bundle id or alias.")],
    layers: Layers,
    json: Json = False,
) -> None:
    """Show one bundle in full: the registry's entry and what is on disk."""
    from tokforge_models.cli.world import World

    world = World.open(layers)
    bundle = world.find(id)
    status = world.store.status(bundle.id)
    shown = {
        **_listed(world, status),
        **asdict(bundle),
        "sources": [str(source) for source in bundle.sources],
        "installed_revision": status.revision,
        "problems": list(status.problems),
    }
    if json:
        output.document(shown)
        return
    if rests_on := world.registry.statements.get(bundle.pins_from or ""):
        said = (rests_on.title, rests_on.where, rests_on.date)
        shown["pins_from"] = "; ".join(part for part in said if part)
    for key, value in shown.items():
        if key != "files" and value not in (None, "", (), [], {}):
            output.line(f"{key:18} {_words(value)}")
    for file in bundle.files:
        size = output.size(file.size if file.size is not None else file.about_bytes)
        digest = file.sha256 or "not published: pinned at the first download"
        output.line(f"  {file.role:9} {file.path:24} {size:>9}  {digest}")


def _words(value: object) -> str:
    if isinstance(value, dict):
        known = (f"{key} {_words(item)}" for key, item in value.items() if item is not None)
        return ", ".join(known)
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    return str(value)


def verify(
    layers: Layers,
    ids: OptionalIds,
    full: Annotated[
        bool, typer.Option("--full", help="Hash every file, whatever its stamp says.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Fetch damaged segments again, then check.")
    ] = False,
    json: Json = False,
) -> None:
    """Check installed bundles against their pins."""
    from tokforge_models.cli.progress import bar
    from tokforge_models.cli.world import World
    from tokforge_models.upkeep.integrity import verify as verify_bundles

    world = World.open(layers)
    asked = [world.find(id).id for id in ids] or None
    with bar() as progress:
        reports = verify_bundles(
            world.store,
            asked,
            bundles=world.registry.bundles,
            full=full,
            repair=repair,
            progress=progress,
        )
    ok = all(report.ok for report in reports)
    if json:
        output.document({"ok": ok, "bundles": [asdict(report) for report in reports]})
    elif not reports:
        output.line("nothing is installed")
    else:
        for report in reports:
            _print_report(report)
    if not ok:
        raise typer.Exit(IntegrityError.exit_code)


def _print_report(report: BundleReport) -> None:
    verdict = "ok" if report.ok else str(report.state)
    output.line(f"{report.id}: {verdict}, {len(report.files)} files")
    for file in report.files:
        if not file.ok:
            output.line(
                f"  {file.path}: expected {file.expected or 'the file'}, "
                f"got {file.actual or 'nothing that can be read'}"
            )
    for problem in report.problems:
        output.line(f"  {problem}")
    if report.extra:
        output.line(f"  not part of it, harmless: {', '.join(report.extra)}")
    if not report.ok:
        mend = (
            "tokforge pull"
            if report.state in {State.ABSENT, State.PARTIAL}
            else ("tokforge verify --repair")
        )
        output.line(f"  try: {mend} {report.id}")


def import_(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that MNN can load.")],
    id: Annotated[str, typer.Option("--as", metavar="ID", help="The id that it shall have.")],
    layers: Layers,
    role: Annotated[
        Role | None, typer.Option(help="What it is for, where the registry does not know the id.")
    ] = None,
    json: Json = False,
) -> None:
    """Take a local folder into the store: copied, hashed, and checked to be whole."""
    from tokforge_models.cli.progress import bar
    from tokforge_models.cli.pulling import Outcome, print_pulled
    from tokforge_models.cli.world import World, this_command
    from tokforge_models.errors import UnknownBundle
    from tokforge_models.upkeep.importing import import_bundle

    world = World.open(layers)
    bundle: Bundle | None
    try:
        bundle = world.registry.find(id)
    except UnknownBundle:
        bundle = None
    with bar() as progress:
        imported = import_bundle(
            world.store,
            directory,
            bundle.id if bundle else id,
            bundle=bundle,
            role=role,
            progress=progress,
            command=this_command(),
        )
    print_pulled([Outcome(imported)], json)


def export(
    id: Annotated[str, typer.Argument(metavar="ID", help="Bundle id or alias.")],
    dest: Annotated[Path, typer.Argument(metavar="DEST", help="A folder to make or to complete.")],
    layers: Layers,
    json: Json = False,
) -> None:
    """Copy a bundle's required files into a flat folder, hashing them again on the way."""
    from tokforge_models.cli.progress import bar
    from tokforge_models.cli.world import World, this_command
    from tokforge_models.upkeep.exporting import export_bundle

    world = World.open(layers)
    bundle = world.find(id)
    with bar() as progress:
        exported = export_bundle(
            world.store,
            bundle.id,
            dest,
            bundle=bundle,
            progress=progress,
            command=this_command(),
        )
    if json:
        output.document(asdict(exported))
    else:
        output.line(f"{bundle.id}: {len(exported.files)} files in {exported.path}")


def remove(ids: Ids, layers: Layers, json: Json = False) -> None:
    """Remove bundles from the store; refused while a running command uses one."""
    from tokforge_models.cli.pulling import Failed, end_with, errors_of, print_failed
    from tokforge_models.cli.world import World, this_command
    from tokforge_models.upkeep.removal import Removed
    from tokforge_models.upkeep.removal import remove as remove_bundle

    world = World.open(layers)
    outcomes: list[Removed | Failed] = []
    for id in [world.find(id).id for id in ids]:
        try:
            outcomes.append(remove_bundle(world.store, id, command=this_command()))
        except TokforgeError as error:
            outcomes.append(Failed(id, world.store.status(id).state, error))
    if json:
        bundles = [
            {"id": one.id, "state": one.state, "error": output.failure(one.error)}
            if isinstance(one, Failed)
            else asdict(one)
            for one in outcomes
        ]
        output.several({"bundles": bundles}, errors_of(outcomes))
    else:
        for one in outcomes:
            if isinstance(one, Failed):
                print_failed(one)
            else:
                output.line(f"{one.id} is removed, {output.size(one.bytes_freed)} freed")
    end_with(errors_of(outcomes))
