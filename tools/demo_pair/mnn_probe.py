"""Load one bundle in MNN and answer prompts: run as a child process, since MNN can crash.

`python -m demo_pair.mnn_probe BUNDLE PROMPTS.json RESULT.json`. PROMPTS is a list of questions.
RESULT holds `stop` (the ids MNN stops at), `repeats` (whether a second run gave the same logits bit
for bit) and `answers`: `{"question", "prompt", "ids", "text"}` each, decoded greedily.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

_MAX_NEW = 128
_VOCABULARY = 4096


def probe(bundle: Path, questions: list[str]) -> dict[str, Any]:
    """Answer the questions with the bundle and see whether it repeats itself."""
    # `from MNN import llm` would give the C module of that name, which has other methods.

    wrapper = importlib.import_module("MNN.llm").create(str(bundle / "config.json"))
    model = wrapper._c_obj
    if not model.load():
        raise SystemExit(f"MNN cannot load {bundle}")
    stop = []
    for token in range(_VOCABULARY):
        model.set_context({"current_token": token})
        if model.stoped():
            stop.append(token)
    answers = []
    repeats = True
    for index, question in enumerate(questions):
        text = model.apply_chat_template([{"role": "user", "content": question}])
        prompt = list(model.tokenizer_encode(text))
        ids, logits = _decode(model, prompt, stop)
        if index < 3:
            _, again = _decode(model, prompt, stop)
            repeats = repeats and np.array_equal(logits, again)
        decoded = "".join(_piece(model, token) for token in ids)
        answers.append({"question": question, "prompt": prompt, "ids": ids, "text": decoded})
    return {"stop": stop, "repeats": repeats, "answers": answers}


def _decode(model: Any, prompt: list[int], stop: list[int]) -> tuple[list[int], Any]:
    model.reset()
    model.set_context({"gen_seq_len": 0})
    ids: list[int] = []
    rows = []
    row = _last_row(model.forward(prompt))
    while len(ids) < _MAX_NEW:
        rows.append(row)
        token = int(row.argmax())
        ids.append(token)
        if token in stop:
            break
        model.set_context({"gen_seq_len": len(ids)})
        row = _last_row(model.forward([token]))
    return ids, np.stack(rows)


def _last_row(output: Any) -> Any:
    return np.array(output.read()).reshape(-1, _VOCABULARY)[-1].copy()


def _piece(model: Any, token: int) -> str:
    try:
        return str(model.tokenizer_decode(token))
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "replace")


if __name__ == "__main__":
    result = probe(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
    Path(sys.argv[3]).write_text(json.dumps(result), encoding="utf-8")
