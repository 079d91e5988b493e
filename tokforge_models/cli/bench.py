"""`tokforge bench`: how fast a target is with each of its drafts, in every way of decoding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokforge_models.cli import output
from tokforge_models.cli.answers import overrides_of
from tokforge_models.cli.option_groups import Running, takes_groups
from tokforge_models.cli.options import Json, Layers
from tokforge_models.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokforge_engine import EngineError
    from tokforge_models.cli.measuring import Outcome
    from tokforge_models.cli.world import World
    from tokforge_models.measuring.keeping import Judged
    from tokforge_models.measuring.tables import Table

_LENGTHS = (1, 2, 3, 4, 5, 6, 7)
_TOKENS, _REPETITIONS = 96, 5
_QUICK_LENGTHS = (2, 4)
_QUICK_TOKENS, _QUICK_REPETITIONS = 48, 3


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the root command."""
    app.command()(takes_groups(bench))


def bench(
    layers: Layers,
    drafts: Annotated[
        list[str],
        typer.Option(
            "--draft",
            metavar="none|lookup|ID",
            help="Measure with this draft; may be given again. All that are installed and fit, "
            "unless given.",
            default_factory=list,
            show_default=False,
        ),
    ],
    lengths: Annotated[
        list[int],
        typer.Option(
            "-d",
            "--draft-length",
            metavar="N",
            min=1,
            max=_LENGTHS[-1],
            help="A draft length to measure; may be given again. 1 to 7, unless given.",
            default_factory=list,
            show_default=False,
        ),
    ],
    workloads: Annotated[
        list[str],
        typer.Option(
            "--workload",
            metavar="NAME",
            help="What to decode; may be given again. All, unless given.",
            default_factory=list,
            show_default=False,
        ),
    ],
    running: Running,
    target: Annotated[
        str | None,
        typer.Argument(metavar="[TARGET]", help="Id, alias, repository, or a bundle's directory."),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", min=2, help=f"Tokens of each answer; {_TOKENS} unless given."),
    ] = None,
    repetitions: Annotated[
        int | None,
        typer.Option(
            "--repetitions", min=1, max=1000, help=f"How often; {_REPETITIONS} unless given."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: fewer lengths, workloads and tokens.")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables as Markdown.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw speed against d, and acceptance: .png or .svg."),
    ] = None,
    read: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Measure nothing: show what --json has written."),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A B", help="Measure nothing: two such files side by side."),
    ] = None,
    save: Annotated[
        bool,
        typer.Option("--save", help="Keep what was found, for `auto` to go by from now on."),
    ] = False,
    json: Json = False,
) -> int:
    """Measure a target: plain, with each draft and length, with lookup, with auto."""
    from tokforge_models.cli.measuring import Asked, Outcome, measure_pairs, pairs_of
    from tokforge_models.cli.world import World
    from tokforge_models.measuring.document import read_report
    from tokforge_models.measuring.workloads import chosen
    from tokforge_models.store.measurements import Measurements

    if sum(given is not None for given in (target, read, compare)) != 1:
        raise UsageError("bench takes one thing", expected="a TARGET, --read FILE or --compare A B")
    if save and target is None:
        raise UsageError("--save keeps what a bench measures", expected="a TARGET beside it")
    if json and as_markdown:
        raise UsageError("one result has one form", expected="--json or --markdown, not both")
    if plot is not None:
        _check_plot(plot, comparing=compare is not None)
    if compare is not None:
        _compare(*compare, json=json, as_markdown=as_markdown)
        return 0
    saved: Saved | None = None
    if target is None:
        assert read is not None
        outcome = Outcome(read_report(read), None)
    else:
        asked = Asked(
            lengths=tuple(sorted(set(lengths))) or (_QUICK_LENGTHS if quick else _LENGTHS),
            workloads=chosen(workloads, quick=quick),
            tokens=max_tokens or (_QUICK_TOKENS if quick else _TOKENS),
            repetitions=repetitions or (_QUICK_REPETITIONS if quick else _REPETITIONS),
            insist=bool(drafts),
            force=running.force,
        )
        world = World.open(layers)
        # All is measured, also what an earlier measurement spoke against.
        overrides = replace(overrides_of(running, "auto", samples=False), lookup=True)
        pairs = pairs_of(world, target, tuple(dict.fromkeys(drafts)), overrides)
        if save:
            Measurements(world.store.home, world.store.disk).prepare()
        outcome = measure_pairs(world, pairs, asked)
        if save:
            saved = _save(world, target, outcome)
    if plot is not None:
        from tokforge_models.measuring.plot import draw

        draw(outcome.report, plot)
    return _tell(outcome, saved, json=json, as_markdown=as_markdown)


@dataclass(frozen=True, slots=True)
class Saved:
    """What was kept.

    Attributes:
        judged: what became of the target alone and of each pair.
        files: where each was kept; None where it was not.
        changes: what the target runs with otherwise from now on.
    """

    judged: tuple[Judged, ...]
    files: tuple[Path | None, ...]
    changes: tuple[str, ...]


def _save(world: World, target: str, outcome: Outcome) -> Saved:
    from tokforge_models.cli.saving import save_profiles
    from tokforge_models.measuring.keeping import judge

    judged = judge(outcome.report)
    profiles = [each.profile for each in judged if each.profile]
    files, changes = save_profiles(world, target, profiles)
    rest = iter(files)
    return Saved(judged, tuple(next(rest) if each.profile else None for each in judged), changes)


def _check_plot(plot: Path, *, comparing: bool) -> None:
    from tokforge_models.measuring.plot import check_plot

    if comparing:
        raise UsageError("--plot draws one bench", expected="a TARGET or --read FILE beside it")
    check_plot(plot)


def _tell(outcome: Outcome, saved: Saved | None, *, json: bool, as_markdown: bool) -> int:
    """Print a bench, what was kept of it, and how it ended if that was early."""
    from tokforge_models.measuring import tables
    from tokforge_models.measuring.document import as_document

    report, stopped = outcome.report, outcome.stopped
    if json:
        output.document({**as_document(report), **_kept(saved), **_error(stopped)})
    else:
        _show(tables.headline(report), tables.tables(report), as_markdown=as_markdown)
        if saved:
            _tell_saved(report.target.id, saved)
    if isinstance(stopped, KeyboardInterrupt):
        raise output.Interrupted
    if stopped is not None:
        output.note(f"tokforge: {stopped.message}")
        return stopped.exit_code
    return 0


def _kept(saved: Saved | None) -> dict[str, Any]:
    if saved is None:
        return {}
    each = zip(saved.judged, saved.files, strict=True)
    return {
        "saved": [{"draft": one.draft, "file": file, "why": one.why} for one, file in each],
        "changes": list(saved.changes),
    }


def _tell_saved(target: str, saved: Saved) -> None:
    output.line()
    for one, file in zip(saved.judged, saved.files, strict=True):
        who = f"{target} with {one.draft}" if one.draft else target
        output.line(f"{'saved' if file else 'not saved'}  {who}: {one.why}")
    for change in saved.changes or ("nothing",):
        output.line(f"changes  {change}")


def _error(stopped: EngineError | KeyboardInterrupt | None) -> dict[str, dict[str, str]]:
    if stopped is None:
        return {}
    if isinstance(stopped, KeyboardInterrupt):
        kind, message, hint = "interrupted", "stopped; this is what was measured", ""
    else:
        kind, message, hint = stopped.kind, stopped.message, stopped.hint
    return {"error": {"kind": kind, "message": message, "hint": hint}}


def _compare(before: Path, after: Path, *, json: bool, as_markdown: bool) -> None:
    from dataclasses import asdict

    from tokforge_models.measuring import tables
    from tokforge_models.measuring.comparing import compare
    from tokforge_models.measuring.document import read_report

    found = compare(read_report(before), read_report(after))
    if json:
        changes = [
            {**asdict(each), "way": each.way.name, "change": each.change} for each in found.changes
        ]
        output.document({**asdict(found), "changes": changes})
    else:
        _show((), (tables.comparison(found),), as_markdown=as_markdown)


def _show(lines: Sequence[str], tables: Sequence[Table], *, as_markdown: bool) -> None:
    from tokforge_models.measuring.tables import markdown

    for line in lines:
        output.line(line)
    for number, table in enumerate(tables):
        if number or lines:
            output.line()
        if as_markdown:
            output.line(markdown(table))
            continue
        output.line(table.title)
        output.table(table.header, table.rows)
        for note in table.notes:
            output.line(f"  {note}")
