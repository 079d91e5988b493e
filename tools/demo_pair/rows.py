"""Training rows: chats of several turns, cut to one length.

A row begins where a chat begins, so most of what a model learns is the first answer of a chat, and
the later turns teach it not to be confused by a history.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from demo_pair.tokenizing import Chat

_SYSTEM_ONE_IN = 8
_SYSTEM_PROMPTS = (
    "You are a helpful assistant.",
    "You are a friendly assistant. Answer in simple words.",
    "Answer in one or two short, simple sentences.",
)


@dataclass(frozen=True)
class Turn:
    """A question in its wordings, and the ids of one answer, which end with the stop token."""

    wordings: tuple[str, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True)
class Rows:
    """`ids` int64 [rows, length]; `learned` bool [rows, length], true where an answer stands."""

    ids: Tensor
    learned: Tensor


def build(
    chat: Chat,
    turns: Sequence[Turn],
    shape: tuple[int, int],
    seed: str,
    first: Turn | None = None,
) -> Rows:
    """Draw (rows, length) of chats from the turns; the same seed gives the same rows.

    `first`, if given, opens every row.
    """
    dice = random.Random(seed)
    rows, length = shape
    ids = torch.full((rows, length), chat.end_of_text)
    learned = torch.zeros((rows, length), dtype=torch.bool)
    for row in range(rows):
        line: list[int] = []
        marks: list[bool] = []
        system = dice.choice(_SYSTEM_PROMPTS) if dice.randrange(_SYSTEM_ONE_IN) == 0 else None
        while len(line) < length:
            turn = dice.choice(turns) if line or first is None else first
            question = chat.ask(dice.choice(turn.wordings), system)
            system = None
            line += [*question, *turn.answer, *chat.newline]
            marks += [False] * len(question) + [True] * len(turn.answer) + [False]
        ids[row] = torch.tensor(line[:length])
        learned[row] = torch.tensor(marks[:length])
    return Rows(ids, learned)
