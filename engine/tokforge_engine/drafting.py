"""Where guesses come from.

A drafter proposes tokens that may follow a context, one after the other, each computed when it is
asked for. It may keep a cache, and is told after each round how much of what it saw is final.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from tokforge_engine.choice import greedy
from tokforge_engine.model import PREFILL_CHUNK, LanguageModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokforge_engine.model import Logits

    Choice = Callable[[NDArray[np.float32], int], int]

SCORED = 32
"""Tokens that a draft reads for a score."""


RIVALS = (60, 25, 13, 8, 5, 3, 2)
"""Borders between a draft model's degrees of sureness: below so many tokens (the likeliest one
included) have a logit that is nearly the largest."""
_NEARLY = 3.5


class Drafter(Protocol):
    """Proposes continuations of a context."""

    computes: bool
    """Whether each guess costs a forward of a model."""

    @property
    def name(self) -> str:
        """By whom a token was drafted, as statistics and tokens show it."""
        ...

    def guesses(self, context: Sequence[int], /) -> Iterator[int]:
        """Ids that may follow `context`, for as long as the caller asks and it has a guess.

        `context` begins with all that `keep` has confirmed.
        """
        ...

    def sure(self) -> int:
        """How sure it is of the last guess: one of a few degrees, 0 the least."""
        ...

    def keep(self, length: int, /) -> None:
        """The first `length` tokens of the context followed by the last guesses are final.

        What was cached after them is not, and must be forgotten.
        """
        ...


def likeliest(row: NDArray[np.float32], _ahead: int) -> int:
    """The guess for a target that decodes greedily."""
    return greedy(row)


class DraftModel:
    """A small language model that guesses for a large one.

    It is not given a context before its first guess is wanted, and then catches up in chunks.

    Args:
        model: the draft; its KV cache belongs to this drafter.
        vocabulary: the target's; no id from outside it is ever proposed.
        name: how tokens name it.
        scores: whether the model can verify `SCORED` tokens in one forward.

    Attributes:
        choose: the guess from logits of shape [at most vocabulary], for a place that is so many
            ahead of the next token (negative: behind). Where the target samples, this draws with
            the same random numbers.
        on_read: called between the chunks of a long context with the tokens read and to be read.
            What it raises ends the reading; a later guess goes on from there.
    """

    computes = True

    def __init__(
        self, model: LanguageModel, vocabulary: int, name: str = "draft", *, scores: bool = True
    ) -> None:
        self.name = name
        self.choose: Choice = likeliest
        self.on_read: Callable[[int, int], None] = _ignored
        self._model = model
        self._scores = scores
        # A draft padded further than its target may prefer an id that the target does not have.
        self._shared = min(model.vocabulary, vocabulary)
        self._row: NDArray[np.float32] | None = None
        self._near: NDArray[np.bool_] | None = None

    def unseen(self, context: Sequence[int]) -> int:
        """How many tokens of `context` it would have to read before a guess."""
        return len(context) - self._model.length

    def guesses(self, context: Sequence[int], /) -> Iterator[int]:
        """Guess after guess, until its own context ends."""
        model = self._model
        pending = context[model.length :]
        if max(pending) >= model.vocabulary:
            return
        ahead = 0
        while model.context_length is None or model.length + len(pending) <= model.context_length:
            self._row = self._read(pending)[0, : self._shared]
            token = self.choose(self._row, ahead)
            yield token
            pending = [token]
            ahead += 1

    def _read(self, ids: Sequence[int]) -> Logits:
        """Append `ids`; the logits after the last."""
        done = 0
        while len(ids) - done > PREFILL_CHUNK:
            self._model.extend(ids[done : done + PREFILL_CHUNK])
            done += PREFILL_CHUNK
            self.on_read(done, len(ids))
        return self._model.extend(ids[done:])

    def sure(self) -> int:
        """By how few tokens are nearly as likely as the likeliest, see `RIVALS`.

        Over all of a large vocabulary this takes half the time that the likeliest token's
        probability does, and tells nearly as much: benchmarks/draft_sureness.py.
        """
        assert self._row is not None
        return self._degree(self._row)

    def score(self, context: Sequence[int], seconds: float) -> list[tuple[int, bool]]:
        """How sure it would have been of each of the last tokens, and whether right.

        For a draft that rests: it reads `SCORED` tokens alone, in one short forward, and what was
        cached is lost. Judged are they from the last on, for as long as there is time: a draw from
        many tokens takes longer than a forward. Empty where it cannot tell.

        Args:
            context: everything emitted so far.
            seconds: when no further token is judged.
        """
        began = time.perf_counter()
        model = self._model
        recent = context[-SCORED - 1 :]
        if not self._scores or len(recent) <= SCORED or max(recent) >= model.vocabulary:
            return []
        model.rollback(0)
        rows = model.verify(recent[:-1])[:, : self._shared]
        scored = []
        for ago in range(1, SCORED + 1):
            row = rows[-ago]
            scored.append((self._degree(row), self.choose(row, -ago) == recent[-ago]))
            if time.perf_counter() - began > seconds:
                break
        model.rollback(0)
        return scored

    def keep(self, length: int, /) -> None:
        """Roll the draft's cache back to what is final."""
        if length < self._model.length:
            self._model.rollback(length)

    def _degree(self, row: NDArray[np.float32]) -> int:
        import numpy as np

        if self._near is None:
            # Fresh memory of this size for each guess would take longer than the arithmetic.
            self._near = np.empty(self._shared, np.bool_)
        np.greater(row, row[row.argmax()] - _NEARLY, out=self._near)
        rivals = int(np.count_nonzero(self._near))
        # None at all, not even the largest: it is no number.
        return sum(rivals < border for border in RIVALS) if rivals else 0


def _ignored(_done: int, _total: int) -> None:
    pass
