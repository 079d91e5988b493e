"""`tokforge tune`: find the best settings of a pair for this device, and keep them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokforge_models.cli import output
from tokforge_models.cli.options import Force, Json, Layers, Target
from tokforge_models.errors import UsageError

if TYPE_CHECKING:
    from tokforge_models.measuring.tuned import Tuned

_DURATION = re.compile(r"([0-9]{1,6})(s|m|h)?")
_UNITS = {"s": 1, "m": 60, "h": 3600}
_LEAST_SECONDS, _MOST_SECONDS = 5, 24 * 3600
_NOTHING_CHOSEN, _BROKEN = 7, 8


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the root command."""
    app.command()(tune)


def tune(
    target: Target,
    layers: Layers,
    workloads: Annotated[
        list[str],
        typer.Option(
            "--workload",
            metavar="NAME",
            help="What to decode; may be given again. All but the long prompts, unless given.",
            default_factory=list,
            show_default=False,
        ),
    ],
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="How long it may take, e.g. 90s, 2m or 10m.")
    ] = "2m",
    draft: Annotated[
        str | None,
        typer.Option(
            "--draft",
            metavar="none|lookup|ID",
            help="Tune with this draft; the one that is paired or fits, unless given.",
        ),
    ] = None,
    max_divergence: Annotated[
        float | None,
        typer.Option(
            metavar="NATS",
            min=0.0,
            help="How far a number format may be from the reference (KL divergence a token); "
            "no further than the shipped one, unless given.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget earlier trials of this pair and begin anew.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw what was expected and measured: .png or .svg."),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> int:
    """Find the fastest settings here that are no worse, and keep them for `run` to go by."""
    from tokforge_models.cli.tuning import Wanted, tune_pair
    from tokforge_models.cli.world import World

    wanted = Wanted(
        budget=seconds_in(budget),
        draft=draft,
        limit=max_divergence,
        workloads=tuple(workloads),
        fresh=fresh,
        force=force,
    )
    if plot is not None:
        from tokforge_models.measuring.plot import check_plot

        check_plot(plot)
    world = World.open(layers)
    ended = tune_pair(world, target, wanted)
    if plot is not None:
        from tokforge_models.measuring.tuning_plot import draw

        draw(ended.tuned, plot)
    if json:
        saved = {"saved": list(ended.files), "changes": list(ended.changes)}
        output.document({**_document(ended.tuned), **saved, **_error(stopped=ended.stopped)})
    else:
        _show(ended.tuned)
        for file in ended.files:
            output.line(f"saved    {file}")
        for change in ended.changes or (("nothing",) if ended.files else ()):
            output.line(f"changes  {change}")
    if ended.stopped:
        output.note("the trials are kept: the same command goes on from there")
        raise output.Interrupted
    return _exit_code(ended.tuned)


def seconds_in(text: str) -> float:
    """A duration as a person writes it.

    Raises:
        UsageError: it is none, or too short or long to be meant.

    >>> seconds_in("2m")
    120.0
    """
    found = _DURATION.fullmatch(text.strip())
    seconds = int(found[1]) * _UNITS[found[2] or "s"] if found else 0
    if not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise UsageError(
            "--budget takes a time", expected="5s to 24h, e.g. 90s, 2m or 10m", got=repr(text[:20])
        )
    return float(seconds)


def _exit_code(tuned: Tuned) -> int:
    from tokforge_models.measuring.searching import broken

    if tuned.verdict.chosen is not None:
        return 0
    return _NOTHING_CHOSEN if broken(tuned.question, tuned.known) is None else _BROKEN


def _document(tuned: Tuned) -> dict[str, Any]:
    from tokforge_models.measuring.tuned import as_document

    return as_document(tuned)


def _error(*, stopped: bool) -> dict[str, Any]:
    if not stopped:
        return {}
    message = "stopped; the trials are kept"
    return {"error": {"kind": "interrupted", "message": message, "hint": "the same command again"}}


def _show(tuned: Tuned) -> None:
    from tokforge_models.measuring.tuned import headline, tables

    for line in headline(tuned):
        output.line(line)
    for table in tables(tuned):
        output.line()
        output.line(table.title)
        output.table(table.header, table.rows)
    output.line()
