"""A draft whose forwards are real and whose guesses are written in a script.

What a better draft would gain can so be measured with the forwards of one that costs as much: it
runs, is asked how sure it is, and then says what the script says.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.texts import Text
from tokforge_engine.drafting import DraftModel
from tokforge_engine.model import LanguageModel


@dataclass(frozen=True, slots=True)
class Quality:
    """How often a scripted draft has each degree of sureness, and how often it is right then."""

    often: tuple[float, ...]
    right: tuple[float, ...]


# A good draft: mostly sure, and right the more often the surer it is; 0.78 in all.
GOOD = Quality(often=(1, 1, 1, 1, 1, 1, 2, 4), right=(0.3, 0.4, 0.5, 0.65, 0.78, 0.88, 0.95, 0.99))


def steady(chance: float) -> Quality:
    """Right with one chance in each place, and as sure as that, whatever the place."""
    degree = 6
    often = tuple(float(each == degree) for each in range(8))
    return Quality(often, tuple(chance for _ in range(8)))


class ScriptedDraft(DraftModel):
    """Guesses as often right as a quality says, by a script that each text gets once.

    Args:
        model: runs for each guess.
        vocabulary: the target's.
        quality: of the guesses.
    """

    def __init__(self, model: LanguageModel, vocabulary: int, quality: Quality) -> None:
        super().__init__(model, vocabulary)
        self._quality = quality
        self._vocabulary = vocabulary
        self._tokens: list[int] = []
        self._right: list[bool] = []
        self._degrees: list[int] = []
        self._place = 0

    def follow(self, text: Text, number: int) -> None:
        """Guess for this text from now on; `number` seeds its script."""
        dice = random.Random(number)
        self._tokens = [*text.prompt, *text.answer]
        places = range(len(self._tokens))
        degrees = range(len(self._quality.right))
        self._degrees = dice.choices(degrees, self._quality.often, k=len(places))
        self._right = [dice.random() < self._quality.right[degree] for degree in self._degrees]

    def guesses(self, context: Sequence[int], /) -> Iterator[int]:
        """By the script, each after a forward."""
        # What the model itself guesses goes into its cache; nobody looks there.
        for self._place, _ in enumerate(super().guesses(context), start=len(context)):
            yield self._guess(self._place)

    def sure(self) -> int:
        """By the script, after the work that it is to know."""
        super().sure()
        return self._degrees[self._place]

    def score(self, context: Sequence[int], seconds: float) -> list[tuple[int, bool]]:
        """By the script, after the forward."""
        scored = super().score(context, seconds)
        places = range(len(context) - 1, len(context) - 1 - len(scored), -1)
        return [(self._degrees[place], self._right[place]) for place in places]

    def _guess(self, place: int) -> int:
        token = self._tokens[place]
        return token if self._right[place] else (token + 1) % self._vocabulary
