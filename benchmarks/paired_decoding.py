"""Plain decoding, fixed draft lengths, auto, lookup, and MNN's own loop: one pair, one run.

    python benchmarks/paired_decoding.py [TARGET DRAFT] [--tokens N] [--rounds N] [--threads N]

Everything runs `rounds` times over, each time in another order. On a shared machine the speed of
one run says little, so each way of decoding is also priced: its forwards are counted, and each kind
costs the median of what that kind cost in the whole run; time outside forwards is added as it was.
Without paths it takes the embedded pair. MNN's own loop is `generate` of the wheel, in a process of
its own; it does no tokenizing and streams nothing, and has no price.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import tokforge_models
from tokforge_engine import (
    GenerateOptions,
    ModelSpec,
    Result,
    RuntimeSettings,
    Session,
    Statistics,
)

PROMPTS = {
    "story": "Tell me about the sea, the wind and the ships.",
    "copy": "Say this again: The ship left the harbour at nine. The wind came from the west, and "
    "the sea was calm. At noon the ship left the harbour again. The wind came from the west.",
}
OWN_LOOP = """
import json, os, sys, time
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import MNN.llm
path, threads, prompt, count, rounds = sys.argv[1], *map(json.loads, sys.argv[2:])
llm = MNN.llm.create(path + "/config.json")._c_obj
llm.set_config(json.dumps({"thread_num": threads, "sampler_type": "greedy", "reuse_kv": True}))
assert llm.load()
ids = llm.tokenizer_encode(llm.apply_chat_template([{"role": "user", "content": prompt}]))
for _ in range(rounds):
    llm.reset()
    llm.generate_init()
    tokens = llm.generate(ids, count)
    seconds = llm.get_context()["decode_us"] / 1e6
    print((len(tokens) - 1) / seconds if seconds else 0.0, file=out, flush=True)
out.close()
os._exit(0)
"""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of decoding."""

    name: str
    d: int | Literal["auto"]
    drafter: Literal["any", "model", "lookup"] = "any"


WAYS = (
    Way("plain", 0),
    *(Way(f"model, d = {d}", d, "model") for d in range(1, 7)),
    Way("model, auto", "auto", "model"),
    *(Way(f"lookup, d = {d}", d, "lookup") for d in (2, 4)),
    Way("lookup, auto", "auto", "lookup"),
    Way("both, auto", "auto"),
)


def own_loop(target: Path, threads: int, prompt: str, tokens: int) -> list[float]:
    """Tokens a second of MNN's own loop, until a stop token; nothing where it crashes."""
    arguments = [json.dumps(value) for value in (threads, prompt, tokens, 1)]
    command = [sys.executable, "-c", OWN_LOOP, str(target.absolute()), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return [float(line) for line in done.stdout.split()]


def one(session: Session, way: Way, prompt: str, tokens: int) -> Result:
    """One generation of exactly `tokens` tokens."""
    options = GenerateOptions(
        max_tokens=tokens, d=way.d, drafter=way.drafter, ignore_stop_tokens=True
    )
    generation = session.generate(prompt, options)
    for _ in generation:
        pass
    return generation.result


def rounds_of(stats: Statistics) -> list[int]:
    """How many rounds verified 0, 1, 2, ... drafted tokens."""
    at_least = [stats.rounds, *stats.drafted_by_position, 0]
    return [some - more for some, more in pairwise(at_least)]


class Prices:
    """Median seconds of each kind of forward, from the runs whose rounds are all of one kind."""

    def __init__(self, results: dict[Way, list[Result]]) -> None:
        verify: defaultdict[int, list[float]] = defaultdict(list)
        draft: list[float] = []
        for way, runs in results.items():
            for stats in (run.stats for run in runs):
                if way.d == 0 or (way.drafter == "model" and way.d != "auto"):
                    verify[int(way.d)].append(stats.verify_seconds / stats.rounds)
                    if stats.draft_forwards:
                        draft.append(stats.draft_seconds / stats.draft_forwards)
        known = {d: statistics.median(seen) for d, seen in verify.items()}
        # Auto may use one length more than was measured.
        self._verify = [known[min(d, max(known))] for d in range(16)]
        self.draft = statistics.median(draft)

    def seconds(self, stats: Statistics) -> float:
        """What a run costs at these prices."""
        verify = sum(count * self._verify[d] for d, count in enumerate(rounds_of(stats)) if count)
        outside = stats.other_seconds + stats.rollback_seconds
        looked_up = sum(each.drafted for each in stats.drafters if each.name == "lookup")
        own = stats.draft_seconds if looked_up and not stats.draft_forwards else 0.0
        return verify + stats.draft_forwards * self.draft + outside + own

    def __str__(self) -> str:
        verify = ", ".join(f"{seconds / self._verify[0]:.2f}" for seconds in self._verify[:7])
        return f"V(1..7) / V(1): {verify}; D / V(1): {self.draft / self._verify[0]:.2f}"


def median(values: Iterable[float]) -> float:
    """Of at least one value."""
    return statistics.median(list(values))


def table(results: dict[Way, list[Result]], own: list[float]) -> None:
    """Print what was measured with one prompt."""
    prices = Prices(results)
    print(prices)
    plain, *_ = results.values()
    plain_speed = median(run.stats.tokens_per_second for run in plain)
    plain_price = median(prices.seconds(run.stats) for run in plain)
    print(f"{'':15} {'tokens/s':>9} {'of plain':>9} {'priced':>7} {'kept':>6} {'outside':>8}")
    for way, runs in results.items():
        speed = median(run.stats.tokens_per_second for run in runs)
        price = median(prices.seconds(run.stats) for run in runs)
        outside = median(
            (run.stats.other_seconds + run.stats.rollback_seconds) / run.stats.decode_seconds
            for run in runs
        )
        drafted = sum(run.stats.drafted for run in runs)
        kept = f"{sum(run.stats.accepted for run in runs) / drafted:6.2f}" if drafted else f"{'':6}"
        print(
            f"{way.name:15} {speed:9.0f} {speed / plain_speed:9.2f} {plain_price / price:7.2f} "
            f"{kept} {outside:8.1%}"
        )
    if own:
        loop = statistics.median(own)
        print(f"{'MNN alone':15} {loop:9.0f} {loop / plain_speed:9.2f}")
    else:
        print("MNN alone       crashed each time")


def main() -> None:
    """Measure and print a table for each prompt."""
    parser = argparse.ArgumentParser()
    embedded = Path(tokforge_models.__file__).parent / "embedded"
    parser.add_argument("target", nargs="?", type=Path, default=embedded / "demo-chat")
    parser.add_argument("draft", nargs="?", type=Path, default=embedded / "demo-draft")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()

    dice = random.Random(1)
    settings = RuntimeSettings(threads=asked.threads)
    target, draft = (ModelSpec(path, settings) for path in (asked.target, asked.draft))
    with Session(target, draft, lookup=True) as session:
        for name, prompt in PROMPTS.items():
            results: dict[Way, list[Result]] = {way: [] for way in WAYS}
            own: list[float] = []
            for _ in range(asked.rounds):
                own += own_loop(asked.target, asked.threads, prompt, asked.tokens)
                for way in dice.sample(WAYS, len(WAYS)):
                    results[way].append(one(session, way, prompt, asked.tokens))
            print(f"\n{name}: {prompt[:60]}")
            table(results, own)


if __name__ == "__main__":
    main()
