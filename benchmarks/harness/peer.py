"""Another engine in a process of its own, which answers one JSON line with another.

    python peer.py ENGINE MODEL THREADS

ENGINE: `mnn` (its own loop), `mnn-lookahead` (its own n-gram speculation), `llama` or
`llama-lookup` (llama-cpp-python without and with its prompt lookup). A request is
`{"prompt", "tokens"}`, where the prompt is what the chat template made; the answer is
`{"tokens", "seconds"}`: how many came after the first, until a stop token, and in what time.
Greedy. Nothing is streamed or made into text.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Answer = Callable[[str, int], tuple[int, float]]


def mnn(model: str, threads: int, settings: dict[str, Any]) -> Answer:
    """The wheel's `generate`."""
    import MNN.llm

    llm = MNN.llm.create(f"{model}/config.json")._c_obj
    own = {"thread_num": threads, "sampler_type": "greedy", "reuse_kv": True}
    llm.set_config(json.dumps(own | settings))
    if not llm.load():
        raise SystemExit(f"MNN cannot load {model}")

    def answer(prompt: str, tokens: int) -> tuple[int, float]:
        llm.reset()
        # Without this the speculative loop ends the process.
        llm.generate_init()
        came = llm.generate(llm.tokenizer_encode(prompt), tokens)
        return len(came) - 1, llm.get_context()["decode_us"] / 1e6

    return answer


def llama(model: str, threads: int, *, lookup: bool) -> Answer:
    """llama-cpp-python's `generate`."""
    from llama_cpp import Llama
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

    llm = Llama(
        model,
        n_ctx=2048,
        n_threads=threads,
        n_threads_batch=threads,
        # As its documentation advises for a CPU.
        draft_model=LlamaPromptLookupDecoding(num_pred_tokens=2) if lookup else None,
        verbose=False,
    )

    def answer(prompt: str, tokens: int) -> tuple[int, float]:
        llm.reset()
        ids = llm.tokenize(prompt.encode(), add_bos=False, special=True)
        began, count = 0.0, 0
        for token in llm.generate(ids, temp=0.0, repeat_penalty=1.0):
            if not count:
                began = time.perf_counter()
            count += 1
            if token == llm.token_eos() or count == tokens:
                break
        return count - 1, time.perf_counter() - began

    return answer


def main() -> None:
    """Answer until standard input ends."""
    engine, model, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    speculative = {"speculative_type": "lookahead"} if engine == "mnn-lookahead" else {}
    answer = (
        llama(model, threads, lookup=engine == "llama-lookup")
        if engine.startswith("llama")
        else mnn(model, threads, speculative)
    )
    for line in sys.stdin:
        request = json.loads(line)
        tokens, seconds = answer(request["prompt"], request["tokens"])
        print(json.dumps({"tokens": tokens, "seconds": seconds}), file=out)
    out.close()
    # MNN's own end is not always clean.
    os._exit(0)


if __name__ == "__main__":
    main()
