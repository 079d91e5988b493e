"""Auto against every fixed length, on five kinds of text, with one drafter or two.

    python benchmarks/engine_auto.py --bundles build/bench --drafter NAME

SmolLM2-135M-Instruct at 8 bits (tools/make_bench_bundles.py) answers the prompts of
data/workloads.json, sampled. The drafters:

    4-bit       the same weights at 4 bits
    few-layers  four of its layers, distilled for some minutes
    good        the forwards of few-layers, the guesses scripted: right in 78 of 100
    lookup      n-grams of the context
    both        few-layers and lookup
    good-both   good and lookup

Every policy decodes the same texts (harness/texts.py), and all are priced (harness/pricing.py);
beside it stands the raw clock. Auto begins with nothing learned and keeps what it learns from text
to text, as a session does. With two drafters, the fixed lengths of each alone are what it is
compared with. `--save FILE` keeps the figures for the plot.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from harness.models import quiet
from harness.pairs import Pair, Way, in_turn
from harness.pricing import Prices, Run
from harness.scripted import GOOD, Quality
from harness.texts import Text, ids_of, write

from tokforge_engine.sampling import Sampling

PROMPTS = Path(__file__).parent / "data" / "workloads.json"
LENGTHS = range(1, 7)


@dataclass(frozen=True, slots=True)
class Drafter:
    """What drafts: a draft's bundle, perhaps with scripted guesses, and lookup or not."""

    bundle: str | None
    lookup: bool
    quality: Quality | None = None


DRAFTERS = {
    "4-bit": Drafter("smollm2-4bit", lookup=False),
    "few-layers": Drafter("smollm2-draft", lookup=False),
    "good": Drafter("smollm2-draft", lookup=False, quality=GOOD),
    "lookup": Drafter(None, lookup=True),
    "both": Drafter("smollm2-draft", lookup=True),
    "good-both": Drafter("smollm2-draft", lookup=True, quality=GOOD),
}


def ways_of(pair: Pair, drafter: Drafter) -> list[Way]:
    """Plain decoding, every fixed length of every drafter, auto with all of them."""
    ways = [Way("plain", pair.fixed(None, 0))]
    if pair.draft is not None:
        ways += [Way(f"model {d}", pair.fixed(pair.draft, d)) for d in LENGTHS]
    if drafter.lookup:
        ways += [Way(f"lookup {d}", pair.fixed(pair.lookup, d)) for d in LENGTHS]
    auto = pair.auto(model=pair.draft is not None, lookup=drafter.lookup)
    return [*ways, Way("auto", auto)]


def texts_of(pair: Pair, per_workload: int, tokens: int) -> dict[str, list[Text]]:
    """Sampled answers, by workload."""
    sampling = Sampling(temperature=0.7, top_p=0.95)
    prompts: dict[str, list[str]] = json.loads(PROMPTS.read_text(encoding="utf-8"))
    texts = {}
    for name, questions in prompts.items():
        texts[name] = [
            write(
                pair.target,
                ids_of(pair.target, question),
                tokens,
                Sampling(temperature=sampling.temperature, top_p=sampling.top_p, seed=seed),
            )
            for seed, question in enumerate(questions[:per_workload])
        ]
    return texts


def clock(runs: list[Run]) -> float:
    """Seconds of runs by the clock."""
    return sum(run.seconds for run in runs)


def main() -> None:
    """Measure one drafter and print its table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundles", type=Path, required=True)
    parser.add_argument("--drafter", choices=DRAFTERS, required=True)
    parser.add_argument("--texts", type=int, default=3, help="of each workload")
    parser.add_argument("--tokens", type=int, default=128, help="of each text")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save", type=Path)
    asked = parser.parse_args()
    quiet()

    drafter = DRAFTERS[asked.drafter]
    pair = Pair.load(
        asked.bundles / "smollm2-8bit",
        asked.bundles / drafter.bundle if drafter.bundle else None,
        asked.threads,
        drafter.quality,
    )
    texts = texts_of(pair, asked.texts, asked.tokens)
    ways = ways_of(pair, drafter)
    dice = random.Random(1)
    runs = {name: in_turn(pair, ways, part, dice.shuffle) for name, part in texts.items()}
    prices = Prices(run for part in runs.values() for each in part.values() for run in each)

    print(f"{asked.drafter}: {asked.texts} texts of {asked.tokens} tokens of each kind")
    print(prices)
    print(f"{'priced, of plain':18}  best fixed        auto  auto/best  clock  kept  outside")
    saved, ratios = {}, []
    for name, by_way in runs.items():
        priced = {way: prices.total(part) for way, part in by_way.items()}
        plain, auto = priced["plain"], priced["auto"]
        best = min((way for way in priced if way != "auto"), key=priced.__getitem__)
        ratios.append(priced[best] / auto)
        own = by_way["auto"]
        drafted = sum(run.drafted for run in own)
        kept = f"{sum(run.accepted for run in own) / drafted:.2f}" if drafted else ""
        outside = sum(run.outside for run in own) / clock(own)
        print(
            f"{name:18}  {plain / priced[best]:.2f} ({best:8}) {plain / auto:7.2f} "
            f"{ratios[-1]:10.2f} {clock(by_way[best]) / clock(own):6.2f}  {kept:4} {outside:8.1%}"
        )
        lengths = [length for run in own for length in run.lengths]
        saved[name] = {
            "speed": {way: plain / seconds for way, seconds in priced.items()},
            "mean length": fmean(lengths),
        }
    print(f"{'mean':18} {fmean(ratios):38.3f}")
    if asked.save:
        asked.save.write_text(json.dumps(saved, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
