"""A target of the 4B shape with a draft of the 0.6B shape, acceptance replayed.

    python benchmarks/engine_shapes.py --bundles build/bench

The weights are random (tools/make_bench_bundles.py), so the guesses are scripted: the draft's
forward is run, its token is right with the given chance in each place, and it is as sure as that.
What is possible is the best fixed length: on this very script, at this run's prices; and by the
cost model, for guesses that are right as often as the script's and texts that end where these do.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from engine_auto import LENGTHS, clock
from harness.models import quiet
from harness.pairs import Pair, Way, in_turn
from harness.pricing import Prices
from harness.scripted import steady
from harness.texts import ids_of, write

from tokforge_engine.sampling import Sampling


def expected(prices: Prices, chance: float, most: int, tokens: int) -> float:
    """Seconds that the cost model expects for so many tokens after the first.

    Args:
        prices: of forwards.
        chance: of each guess to be right.
        most: draft length, but where the text ends sooner.
        tokens: of the text.
    """
    seconds = [0.0]
    for left in range(1, tokens + 1):
        d = min(most, left - 1)
        spent = prices.verify[d + 1]
        if d:
            # After full acceptance the draft reads two tokens.
            late = prices.draft(2) - prices.draft(1)
            spent += d * prices.draft(1) + chance**d * late
        wrong_after = (chance**kept * (1 - chance) * seconds[left - kept - 1] for kept in range(d))
        seconds.append(spent + sum(wrong_after) + chance**d * seconds[left - d - 1])
    return seconds[tokens]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundles", type=Path, required=True)
    parser.add_argument("--target", default="qwen3-4b-shape")
    parser.add_argument("--draft", default="qwen3-0.6b-shape")
    parser.add_argument("--chance", type=float, default=0.9)
    parser.add_argument("--texts", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=48, help="of each text")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    quiet()

    pair = Pair.load(
        asked.bundles / asked.target,
        asked.bundles / asked.draft,
        asked.threads,
        steady(asked.chance),
    )
    prompt = ids_of(pair.target, "Tell me of the sea.")
    texts = [
        write(pair.target, [*prompt, number], asked.tokens, Sampling())
        for number in range(asked.texts)
    ]
    ways = [Way(f"d = {d}", pair.fixed(pair.draft, d)) for d in (0, *LENGTHS)]
    auto = Way("auto", pair.auto())
    runs = in_turn(pair, [*ways, auto], texts, random.Random(1).shuffle)
    prices = Prices(run for part in runs.values() for run in part)
    priced = {name: prices.total(part) for name, part in runs.items()}
    single = runs["d = 1"]
    share = sum(run.accepted for run in single) / sum(run.drafted for run in single)
    model = {d: expected(prices, share, d, asked.tokens - 1) for d in (0, *LENGTHS)}
    reading = prices.draft(len(prompt) + 1)

    print(f"{asked.target} with {asked.draft}, guesses right in {share:.2f} of places (scripted)")
    print(prices)
    print("          of plain: priced   clock     model  outside")
    for name, part in runs.items():
        by_model = f"{model[0] / model[int(name[-1])]:.2f}" if name != "auto" else ""
        print(
            f"{name:10} {priced['d = 0'] / priced[name]:15.2f} "
            f"{clock(runs['d = 0']) / clock(part):7.2f} {by_model:>9} "
            f"{sum(run.outside for run in part) / clock(part):8.1%}"
        )
    best = min(way for name, way in priced.items() if name != "auto")
    possible = asked.texts * (reading + min(model.values()))
    print(f"auto: {best / priced['auto']:.3f} of the best fixed length on this script,")
    print(f"      {possible / priced['auto']:.3f} of what the cost model says is possible, priced")


if __name__ == "__main__":
    main()
