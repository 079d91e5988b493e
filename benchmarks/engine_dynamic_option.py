"""What MNN's `dynamic_option` does to speed and to the numbers of one target.

    python benchmarks/engine_dynamic_option.py TARGET [--options 0 1 2] [--rounds 5]

TARGET is a bundle's directory. Every setting has a worker of its own, and they answer in turn. The
divergence is from the reference (memory `normal`), over the reference's own answers.
"""

from __future__ import annotations

import argparse
import statistics
from contextlib import ExitStack
from pathlib import Path

from tokforge_engine import GenerateOptions, ModelSpec, Result, RuntimeSettings, Session
from tokforge_models.measuring.quality import answer, distance, read_texts

PROMPTS = (
    "Explain how a bicycle stays upright.",
    "Write a short letter to a friend about a day at the sea.",
    "What are the steps to bake bread?",
    "Describe a forest in autumn.",
)

TOKENS = 48


def plain(session: Session, prompt: str) -> Result:
    """A plain answer."""
    options = GenerateOptions(max_tokens=TOKENS, d=0, ignore_stop_tokens=True)
    return answer(session.generate, prompt, options)


def main() -> None:
    """Measure and print the table of docs/engine.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("--options", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    with ExitStack() as stack:

        def load(**settings: object) -> Session:
            made = RuntimeSettings(threads=asked.threads, **settings)  # type: ignore[arg-type]
            return stack.enter_context(Session(ModelSpec(asked.target, made)))

        reference = load(memory="normal")
        sessions = {option: load(memory="low", dynamic_option=option) for option in asked.options}
        answers = [(prompt, plain(reference, prompt).token_ids) for prompt in PROMPTS]
        texts = read_texts(reference.score, answers)
        far = {
            option: distance(session.score, texts).divergence
            for option, session in sessions.items()
        }
        speeds: dict[int, list[float]] = {option: [] for option in sessions}
        for number in range(asked.rounds + 1):
            for option, session in sessions.items():
                result = plain(session, PROMPTS[number % len(PROMPTS)])
                speeds[option] += [result.stats.tokens_per_second] if number else []
    print("| dynamic_option | tokens a second, plain | of option 0 | KL divergence, nats a token |")
    print("| --- | --- | --- | --- |")
    first = statistics.median(speeds[asked.options[0]])
    for option, each in speeds.items():
        speed = statistics.median(each)
        print(f"| {option} | {speed:.0f} | {speed / first:.2f} | {far[option]:.4f} |")


if __name__ == "__main__":
    main()
