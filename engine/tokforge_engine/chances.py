"""How likely a guess is to be kept, by how sure its drafter was."""

from __future__ import annotations

import math
from collections.abc import Sequence


class Chances:
    """Counts of what was kept, which fade, over a prior that is corrected as a whole.

    A drafter that is wrong at all is soon known to be: what is seen at one degree of sureness
    moves the expectation at all others.

    Args:
        priors: expected chance for each degree of sureness, before anything was seen.
        fade: what an old count is worth after each new one.

    Attributes:
        tried: guesses at each degree of sureness, faded.
        kept: how many of them were kept.
    """

    _DEGREE_WEIGHT = 4.0
    _WHOLE_WEIGHT = 1.5

    def __init__(self, priors: Sequence[float], fade: float) -> None:
        self._priors = tuple(priors)
        self._fade = fade
        self.tried = [0.0] * len(self._priors)
        self.kept = [0.0] * len(self._priors)

    def count(self, sure: int, kept: bool) -> None:
        """Count one guess."""
        self.trust_less(self._fade)
        self.tried[sure] += 1.0
        self.kept[sure] += kept

    def trust_less(self, factor: float) -> None:
        """Weigh all that was seen so far with `factor`."""
        self.tried = [count * factor for count in self.tried]
        self.kept = [count * factor for count in self.kept]

    def restore(self, tried: Sequence[float], kept: Sequence[float]) -> None:
        """Take over earlier counts.

        Raises:
            ValueError: they are no such counts.
        """
        pairs = [(float(all_of), float(good)) for all_of, good in zip(tried, kept, strict=True)]
        if len(pairs) != len(self._priors):
            raise ValueError(f"expected {len(self._priors)} counts, got {len(pairs)}")
        if not all(0.0 <= good <= all_of < math.inf for all_of, good in pairs):
            raise ValueError("counts expected 0 <= kept <= tried")
        self.tried = [all_of for all_of, _ in pairs]
        self.kept = [good for _, good in pairs]

    def all(self) -> list[float]:
        """The chance at each degree of sureness."""
        pairs = zip(self.tried, self._priors, strict=True)
        expected = sum(tried * prior for tried, prior in pairs)
        ratio = (sum(self.kept) + self._WHOLE_WEIGHT) / (expected + self._WHOLE_WEIGHT)
        weight = self._DEGREE_WEIGHT
        return [
            (kept + weight * min(prior * ratio, 0.99)) / (tried + weight)
            for tried, kept, prior in zip(self.tried, self.kept, self._priors, strict=True)
        ]

    def often(self) -> list[float]:
        """How often each degree of sureness comes, as shares of one."""
        even = self._DEGREE_WEIGHT / len(self._priors)
        total = sum(self.tried) + self._DEGREE_WEIGHT
        return [(tried + even) / total for tried in self.tried]
