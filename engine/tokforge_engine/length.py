"""How many tokens to draft in a round: fixed, or from what forwards cost and drafts are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Protocol

SCORED = 32
"""Tokens that a draft reads for a score."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round was, as a controller learns from it.

    Attributes:
        drafted: tokens that were verified.
        kept: how many of them the target agreed with.
        draft_seconds: in the drafter, catching up with the context included.
        verify_seconds: in the target's forward.
    """

    drafted: int
    kept: int
    draft_seconds: float
    verify_seconds: float


class LengthController(Protocol):
    """Picks the draft length of each round; 0 means a plain step."""

    def begin(self, prompt_tokens: int) -> None:
        """A new request begins, with a prompt that the drafter has not seen."""
        ...

    def pick(self, most: int) -> int:
        """How many tokens to draft next, 0 to `most`."""
        ...

    def observe(self, round: Round) -> None:
        """Learn from the round that followed."""
        ...

    def wants_score(self) -> bool:
        """Whether the drafter shall be scored against the text, before the next pick."""
        ...

    def learn(self, agreed: Sequence[bool]) -> None:
        """Learn from a score: whether each of some emitted tokens would have been guessed."""
        ...


class FixedLength:
    """The same draft length in every round."""

    def __init__(self, d: int) -> None:
        self._d = d

    def begin(self, prompt_tokens: int) -> None:
        """Nothing depends on it."""

    def pick(self, most: int) -> int:
        """The fixed length, as far as there is room."""
        return min(self._d, most)

    def observe(self, round: Round) -> None:
        """Nothing is learned."""

    def wants_score(self) -> bool:
        """Never."""
        return False

    def learn(self, agreed: Sequence[bool]) -> None:
        """Nothing is learned."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds, measured on this device with these models.

    Attributes:
        verify: the target's forward of 1, 2, ... tokens.
        draft: the draft's forward of one token.
        catch_up: the draft's time for each token of context that it has not seen.
    """

    verify: tuple[float, ...]
    draft: float
    catch_up: float


class AutoLength:
    """The length with the most expected tokens for the expected time, 0 included.

    The cost of a verification is not convex in its width (the second token is dear, the third
    cheap), so all lengths are compared, not only the next one. What costs were measured at load
    then follows the rounds, with one factor for the target (a longer context, heat, other load)
    and one for the draft. Acceptance is counted by position; old counts fade.

    When no length is worth it, the draft rests: it does not run, and nothing would be learned
    about it any more. So now and then it is scored against text that was emitted without it, in one
    forward, as often as a small part of the time gone by allows.
    """

    _FADE = 0.985
    _PRIOR, _PRIOR_WEIGHT, _POSITION_WEIGHT = 0.7, 6.0, 4.0
    _NEW_REQUEST = 0.5
    _SCORING_SHARE = 0.01
    # Plain steps that a first score may cost: bad luck with the first drafts is soon corrected.
    _CREDIT = 2.0
    _TRACKING = 0.1
    # What a draft missed is read once, and serves for about so many tokens.
    _CATCH_UP_SERVES = 64

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._target_factor = 1.0
        self._draft_factor = 1.0
        most = len(costs.verify) - 1
        self._tried = [0.0] * most
        self._kept = [0.0] * most
        self._unseen = 0
        self._saved = self._CREDIT * costs.verify[0]

    def begin(self, prompt_tokens: int) -> None:
        """Trust less in what was learned from another text."""
        self._tried = [count * self._NEW_REQUEST for count in self._tried]
        self._kept = [count * self._NEW_REQUEST for count in self._kept]
        self._unseen = prompt_tokens

    def pick(self, most: int) -> int:
        """The best length by the estimates."""
        tokens = list(accumulate(accumulate(self._chances(), mul), initial=1.0))
        catch_up = self._catch_up_seconds(self._unseen) / self._CATCH_UP_SERVES
        best, best_speed = 0, 1.0 / self._seconds(0)
        for d in range(1, min(most, len(tokens) - 1) + 1):
            speed = tokens[d] / (self._seconds(d) + catch_up * tokens[d])
            if speed > best_speed:
                best, best_speed = d, speed
        return best

    def wants_score(self) -> bool:
        """Whether the draft rests and enough was saved to look at it again."""
        return self._saved >= self._catch_up_seconds(SCORED)

    def learn(self, agreed: Sequence[bool]) -> None:
        """Count which emitted tokens the draft would have guessed, each from true context."""
        self._saved = 0.0
        for kept in agreed:
            self._count(0, kept)
        if agreed:
            # The draft read other tokens than those that come next.
            self._unseen = max(self._unseen, SCORED)

    def observe(self, round: Round) -> None:
        """Count what was kept, and follow the costs."""
        for place in range(min(round.kept + 1, round.drafted)):
            self._count(place, place < round.kept)
        expected = self._costs.verify[round.drafted]
        self._target_factor = self._follow(self._target_factor, round.verify_seconds / expected)
        if round.drafted:
            expected = self._costs.draft * round.drafted + self._costs.catch_up * self._unseen
            self._draft_factor = self._follow(self._draft_factor, round.draft_seconds / expected)
            self._unseen = 0
        else:
            self._saved += self._SCORING_SHARE * self._seconds(0)
        self._unseen += 1

    def _count(self, place: int, kept: bool) -> None:
        self._tried[place] = self._tried[place] * self._FADE + 1.0
        self._kept[place] = self._kept[place] * self._FADE + kept

    def _chances(self) -> list[float]:
        """The chance of each position to be kept, if all before it were."""
        chances: list[float] = []
        before, weight = self._PRIOR, self._PRIOR_WEIGHT
        for tried, kept in zip(self._tried, self._kept, strict=True):
            before = (kept + before * weight) / (tried + weight)
            weight = self._POSITION_WEIGHT
            chances.append(before)
        return chances

    def _seconds(self, d: int) -> float:
        verify = self._costs.verify[d] * self._target_factor
        return verify + d * self._costs.draft * self._draft_factor

    def _catch_up_seconds(self, tokens: int) -> float:
        return tokens * self._costs.catch_up * self._draft_factor

    def _follow(self, factor: float, seen: float) -> float:
        # One slow forward on a busy machine says little about the next.
        seen = min(max(seen, factor / 2), factor * 2)
        return factor + self._TRACKING * (seen - factor)
