"""Where guesses come from.

A drafter proposes tokens that may follow a context. It may keep a cache, and is told after each
round how much of what it saw has become certain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tokforge_engine.choice import greedy
from tokforge_engine.length import SCORED
from tokforge_engine.model import LanguageModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Guess = Callable[[NDArray[np.float32], int], int]


class Drafter(Protocol):
    """Proposes continuations of a context."""

    @property
    def name(self) -> str:
        """By whom a token was drafted, as statistics and tokens show it."""
        ...

    def propose(self, context: Sequence[int], k: int, /) -> Sequence[int]:
        """Up to `k` ids that may follow `context`; fewer, or none, where there is no guess.

        `context` begins with all that `keep` has confirmed.
        """
        ...

    def score(self, context: Sequence[int], /) -> Sequence[bool]:
        """Whether each of the last tokens of `context` would have been its first guess.

        For a drafter that rests: it costs one short forward, and what was cached is lost. Empty
        where it cannot tell.
        """
        ...

    def keep(self, length: int) -> None:
        """The first `length` tokens of the context followed by the last proposal are final.

        What was cached after them is not, and must be forgotten.
        """
        ...


class NoDraft:
    """Never guesses: plain decoding."""

    name = "none"

    def propose(self, _context: Sequence[int], _k: int, /) -> Sequence[int]:
        """No ids."""
        return ()

    def score(self, _context: Sequence[int], /) -> Sequence[bool]:
        """It cannot tell."""
        return ()

    def keep(self, length: int) -> None:
        """Nothing is cached."""


def likeliest(row: NDArray[np.float32], _ahead: int) -> int:
    """The guess for a target that decodes greedily."""
    return greedy(row)


class DraftModel:
    """A small language model that guesses for a large one.

    It is not given a context before its first guess is wanted, and catches up in one forward.

    Args:
        model: the draft; its KV cache belongs to this drafter.
        vocabulary: the target's; no id from outside it is ever proposed.
        name: how tokens name it.
        scores: whether the model can verify `SCORED` tokens in one forward.

    Attributes:
        guess: the guess from logits of shape [at most vocabulary], for a place that is so many
            ahead of the next token (negative: behind). Where the target samples, this draws with
            the same random numbers.
    """

    def __init__(
        self, model: LanguageModel, vocabulary: int, name: str = "draft", *, scores: bool = True
    ) -> None:
        self.name = name
        self._model = model
        self._scores = scores
        self.guess: Guess = likeliest
        # A draft padded further than its target may prefer an id that the target does not have.
        self._shared = min(model.vocabulary, vocabulary)

    def propose(self, context: Sequence[int], k: int) -> Sequence[int]:
        """Up to `k` ids, fewer where the draft's own context ends."""
        model = self._model
        if model.context_length is not None:
            k = min(k, model.context_length - len(context) + 1)
        pending = context[model.length :]
        if k < 1 or max(pending) >= model.vocabulary:
            return ()
        drafted: list[int] = []
        for ahead in range(k):
            logits = model.extend(pending)
            drafted.append(self.guess(logits[0, : self._shared], ahead))
            pending = drafted[-1:]
        return drafted

    def score(self, context: Sequence[int], /) -> list[bool]:
        """Compare its first guesses with the last `SCORED` tokens, from them alone."""
        model = self._model
        recent = context[-SCORED - 1 :]
        if not self._scores or len(recent) <= SCORED or max(recent) >= model.vocabulary:
            return []
        model.rollback(0)
        rows = model.verify(recent[:-1])[:, : self._shared]
        agreed = [
            self.guess(row, place - SCORED) == token
            for place, (row, token) in enumerate(zip(rows, recent[1:], strict=True))
        ]
        model.rollback(0)
        return agreed

    def keep(self, length: int) -> None:
        """Roll the draft's cache back to what is final."""
        if length < self._model.length:
            self._model.rollback(length)
