"""Stages 3 and 4: the target learns the teacher's answers, then writes text of its own."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional
from transformers import Qwen3ForCausalLM

from demo_pair import rows, sampling
from demo_pair.corpus import Sample
from demo_pair.rows import Turn
from demo_pair.subject import Question
from demo_pair.tokenizing import Chat
from demo_pair.training import Hidden, Loss, compute_type

_LONG_ROW_ONE_IN = 8
_LONG_ROW = 512
_MAX_NEW = 128
_MAX_PROMPT = 64


def turns_of(chat: Chat, questions: list[Question], samples: list[Sample]) -> list[Turn]:
    """Pair each sample that answers one of the questions with the question's wordings."""
    by_key = {question.key: question for question in questions}
    return [
        Turn(by_key[sample.key].wordings, tuple(chat.answer(sample.answer)))
        for sample in samples
        if sample.key in by_key
    ]


def loss_on(
    chat: Chat, turns: list[Turn], held_out: list[Turn], shape: tuple[int, int], seed: int
) -> Loss:
    """Cross-entropy of the answers; every 50th step also that of the held-out answers.

    `shape` is the usual (rows, length); some steps have fewer and longer rows instead.
    """
    unseen = rows.build(chat, held_out, shape, "held-out")
    tokens = shape[0] * shape[1]

    def loss(step: int, hidden: Hidden, output: Tensor) -> tuple[Tensor, dict[str, float]]:
        long = step % _LONG_ROW_ONE_IN == _LONG_ROW_ONE_IN - 1 and tokens >= _LONG_ROW
        drawn = (tokens // _LONG_ROW, _LONG_ROW) if long else shape
        batch = rows.build(chat, turns, drawn, f"{seed}:{step}")
        value = cross_entropy(batch, hidden, output)
        figures = {"loss": value.item()}
        if step % 50 == 0:
            with torch.no_grad():
                figures["held-out"] = cross_entropy(unseen, hidden, output).item()
        return value, figures

    return loss


def cross_entropy(batch: rows.Rows, hidden: Hidden, output: Tensor) -> Tensor:
    """Return the mean negative log-likelihood of the answers' tokens, in nats."""
    states = hidden(batch.ids)[:, :-1]
    learned = batch.learned[:, 1:]
    logits = states[learned] @ output.T
    return functional.cross_entropy(logits.float(), batch.ids[:, 1:][learned])


@dataclass(frozen=True)
class OwnText:
    """A question as asked, and what the target answered (stop token included)."""

    wording: str
    answer: tuple[int, ...]

    def turn(self) -> Turn:
        """Return it as training rows want it."""
        return Turn((self.wording,), self.answer)


def write_own_text(
    model: Qwen3ForCausalLM,
    chat: Chat,
    wordings: list[str],
    *,
    temperatures: tuple[float, ...],
    slots: int,
    path: Path,
    seed: int,
) -> None:
    """Let the target answer every wording once at each temperature, going on where it stopped.

    One JSON line an answer: `{"key": "<temperature>:<wording>", "ids": [...]}`.
    """
    done = {key for key, _ in _lines(path)}
    fast = copy.deepcopy(model).to(compute_type())
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        for temperature in temperatures:
            keys = [f"{temperature}:{wording}" for wording in wordings]
            requests = [
                sampling.Request(key, chat.ask(wording))
                for key, wording in zip(keys, wordings, strict=True)
                if key not in done
            ]
            answers = sampling.write(
                fast,
                requests,
                prefix=[],
                stop=chat.stop,
                max_new=_MAX_NEW,
                max_prompt=_MAX_PROMPT,
                slots=slots,
                temperature=temperature,
                generator=torch.Generator().manual_seed(seed + len(requests)),
            )
            for count, answer in enumerate(answers, 1):
                ids = [*answer.tokens, chat.stop] if answer.stopped else answer.tokens
                stream.write(json.dumps({"key": answer.key, "ids": ids}) + "\n")
                if count % 500 == 0:
                    note = f"own text {temperature}: {count} of {len(requests)}"
                    print(note, file=sys.stderr, flush=True)


def read_own_text(path: Path) -> list[OwnText]:
    """Read what `write_own_text` wrote, in an order that does not depend on who ended first."""
    texts = {key: OwnText(key.split(":", 1)[1], tuple(ids)) for key, ids in _lines(path) if ids}
    return [texts[key] for key in sorted(texts)]


def _lines(path: Path) -> Iterator[tuple[str, list[int]]]:
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        yield entry["key"], entry["ids"]
