"""Who drafts in a round, and how much: the seam, and the fixed answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from tokforge_engine.drafting import Drafter


@dataclass(frozen=True, slots=True)
class Draft:
    """What a round verifies.

    Attributes:
        tokens: the guesses, in order; none for a plain step.
        by: name of who guessed them, or None.
        forwards: forwards of a draft model that were spent, those for guesses that were dropped
            before verification included.
    """

    tokens: tuple[int, ...] = ()
    by: str | None = None
    forwards: int = 0


class Policy(Protocol):
    """Decides round by round, and owns the drafters."""

    def begin(self, prompt: Sequence[int], /) -> None:
        """A new request begins."""
        ...

    def draft(self, context: Sequence[int], most: int, /) -> Draft:
        """Guesses to verify next: 0 to `most`. `context` holds everything emitted so far."""
        ...

    def verified(self, d: int, seconds: float, /) -> None:
        """The verification of those `d` guesses took so long."""
        ...

    def keep(self, length: int, /) -> None:
        """The first `length` tokens of the context followed by the last guesses are final."""
        ...


class FixedLength:
    """The same drafter and the same number of guesses in every round; 0 is plain decoding."""

    def __init__(self, drafter: Drafter | None = None, d: int = 0) -> None:
        self._drafter = drafter
        self._d = d

    def begin(self, _prompt: Sequence[int], /) -> None:
        """Nothing depends on it."""

    def draft(self, context: Sequence[int], most: int, /) -> Draft:
        """As many guesses as there are and have room."""
        d = min(self._d, most)
        if self._drafter is None or d < 1:
            return Draft()
        tokens = tuple(islice(self._drafter.guesses(context), d))
        forwards = len(tokens) if self._drafter.computes else 0
        return Draft(tokens, self._drafter.name if tokens else None, forwards)

    def verified(self, _d: int, _seconds: float, /) -> None:
        """Nothing is learned."""

    def keep(self, length: int, /) -> None:
        """Tell the drafter."""
        if self._drafter is not None:
            self._drafter.keep(length)
