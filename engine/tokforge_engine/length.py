"""How many tokens to draft in a round."""

from __future__ import annotations

from typing import Protocol


class LengthController(Protocol):
    """Picks the draft length of each round; 0 means a plain step."""

    def pick(self) -> int:
        """How many tokens to draft next, at least 0. The loop may draft fewer."""
        ...


class FixedLength:
    """The same draft length in every round."""

    def __init__(self, d: int) -> None:
        self._d = d

    def pick(self) -> int:
        """The fixed length."""
        return self._d
