"""What the server costs: first text and tokens a second through it, beside the engine directly.

    python benchmarks/serve_overhead.py [--rounds 20] [--tokens 200]

Both load the same pair with the same settings, each in a process of its own, and answer the same
prompts in turn; the caller's clock counts. For each draft length it prints medians and what is
lost, with the middle half of the differences of neighbouring runs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness.streams import stream

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from command import tokforge
from serving_kit import serving
from tokforge_engine import GenerateOptions, ModelSpec, RuntimeSettings, Sampling, Session
from tokforge_models import Store

PROMPTS = (
    "What is a cat?",
    "Tell me a fact about rivers.",
    "Why is the sky blue?",
    "Tell me about the sea.",
    "What is a mountain?",
)
LENGTHS = (0, 2)
STOP_TOKEN = 2
MOST_MS, MOST_LOST = 5.0, 0.02


@dataclass(frozen=True)
class Run:
    """One answer: seconds to its first text, and tokens a second after that."""

    first: float
    speed: float


def directly(session: Session, prompt: str, options: GenerateOptions) -> Run:
    """Ask the engine."""
    began = time.perf_counter()
    first = last = 0.0
    generation = session.generate(prompt, options)
    for piece in generation:
        if piece.text:
            last = time.perf_counter() - began
            first = first or last
    return Run(first, (generation.result.completion_tokens - 1) / (last - first))


def served(url: str, prompt: str, options: GenerateOptions) -> Run:
    """Ask the server for the same."""
    body = {
        "model": "demo-chat",
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": options.max_tokens,
        "d": options.d,
        "draft": options.drafter,
        "logit_bias": {str(token): bias for token, bias in options.sampling.logit_bias},
    }
    answer = stream(url, body)
    assert answer.tokens == options.max_tokens, answer
    return Run(answer.first, (answer.tokens - 1) / (answer.last - answer.first))


def main() -> int:
    """Load the pair twice and measure each draft length."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--threads", type=int, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["TOKFORGE_HOME"] = home
        os.environ.pop("TOKFORGE_API_KEY", None)
        tokforge("pull", "demo-chat", "demo-draft")
        installed = Store().installed()
        settings = RuntimeSettings(threads=given.threads)
        target, draft = (
            ModelSpec(installed[id].path, settings, id) for id in ("demo-chat", "demo-draft")
        )
        threads = ("--threads", str(given.threads)) if given.threads else ()
        with serving(*threads) as running, Session(target, draft) as session:
            good = [measure(session, running.url, d, given) for d in LENGTHS]
    return 0 if all(good) else 1


def measure(session: Session, url: str, d: int, given: argparse.Namespace) -> bool:
    """Measure one draft length, print a row, and tell whether it is within the goals."""
    # No answer ends before its length, so that all runs do the same work.
    endless = Sampling(logit_bias=((STOP_TOKEN, -100.0),))
    options = GenerateOptions(max_tokens=given.tokens, d=d, drafter="model", sampling=endless)
    pairs: list[tuple[Run, Run]] = []
    for turn in range(given.rounds + 1):
        prompt = PROMPTS[turn % len(PROMPTS)]
        # Who is first changes, and so does what the machine does meanwhile.
        if turn % 2:
            through = served(url, prompt, options)
            pairs.append((directly(session, prompt, options), through))
        else:
            pairs.append((directly(session, prompt, options), served(url, prompt, options)))
    del pairs[0]
    both = list(zip(*pairs, strict=True))
    first, first_served = (1e3 * median(run.first for run in runs) for runs in both)
    speed, speed_served = (median(run.speed for run in runs) for runs in both)
    added = [1e3 * (through.first - direct.first) for direct, through in pairs]
    lost = [1 - through.speed / direct.speed for direct, through in pairs]
    print(
        f"d {d}: first text {first:.1f} ms directly, {first_served:.1f} served, "
        f"added {middle(added, '.1f')} ms; {speed:.0f} and {speed_served:.0f} tokens a second, "
        f"lost {middle(lost, '.1%')}"
    )
    return median(added) <= MOST_MS and median(lost) <= MOST_LOST


def middle(values: list[float], form: str) -> str:
    """A median and the middle half."""
    low, half, high = statistics.quantiles(values, n=4)
    return f"{half:{form}} ({low:{form}} to {high:{form}})"


if __name__ == "__main__":
    sys.exit(main())
