"""Auto where the draft is worth nothing: what it costs beside plain decoding.

    python benchmarks/engine_worthless.py --bundles build/bench --draft noise|dear

`noise` is a cheap draft with random weights, never right; `dear` is the target itself, always right
and no cheaper. Warm is a text of 1,000 tokens after one of 256; cold is each of the five first
answers to data/workloads.json, 128 tokens, with nothing learned. Texts and prices as in
engine_auto.py.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from engine_auto import clock, texts_of
from harness.models import quiet
from harness.pairs import Pair, Way, in_turn
from harness.pricing import Prices
from harness.texts import ids_of, write

from tokforge_engine.sampling import Sampling

DRAFTS = {"noise": "smollm2-noise", "dear": "smollm2-8bit"}


def main() -> None:
    """Measure one draft and print two lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundles", type=Path, required=True)
    parser.add_argument("--draft", choices=DRAFTS, required=True)
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    quiet()

    draft = asked.bundles / DRAFTS[asked.draft]
    pair = Pair.load(asked.bundles / "smollm2-8bit", draft, asked.threads)
    dice = random.Random(1)
    plain = Way("plain", pair.fixed(None, 0))
    sampling = Sampling(temperature=0.7, top_p=0.95, seed=9)
    prompt = ids_of(pair.target, "Tell me everything that you know about the oceans.")
    warm = Way("auto", pair.auto())
    pair.run(write(pair.target, prompt, 256, sampling), 0, warm.policy)
    long = in_turn(
        pair, [plain, warm], [write(pair.target, prompt, asked.tokens, sampling)], dice.shuffle
    )
    short = [
        in_turn(pair, [plain, Way("auto", pair.auto())], texts, dice.shuffle)
        for texts in texts_of(pair, 1, 128).values()
    ]
    for name, parts in ((f"warm, {asked.tokens} tokens", [long]), ("cold, 5 x 128 tokens", short)):
        runs = {way: [run for part in parts for run in part[way]] for way in ("plain", "auto")}
        prices = Prices(run for each in runs.values() for run in each)
        print(prices)
        priced = prices.total(runs["plain"]) / prices.total(runs["auto"])
        raw = clock(runs["plain"]) / clock(runs["auto"])
        outside = (sum(run.outside for run in runs[way]) / clock(runs[way]) for way in runs)
        drafts = sum(each.role == "draft" for run in runs["auto"] for each in run.forwards)
        print(
            f"{asked.draft}, {name}: auto of plain {priced:.3f} priced, {raw:.3f} by the clock; "
            f"{drafts} forwards of the draft; outside forwards, plain and auto: "
            + ", ".join(f"{share:.1%}" for share in outside)
        )


if __name__ == "__main__":
    main()
