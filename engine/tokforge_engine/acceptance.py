"""Which drafted tokens are kept: a pure decision.

What is emitted is always the target's own choice; a drafted token only saves the forward that
would have computed the choice after it. So the text cannot depend on the draft.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Accepted:
    """The outcome of one verification.

    Attributes:
        tokens: the target's choices, to be emitted in this order; `kept` of them had been drafted.
        kept: how many drafted tokens the target agreed with, from the first on.
    """

    tokens: tuple[int, ...]
    kept: int


def accept(drafted: Sequence[int], choices: Iterator[int]) -> Accepted:
    """Compare drafted tokens with the target's choices, from the first on.

    Args:
        drafted: the tokens that were verified.
        choices: the target's choices: the first follows the context, the next the first drafted
            token, and so on, one more than was drafted. Only those that will be emitted are
            taken, so a choice that draws a random number draws one for each emitted token.

    >>> accept([7, 8, 9], iter([7, 8, 1, 4]))
    Accepted(tokens=(7, 8, 1), kept=2)
    """
    tokens: list[int] = []
    for guess in drafted:
        tokens.append(next(choices))
        if tokens[-1] != guess:
            return Accepted(tuple(tokens), kept=len(tokens) - 1)
    tokens.append(next(choices))
    return Accepted(tuple(tokens), kept=len(drafted))
