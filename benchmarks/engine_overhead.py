"""How much of decoding is not spent in forwards.

    python benchmarks/engine_overhead.py --bundles build/bench

Plain: SmolLM2 through a session, so through its child process, streamed. Paired: the 0.6B shape,
greedy, auto with a draft whose guesses are scripted (right in 78 of 100, as sure as a trained one),
in this process; that has no stream, whose part is in the first figure.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from engine_auto import clock
from harness.models import quiet
from harness.pairs import Pair
from harness.scripted import GOOD
from harness.texts import ids_of, write

from tokforge_engine import GenerateOptions, ModelSpec, RuntimeSettings, Session
from tokforge_engine.sampling import Sampling

QUESTION = "Tell me a long story about the sea."


def plain(bundle: Path, threads: int, tokens: int, repeats: int) -> tuple[float, float]:
    """Shares outside forwards: in the worker, and as the caller sees it."""
    inside, seen = [], []
    options = GenerateOptions(max_tokens=tokens, d=0, ignore_stop_tokens=True)
    with Session(ModelSpec(bundle, RuntimeSettings(threads=threads))) as session:
        for _ in range(repeats):
            generation = session.generate(QUESTION, options)
            next(generation)
            began = time.perf_counter()
            for _ in generation:
                pass
            waited = time.perf_counter() - began
            stats = generation.result.stats
            inside.append(1 - stats.verify_seconds / stats.decode_seconds)
            seen.append(1 - stats.verify_seconds / waited)
    return statistics.median(inside), statistics.median(seen)


def main() -> None:
    """Measure both and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundles", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    quiet()

    bundle = asked.bundles / "smollm2-8bit"
    inside, seen = plain(bundle, asked.threads, asked.tokens, asked.repeats)
    print(f"plain, SmolLM2, child, streamed: {inside:.2%} of decoding outside forwards,")
    print(f"    {seen:.2%} of what the caller waits")

    pair = Pair.load(
        asked.bundles / "qwen3-0.6b-shape",
        asked.bundles / "qwen3-tiny-shape",
        asked.threads,
        GOOD,
    )
    text = write(pair.target, ids_of(pair.target, QUESTION), asked.tokens, Sampling())
    policy = pair.auto()
    runs = [pair.run(text, number, policy) for number in range(asked.repeats)]
    shares = [run.outside / run.seconds for run in runs]
    drafted = sum(run.drafted for run in runs) / sum(len(run.lengths) for run in runs)
    print(
        f"paired, 0.6B shape, greedy, auto: {statistics.median(shares):.2%} outside forwards, "
        f"{drafted:.1f} guesses a round, {clock(runs) / len(runs):.1f} s a run"
    )


if __name__ == "__main__":
    main()
