"""A tune as a picture: what the cost model expected of each length, and what was measured.

Needs matplotlib, the extra ``[plot]``, as `tokforge_models.measuring.plot`.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from tokforge_models.bundle import Settings
from tokforge_models.measuring.expecting import Expectations
from tokforge_models.measuring.plan import PLAIN, Way
from tokforge_models.measuring.plot import COLOURS, GREY, STYLE, finish, save
from tokforge_models.measuring.standing import Standings
from tokforge_models.measuring.trials import (
    LENGTHS,
    Candidate,
    Setup,
    changed,
    describe,
    format_of,
)
from tokforge_models.measuring.tuned import Tuned

_SHOWN = 12


def draw(tuned: Tuned, path: Path) -> None:
    """Write the picture of a tune.

    Raises:
        OSError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.0, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        _expected(left, tuned)
        _measured(right, tuned)
        save(figure, path)


def _expected(axes: Any, tuned: Tuned) -> None:
    """Speed against d as lines for each thread count, and dots where it was measured."""
    shipped = tuned.question.shipped
    expectations = Expectations(tuned.question, tuned.known)
    standings = Standings(tuned.question, tuned.known)
    chosen = tuned.verdict.chosen.candidate.setup.target if tuned.verdict.chosen else shipped.target
    formats = [each for each in expectations.targets() if format_of(each) == format_of(chosen)]
    drafts: tuple[Settings | None, ...] = expectations.drafts() or (None,)
    setups = [Setup(target, draft) for target in formats for draft in drafts]
    for colour, setup in zip(COLOURS, setups, strict=False):
        lengths = (0, *LENGTHS) if setup.draft else (0,)
        candidates = {d: _fixed(setup, d) for d in lengths}
        speeds = {
            d: speed
            for d, candidate in candidates.items()
            if (speed := expectations.speed(candidate))
        }
        label = ", ".join(changed(setup.target, shipped.target)) or "as shipped"
        if setup.draft and shipped.draft and (other := changed(setup.draft, shipped.draft)):
            label += ", draft " + ", ".join(other)
        axes.plot(list(speeds), list(speeds.values()), color=colour, linewidth=1.0, label=label)
        seen = {
            d: standing.speed
            for d, candidate in candidates.items()
            if (standing := standings.of(candidate))
        }
        axes.plot(list(seen), list(seen.values()), color=colour, marker="o", linestyle="")
    axes.plot([], [], color=GREY, marker="o", linestyle="", label="measured")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("d, tokens guessed a round")
    axes.set_ylabel("tokens a second, expected")
    finish(axes, f"{tuned.target} with {tuned.draft or 'no draft'}")


def _measured(axes: Any, tuned: Tuned) -> None:
    """Every repetition beside the pair as shipped, and the medians."""
    standings = Standings(tuned.question, tuned.known)
    shown = tuned.verdict.standings[:_SHOWN][::-1]
    for place, standing in enumerate(shown):
        ratios = standings.ratios(standing.candidate, tuned.question.base)
        colour = COLOURS[0] if standing == tuned.verdict.chosen else GREY
        axes.plot(ratios, [place] * len(ratios), color=colour, marker=".", linestyle="", alpha=0.5)
        axes.plot([statistics.median(ratios)], [place], color=colour, marker="|", markersize=14)
    axes.axvline(1.0, color=GREY, linewidth=1.0, linestyle=":")
    axes.set_yticks(
        range(len(shown)), [describe(each.candidate, tuned.question.shipped) for each in shown]
    )
    axes.set_xlabel("times shipped: repetitions, median")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _fixed(setup: Setup, d: int) -> Candidate:
    return Candidate(setup, Way("model", d)) if d else Candidate(Setup(setup.target), PLAIN)
