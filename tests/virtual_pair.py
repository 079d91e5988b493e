"""A pair that computes nothing on a clock that nobody waits for, to see what a policy gains.

Each token of the text has a degree of sureness, with which the draft would guess it, and the draft
is right about it with that degree's chance. Forwards only move the clock.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tokforge_engine.costs import Costs
from tokforge_engine.drafting import SCORED

FLAT = Costs(verify=(1.0,) * 8, draft=0.2, catch_up=0.06)
# The shapes of the forwards of a 0.6B model on two cores: the second token is dear.
STEEP = Costs(verify=(1.0, 1.28, 1.41, 1.7, 2.22, 2.78, 2.9, 3.09), draft=0.08, catch_up=0.03)
DEAR = Costs(verify=STEEP.verify, draft=1.0, catch_up=0.3)

DEGREES = 8


class VirtualPair:
    """Target, draft and clock.

    Args:
        costs: of all forwards.
        chances: of the draft to be right, for each degree of sureness.
        often: how often each degree comes.
        seed: of the text.
        slower: what all forwards take, times their costs.
        shows: whether the draft tells how sure it is; else it is always as sure.
    """

    name = "virtual"
    computes = True

    def __init__(
        self,
        costs: Costs,
        chances: Sequence[float],
        often: Sequence[float] | None = None,
        *,
        seed: int = 0,
        slower: float = 1.0,
        shows: bool = True,
    ) -> None:
        self.costs = costs
        self.chances = list(chances)
        self.often = list(often or [1.0] * len(chances))
        self.slower = slower
        self.shows = shows
        self.now = 0.0
        self.lengths: list[int] = []
        self.kept: list[int] = []
        self._dice = random.Random(seed)
        self._text: list[int] = []
        self._right: list[bool] = []
        self._degree: list[int] = []
        self._seen = 0
        self._sure = 0

    def clock(self) -> float:
        return self.now

    # What a policy sees of a draft model.

    def unseen(self, context: Sequence[int]) -> int:
        return len(context) - self._seen

    def guesses(self, context: Sequence[int]) -> Iterator[int]:
        self._spend(self.costs.catch_up * (self.unseen(context) - 1))
        place = len(context)
        while True:
            self._spend(self.costs.draft)
            self._seen = place
            self._know(place)
            self._sure = self._degree[place]
            yield self._guess(place)
            place += 1

    def sure(self) -> int:
        return self._sure if self.shows else 0

    def score(self, context: Sequence[int], _seconds: float) -> list[tuple[int, bool]]:
        if len(context) <= SCORED:
            return []
        self._spend(self.costs.catch_up * SCORED)
        self._seen = 0
        places = range(len(context) - SCORED, len(context))
        return [(self._degree[at] if self.shows else 0, self._right[at]) for at in places]

    def keep(self, length: int) -> None:
        self._seen = min(self._seen, length)

    # The rest of the world.

    def run(self, policy, tokens: int, prompt: int = 20) -> float:
        """Decode with `policy`; tokens a second."""
        self._text, self._right, self._degree = [0] * prompt, [False] * prompt, [0] * prompt
        self._know(prompt + tokens + 16)
        context = self._text[: prompt + 1]
        self._seen = 0
        policy.keep(0)
        policy.begin(context[:-1])
        began, self.lengths, self.kept = self.now, [], []
        goal = prompt + tokens
        while len(context) < goal:
            draft = policy.draft(context, goal - len(context) - 1)
            d = len(draft.tokens)
            self._spend(self.costs.verify[d])
            policy.verified(d, self.costs.verify[d] * self.slower)
            kept = 0
            while kept < d and draft.tokens[kept] == self._text[len(context) + kept]:
                kept += 1
            policy.keep(len(context) + kept)
            context = self._text[: len(context) + kept + 1]
            self.lengths.append(d)
            self.kept.append(kept)
        return (tokens - 1) / (self.now - began)

    def _know(self, place: int) -> None:
        while len(self._text) <= place:
            (degree,) = self._dice.choices(range(len(self.chances)), self.often)
            self._degree.append(degree)
            self._right.append(self._dice.random() < self.chances[degree])
            self._text.append(self._dice.randrange(1_000_000))

    def _guess(self, place: int) -> int:
        return self._text[place] if self._right[place] else -1

    def _spend(self, seconds: float) -> None:
        self.now += seconds * self.slower


def fixed(costs: Costs, chance: float, d: int) -> float:
    """Tokens a second of a fixed length with one chance at every place, by the formula."""
    kept = sum(chance**place for place in range(d + 1))
    # After full acceptance the draft reads two tokens.
    late = chance**d * costs.catch_up if d else 0.0
    return kept / (costs.verify[d] + d * costs.draft + late)


def best(costs: Costs, chance: float) -> float:
    """The best fixed length's speed."""
    return max(fixed(costs, chance, d) for d in range(len(costs.verify)))
