"""A bench as a picture: speed against d for each workload, and acceptance by place.

Needs matplotlib, the extra ``[plot]``. The colours can be read on white and on black; the ground is
left out of the picture.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokforge_models.errors import Refused, UsageError
from tokforge_models.measuring.plan import AUTO, LOOKUP, PLAIN
from tokforge_models.measuring.report import PairReport, Report

GREY = "#808080"
COLOURS = ("#d55e00", "#0090d0", "#00a070", "#c060a0", "#b09000", "#7070d0", "#909090")
STYLE: Any = {
    # The same bytes for the same bench, with text that is text.
    "svg.hashsalt": "tokforge",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.titlecolor": GREY,
    "text.color": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
}
_SUFFIXES = (".png", ".svg")


def check_plot(path: Path) -> None:
    """Know before a long run that its picture can be drawn.

    Raises:
        UsageError: the name does not end as a picture's.
        Refused: matplotlib is not installed.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(
            "--plot takes the name of a picture", expected=" or ".join(_SUFFIXES), got=path.name
        )
    if importlib.util.find_spec("matplotlib") is None:
        raise Refused(
            "a plot needs matplotlib, which is not installed",
            hint="pip install 'tokforge-models[plot]'",
        )


def draw(report: Report, path: Path) -> None:
    """Write the picture of a bench: a row of two plots for each pair.

    Raises:
        OSError: the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    pairs = [pair for pair in report.pairs if pair.rows]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.0, 4.0 * max(len(pairs), 1)), layout="constrained")
        grid = figure.subplots(max(len(pairs), 1), 2, squeeze=False)
        for (left, right), pair in zip(grid, pairs, strict=False):
            who = f"{report.target.id} with {pair.draft.id if pair.draft else 'no draft'}"
            _speeds(left, pair, who)
            _acceptance(right, pair, who)
        save(figure, path)


def save(figure: Any, path: Path) -> None:
    """Write a figure, the same bytes for the same figure.

    Raises:
        OSError: the file cannot be written.
    """
    # A date would make another file of it.
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
    figure.savefig(path, transparent=True, dpi=150, metadata=metadata)


def _speeds(axes: Any, pair: PairReport, title: str) -> None:
    for colour, workload in zip(COLOURS, pair.workloads, strict=False):
        rows = {row.way: row.ratio for row in pair.rows if row.workload == workload}
        fixed = {way.d: ratio for way, ratio in rows.items() if isinstance(way.d, int) and ratio}
        axes.plot(*_line(fixed), color=colour, marker=".", label=workload)
        if auto := rows.get(AUTO) or rows.get(LOOKUP):
            axes.axhline(auto, color=colour, linewidth=1.0, linestyle="--")
    axes.plot([], [], color=GREY, linestyle="--", label="auto")
    axes.axhline(1.0, color=GREY, linewidth=1.0, linestyle=":", label=PLAIN.name)
    axes.set_xlabel("d, tokens guessed a round")
    axes.set_ylabel("times the speed of plain decoding")
    finish(axes, title)


def _acceptance(axes: Any, pair: PairReport, title: str) -> None:
    lengths = [way.d for way in pair.ways if isinstance(way.d, int)]
    for colour, workload in zip(COLOURS, pair.workloads, strict=False):
        for row in pair.rows:
            if row.workload != workload or row.way.d != max(lengths, default=0) or not row.drafted:
                continue
            shares = {
                place: kept / tried
                for place, (kept, tried) in enumerate(
                    zip(row.accepted, row.drafted, strict=True), start=1
                )
                if tried
            }
            axes.plot(*_line(shares), color=colour, marker=".", label=workload)
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("place in the draft")
    axes.set_ylabel(f"share accepted, at d {max(lengths, default=0)}")
    finish(axes, title)


def _line(values: dict[int, float]) -> tuple[Sequence[int], Sequence[float]]:
    places = sorted(values)
    return places, [values[place] for place in places]


def finish(axes: Any, title: str) -> None:
    """Title, whole numbers on the lower axis, legend if there is one, and no frame."""
    axes.set_title(title, fontsize=9)
    axes.xaxis.get_major_locator().set_params(integer=True)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
