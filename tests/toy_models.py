"""Integer automata that are language models, for proofs about the decoding loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

Rule = Callable[[Sequence[int]], Sequence[float]]


class ToyModel:
    """A language model whose logits are a function of the ids before them."""

    def __init__(self, vocabulary: int, rule: Rule, context_length: int | None = None) -> None:
        self.vocabulary = vocabulary
        self.context_length = context_length
        self.ids: list[int] = []
        self.widths: list[int] = []
        self._rule = rule

    @property
    def length(self) -> int:
        return len(self.ids)

    def extend(self, ids: Sequence[int]) -> np.ndarray:
        return self.verify(ids)[-1:]

    def verify(self, ids: Sequence[int]) -> np.ndarray:
        assert len(ids) >= 1
        assert all(0 <= token < self.vocabulary for token in ids)
        self.widths.append(len(ids))
        rows = []
        for token in ids:
            self.ids.append(token)
            rows.append(self._rule(self.ids))
        assert self.context_length is None or len(self.ids) <= self.context_length
        return np.array(rows, dtype=np.float32)

    def rollback(self, length: int) -> None:
        assert 0 <= length <= len(self.ids)
        del self.ids[length:]


def one_hot(vocabulary: int, step: Callable[[Sequence[int]], int]) -> Rule:
    """A rule that prefers one id, given by `step`, and likes all others equally little."""
    return lambda ids: [1.0 if token == step(ids) else 0.0 for token in range(vocabulary)]


def table(vocabulary: int, rows: Sequence[Sequence[float]]) -> Rule:
    """A rule that looks at the last two ids: an automaton with vocabulary squared states."""

    def rule(ids: Sequence[int]) -> Sequence[float]:
        before = ids[-2] if len(ids) > 1 else 0
        return rows[(before * vocabulary + ids[-1]) % len(rows)]

    return rule


class Script:
    """A drafter that proposes from a fixed continuation of the prompt, right or wrong."""

    name = "script"
    computes = False

    def __init__(self, tokens: Sequence[int], start: int) -> None:
        self.kept: list[int] = []
        self._tokens = tokens
        self._start = start

    def guesses(self, context: Sequence[int]) -> Iterator[int]:
        return iter(self._tokens[len(context) - self._start :])

    def sure(self) -> int:
        return 0

    def keep(self, length: int) -> None:
        self.kept.append(length)
