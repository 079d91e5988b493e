"""The second turn of a chat with 2,000 tokens behind it: how long until its first token.

    python benchmarks/engine_chat.py --bundles build/bench

A session with the 0.6B shape reads a first message of about 2,000 tokens and answers; then the
second message comes. Its first token is waited for at the caller, through the child process, and
compared with the time of the same turn's prefill. Beside it stands the same number of new tokens
read behind as many cached ones by the bare model, again and again in one place, once the session is
closed: two loaded models would slow each other down.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from harness.models import load, quiet

from tokforge_engine import GenerateOptions, Message, ModelSpec, RuntimeSettings, Session
from tokforge_engine.mnn_model import MnnModel

SENTENCE = "The ship left the harbour at nine and sailed along the coast until the evening. "
SECOND = (
    "Thank you. Now tell me in two or three sentences what the weather was like on that day, "
    "and whether the captain of the ship was content with the wind and with his crew."
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A second turn.

    Attributes:
        reused: tokens that were cached.
        prefilled: tokens that were new.
        prefill: seconds in which they were read.
        seconds: to the first token, at the caller.
    """

    reused: int
    prefilled: int
    prefill: float
    seconds: float


def second_turn(session: Session, sentences: int) -> Turn:
    """Both turns of a chat; the first begins with what no other one has."""
    first = Message("user", f"{time.perf_counter_ns()}. " + SENTENCE * sentences)
    options = GenerateOptions(max_tokens=16, d=0, ignore_stop_tokens=True)
    generation = session.generate([first], options)
    for _ in generation:
        pass
    answer = Message("assistant", generation.result.text)
    began = time.perf_counter()
    generation = session.generate([first, answer, Message("user", SECOND)], options)
    next(generation)
    seconds = time.perf_counter() - began
    for _ in generation:
        pass
    stats = generation.result.stats
    return Turn(stats.reused, stats.prefilled, stats.prefill_seconds, seconds)


def bare(model: MnnModel, turn: Turn) -> float:
    """Seconds in which the model reads as many new tokens behind as many others."""
    # In pieces of other widths before, as the session: MNN prepares a width anew after another.
    model.rollback(min(model.length, turn.reused - 128))
    while model.length < turn.reused:
        model.extend([7] * min(64, turn.reused - model.length))
    model.rollback(turn.reused - 1)
    model.extend([7])
    began = time.perf_counter()
    model.extend([7] * turn.prefilled)
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundles", type=Path, required=True)
    parser.add_argument("--bundle", default="qwen3-0.6b-shape")
    parser.add_argument("--sentences", type=int, default=115)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    quiet()

    bundle = asked.bundles / asked.bundle
    with Session(ModelSpec(bundle, RuntimeSettings(threads=asked.threads))) as session:
        turns = [second_turn(session, asked.sentences) for _ in range(asked.repeats)]
    model = load(bundle, asked.threads)
    least = statistics.median(bare(model, turn) for turn in turns)
    for turn in turns:
        print(
            f"{turn.reused} tokens cached, {turn.prefilled} new: first token after "
            f"{turn.seconds * 1e3:.0f} ms, of which prefill {turn.prefill * 1e3:.0f} ms"
        )
    more = statistics.median(turn.seconds / turn.prefill for turn in turns)
    wait = statistics.median(turn.seconds for turn in turns)
    print(
        f"first token {more - 1:+.1%} after the prefill's time (median); "
        f"{wait / least - 1:+.1%} after the bare model's {least * 1e3:.0f} ms"
    )


if __name__ == "__main__":
    main()
