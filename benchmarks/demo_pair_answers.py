"""The embedded pair on whole answers: paired against plain, on questions kept from training.

    python benchmarks/demo_pair_answers.py [--threads N] [--rounds N] [--questions N]

Each round asks every question in every way, in turn; an answer ends where the model ends it. The
figure of a way is its tokens over its decoding seconds, median of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Literal

import tokforge_models
from tokforge_engine import GenerateOptions, ModelSpec, Result, RuntimeSettings, Session

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from demo_pair.subject import PAIRS, questions

Way = tuple[int | Literal["auto"], Literal["any", "model", "lookup"]]
WAYS: tuple[Way, ...] = (
    (0, "any"),
    (1, "model"),
    (2, "model"),
    (3, "model"),
    (4, "model"),
    ("auto", "model"),
    ("auto", "any"),
)


def ask(session: Session, question: str, way: Way) -> Result:
    """Return one whole answer's result."""
    generation = session.generate(
        question, GenerateOptions(max_tokens=160, d=way[0], drafter=way[1])
    )
    for _ in generation:
        pass
    return generation.result


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--questions", type=int, default=20)
    asked = parser.parse_args()
    held_out = [q for q in questions(PAIRS) if q.held_out]
    spread = held_out[:: max(1, len(held_out) // asked.questions)][: asked.questions]
    chosen = [q.wordings[index % len(q.wordings)] for index, q in enumerate(spread)]

    embedded = Path(tokforge_models.__file__).parent / "embedded"
    settings = RuntimeSettings(threads=asked.threads)
    target, draft = (ModelSpec(embedded / name, settings) for name in ("demo-chat", "demo-draft"))
    speeds: dict[Way, list[float]] = defaultdict(list)
    counts: dict[Way, tuple[int, int]] = {}
    with Session(target, draft, lookup=True) as session:
        ask(session, chosen[0], ("auto", "any"))
        for _ in range(asked.rounds):
            for way in WAYS:
                stats = [ask(session, question, way).stats for question in chosen]
                seconds = sum(one.decode_seconds for one in stats)
                speeds[way].append(sum(one.emitted for one in stats) / seconds)
                counts[way] = sum(one.drafted for one in stats), sum(one.accepted for one in stats)
    plain = statistics.median(speeds[WAYS[0]])
    print(f"{'':14} {'tokens/s':>9} {'of plain':>9} {'accepted':>9}")
    for way, all_speeds in speeds.items():
        speed = statistics.median(all_speeds)
        drafted, accepted = counts[way]
        kept = f"{accepted / drafted:9.2f}" if drafted else ""
        name = f"d = {way[0]}, {way[1]}" if way[0] else "plain"
        print(f"{name:14} {speed:9.0f} {speed / plain:9.2f} {kept}")


if __name__ == "__main__":
    main()
