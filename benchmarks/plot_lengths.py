"""Draw what `engine_auto.py --save` measured: speed against d, and what auto chose.

    python benchmarks/plot_lengths.py FIGURES.json docs/speed-by-length.svg --title "..."

Needs matplotlib (tools/requirements-bench.txt). The colours are readable on white and on black, and
the ground is left out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

GREY = "#808080"
COLOURS = ("#d55e00", "#0090d0", "#00a070", "#c060a0", "#b09000")


def main() -> None:
    """Read figures and write a plot."""
    parser = argparse.ArgumentParser()
    parser.add_argument("figures", type=Path)
    parser.add_argument("plot", type=Path)
    parser.add_argument("--title", required=True)
    asked = parser.parse_args()
    figures = json.loads(asked.figures.read_text(encoding="utf-8"))

    mpl.rcParams.update(
        {
            # The same file each time, with text that is text.
            "svg.hashsalt": "tokforge",
            "svg.fonttype": "none",
            "font.size": 10,
            "axes.edgecolor": GREY,
            "axes.labelcolor": GREY,
            "text.color": GREY,
            "xtick.color": GREY,
            "ytick.color": GREY,
        }
    )
    figure, axes = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
    for colour, (name, measured) in zip(COLOURS, figures.items(), strict=False):
        speed: dict[str, float] = measured["speed"]
        lengths = {
            int(way.rpartition(" ")[2]): value for way, value in speed.items() if way[-1].isdigit()
        }
        lengths[0] = speed["plain"]
        places = sorted(lengths)
        axes.plot(places, [lengths[d] for d in places], color=colour, label=name, marker=".")
        axes.plot(measured["mean length"], speed["auto"], color=colour, marker="*", markersize=14)
    axes.plot([], [], color=GREY, marker="*", markersize=11, linestyle="", label="auto")
    axes.axhline(1.0, color=GREY, linewidth=0.7, linestyle=":")
    axes.set_xlabel("d; of auto: its mean")
    axes.set_ylabel("speed of plain decoding, priced")
    axes.set_title(asked.title, fontsize=10)
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(asked.plot, transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
