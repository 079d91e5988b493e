"""`tokforge pull`: bundles from their sources into the store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokforge_models.bundle import Bundle, State
from tokforge_models.cli import output
from tokforge_models.cli.option_groups import Fetching, takes_groups
from tokforge_models.cli.options import Json, Layers
from tokforge_models.errors import TokforgeError, UsageError
from tokforge_models.progress import Event, Phase, Progress
from tokforge_models.sources.network import Contacts

if TYPE_CHECKING:
    from tokforge_models.cli.world import World
    from tokforge_models.pulling.plan import Plan
    from tokforge_models.pulling.pull import Pulled


@dataclass(frozen=True, slots=True)
class Failed:
    """A bundle that did not become ready."""

    id: str
    state: State
    error: TokforgeError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one bundle, and every host that was contacted for it."""

    result: Pulled | Failed
    hosts: tuple[str, ...] = ()


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the root command."""
    app.command()(takes_groups(pull))


def pull(
    layers: Layers,
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ID",
            help="Bundle ids or aliases.",
            default_factory=list,
            show_default=False,
        ),
    ],
    for_target: Annotated[
        list[str],
        typer.Option(
            "--for",
            metavar="TARGET",
            help="Bring this target and the draft that it resolves to.",
            default_factory=list,
            show_default=False,
        ),
    ],
    fetching: Fetching,
    source: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="Use this kind of source, or path:DIR, and no other."),
    ] = None,
    all_files: Annotated[
        bool, typer.Option("--all-files", help="Bring the reference files, too.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done; change nothing.")
    ] = False,
    locked: Annotated[
        bool, typer.Option("--locked", help="Exactly what tokforge.lock in this folder says.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring bundles into the store; every file is checked before it gets its name."""
    from tokforge_models.cli.progress import bar
    from tokforge_models.cli.world import World, this_command
    from tokforge_models.pulling.pull import preview
    from tokforge_models.pulling.pull import pull as pull_bundle
    from tokforge_models.sources.source import openers

    world = World.open(layers)
    wanted = _locked(world, ids) if locked else _wanted(world, ids, for_target)
    network = fetching.network()
    outcomes: list[Outcome] = []
    plans: list[Plan | Failed] = []
    with bar() as progress:
        for bundle in wanted:
            contacts = telling(bundle.id, progress)
            fetchers = openers(network, contacts)
            result: Pulled | Failed
            try:
                if dry_run:
                    plan = preview(
                        bundle,
                        world.store,
                        source=source,
                        all_files=all_files,
                        progress=progress,
                        fetchers=fetchers,
                    )
                    plans.append(plan)
                    continue
                result = pull_bundle(
                    bundle,
                    world.store,
                    source=source,
                    all_files=all_files,
                    progress=progress,
                    command=this_command(),
                    fetchers=fetchers,
                )
            except TokforgeError as error:
                result = Failed(bundle.id, world.store.status(bundle.id).state, error)
                plans.append(result)
            outcomes.append(Outcome(result, contacts.hosts))
    if dry_run:
        _print_plans(plans, json)
        end_with(errors_of(plans))
    else:
        conclude(outcomes, json)


def telling(id: str, progress: Progress) -> Contacts:
    """Contacts that are told to people as they are made."""
    return Contacts(lambda host: progress(Event(id, Phase.NOTE, note=f"contacting {host}")))


def conclude(outcomes: list[Outcome], json: bool) -> None:
    """Print what came of each bundle, and end with the exit code of the first that failed.

    Raises:
        typer.Exit: something failed.
    """
    print_pulled(outcomes, json)
    end_with(errors_of(outcome.result for outcome in outcomes))


def errors_of(results: Iterable[object]) -> list[TokforgeError]:
    """The errors of those that failed."""
    return [one.error for one in results if isinstance(one, Failed)]


def end_with(errors: list[TokforgeError]) -> None:
    """End a command that has printed all that it did.

    Raises:
        typer.Exit: there are errors; with the code of the first.
    """
    if errors:
        raise typer.Exit(errors[0].exit_code)


def print_failed(failed: Failed) -> None:
    """Print for people that a bundle failed, between those that did not."""
    output.error(failed.error.kind, failed.error.message, failed.error.hint, as_json=False)


def _locked(world: World, ids: list[str]) -> list[Bundle]:
    from tokforge_models.upkeep.lockfile import NAME, as_locked, read_lock

    frozen = read_lock(Path.cwd() / NAME)
    chosen = [world.find(id) for id in ids or frozen]
    if missing := [bundle.id for bundle in chosen if bundle.id not in frozen]:
        raise UsageError(
            f"{NAME} does not say what {', '.join(missing)} must be", hint="tokforge lock"
        )
    return [as_locked(bundle, frozen[bundle.id]) for bundle in chosen]


def _wanted(world: World, ids: list[str], for_target: list[str]) -> list[Bundle]:
    wanted = [world.find(id) for id in ids]
    for name in for_target:
        resolution = world.resolve(name).resolution
        wanted.append(resolution.target)
        if resolution.draft:
            wanted.append(resolution.draft)
        else:
            output.note(f"{resolution.target.id} runs without a draft: {resolution.reason}")
    if not wanted:
        raise UsageError("nothing to pull", expected="ID... or --for TARGET", hint="tokforge ls")
    return list({bundle.id: bundle for bundle in wanted}.values())


def _print_plans(plans: list[Plan | Failed], json: bool) -> None:
    if json:
        output.several({"bundles": [_planned(plan) for plan in plans]}, errors_of(plans))
        return
    for plan in plans:
        if isinstance(plan, Failed):
            print_failed(plan)
            continue
        output.line(
            f"{plan.id} from {plan.source}: {output.size(plan.missing_bytes)} to fetch, "
            f"{output.size(plan.disk_bytes)} of disk"
        )
        for action in plan.actions:
            output.line(f"  {action.verb:7} {action.wanted.path}: {action.reason}")


def _planned(plan: Plan | Failed) -> dict[str, Any]:
    if isinstance(plan, Failed):
        return {"id": plan.id, "state": plan.state, "error": output.failure(plan.error)}
    return {
        "id": plan.id,
        "source": plan.source,
        "revision": plan.revision,
        "missing_bytes": plan.missing_bytes,
        "disk_bytes": plan.disk_bytes,
        "files": [
            {
                "path": action.wanted.path,
                "action": action.verb,
                "missing_bytes": action.missing_bytes,
                "reason": action.reason,
            }
            for action in plan.actions
        ],
    }


def print_pulled(outcomes: list[Outcome], json: bool) -> None:
    """Print what came of each bundle."""
    if json:
        bundles = [_document(outcome) for outcome in outcomes]
        output.several({"bundles": bundles}, errors_of(outcome.result for outcome in outcomes))
        return
    for outcome in outcomes:
        one = outcome.result
        if isinstance(one, Failed):
            print_failed(one)
        else:
            output.line(
                f"{one.id} is ready: {output.size(one.bytes_fetched)} fetched, "
                f"{output.size(one.bytes_reused)} reused, {one.seconds:.1f} s, in {one.path}"
            )


def _document(outcome: Outcome) -> dict[str, Any]:
    one = outcome.result
    if not isinstance(one, Failed):
        return {**asdict(one), "hosts": list(outcome.hosts)}
    error = output.failure(one.error)
    return {"id": one.id, "state": one.state, "error": error, "hosts": list(outcome.hosts)}
