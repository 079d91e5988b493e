"""Guesses from the context itself: what followed the last time that these tokens came.

No model is needed and next to no time, and where an answer repeats its prompt (a text to edit,
code, names, lists) whole runs of tokens are right.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

_SHORTEST = 2
_LONGEST_INDEXED = 4
MATCHES = (2, 3, 4, 6, 9, 16)
"""Tokens that match, at least, for each degree of sureness."""


class Lookup:
    """An index of the context's n-grams, brought up to date with each question.

    It answers with what followed the latest earlier occurrence of the longest n-gram that ends the
    context; where that runs into the end of the context it goes on with its own guesses, as in a
    text that repeats itself. Time and memory per token of context: a few dictionary entries.
    """

    name = "lookup"
    computes = False

    def __init__(self) -> None:
        self._read_to = 0
        # n-gram -> index of the token that followed its latest occurrence.
        self._after: dict[tuple[int, ...], int] = {}
        self._degree = 0

    def guesses(self, context: Sequence[int], /) -> Iterator[int]:
        """What followed before; nothing where these tokens are new."""
        self._read(context)
        at = self._match(context)
        if at is None:
            return
        self._degree = _degree(context, at)
        start, known = at, len(context)
        guessed: list[int] = []
        while True:
            token = context[at] if at < known else guessed[at - known]
            guessed.append(token)
            at = start + len(guessed)
            yield token

    def sure(self) -> int:
        """By how many tokens matched, see `MATCHES`."""
        return self._degree

    def keep(self, length: int, /) -> None:
        """Forget the index where its context is not what goes on."""
        if length < self._read_to:
            self._read_to = 0
            self._after.clear()

    def _read(self, context: Sequence[int]) -> None:
        for end in range(self._read_to, len(context)):
            # An n-gram is known once its successor is, so the context's own end finds an earlier
            # occurrence.
            for n in range(_SHORTEST, min(_LONGEST_INDEXED, end) + 1):
                self._after[tuple(context[end - n : end])] = end
        self._read_to = len(context)

    def _match(self, context: Sequence[int]) -> int | None:
        for n in range(_LONGEST_INDEXED, _SHORTEST - 1, -1):
            at = self._after.get(tuple(context[-n:]))
            if at is not None:
                return at
        return None


def _degree(context: Sequence[int], at: int) -> int:
    same = 0
    while same < min(MATCHES[-1], at) and context[at - 1 - same] == context[-1 - same]:
        same += 1
    return bisect_right(MATCHES, same) - 1
