"""Plain decoding, draft lengths fixed and picked, and MNN's own loop: one pair, one run.

    python benchmarks/paired_decoding.py [TARGET DRAFT] [--tokens N] [--rounds N] [--threads N]

Everything runs in turn, `rounds` times over, and medians are printed: on a shared machine the
speed of one run says little. Without paths it takes the embedded pair. MNN's own loop is
`generate` of the wheel, in a process of its own; it does no tokenizing and streams nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Literal

import tokforge_models
from tokforge_engine import GenerateOptions, ModelSpec, Result, RuntimeSettings, Session

PROMPT = "Tell me about the sea, the wind and the ships."
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


def own_loop(target: Path, threads: int, tokens: int, rounds: int) -> list[float]:
    """Tokens a second of MNN's own loop, until a stop token; nothing where it crashes."""
    arguments = [json.dumps(value) for value in (threads, PROMPT, tokens, rounds)]
    command = [sys.executable, "-c", OWN_LOOP, str(target.absolute()), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return [float(line) for line in done.stdout.split()]


def one(session: Session, d: int | Literal["auto"], tokens: int) -> Result:
    """One generation of exactly `tokens` tokens."""
    options = GenerateOptions(max_tokens=tokens, d=d, ignore_stop_tokens=True)
    generation = session.generate(PROMPT, options)
    for _ in generation:
        pass
    return generation.result


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    embedded = Path(tokforge_models.__file__).parent / "embedded"
    parser.add_argument("target", nargs="?", type=Path, default=embedded / "demo-chat")
    parser.add_argument("draft", nargs="?", type=Path, default=embedded / "demo-draft")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()

    settings = RuntimeSettings(threads=asked.threads)
    results: dict[int | Literal["auto"], list[Result]] = defaultdict(list)
    own: list[float] = []
    target, draft = (ModelSpec(path, settings) for path in (asked.target, asked.draft))
    with Session(target, draft) as session:
        for _ in range(asked.rounds):
            own += own_loop(asked.target, asked.threads, asked.tokens, 1)
            for d in (*range(7), "auto"):
                results[d].append(one(session, d, asked.tokens))

    plain = statistics.median(result.stats.tokens_per_second for result in results[0])
    print(f"{'':12} {'tokens/s':>9} {'of plain':>9} {'accepted':>9} {'outside forwards':>17}")
    for d, runs in results.items():
        speed = statistics.median(run.stats.tokens_per_second for run in runs)
        outside = statistics.median(
            (run.stats.other_seconds + run.stats.rollback_seconds) / run.stats.decode_seconds
            for run in runs
        )
        stats = runs[0].stats
        kept = f"{stats.accepted / stats.drafted:9.2f}" if stats.drafted else f"{'':9}"
        name = f"d = {d}" if d else "plain"
        print(f"{name:12} {speed:9.0f} {speed / plain:9.2f} {kept} {outside:17.1%}")
    if own:
        loop = statistics.median(own)
        print(f"{'MNN alone':12} {loop:9.0f} {loop / plain:9.2f}")
    else:
        print("MNN alone    crashed each time")


if __name__ == "__main__":
    main()
