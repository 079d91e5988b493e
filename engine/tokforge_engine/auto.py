"""Who drafts and how much: what brings the most expected tokens for the expected time.

Time is weighed with the speed at which tokens have come lately, tokens a second: a draft is worth
the tokens that it is expected to bring, less the tokens that would have come anyway in the time
that it takes. This makes rounds comparable, and a decision within a round a small dynamic program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from operator import mul

import numpy as np
from numpy.typing import NDArray

from tokforge_engine.chances import Chances
from tokforge_engine.costs import Costs, FollowedCosts
from tokforge_engine.drafting import SCORED, DraftModel
from tokforge_engine.learned import Learned
from tokforge_engine.lookup import Lookup
from tokforge_engine.policy import Draft

_GRID: NDArray[np.float64] = np.linspace(0.0, 1.0, 33)


@dataclass(frozen=True, slots=True)
class _Guessed:
    """Guesses for the tokens from `start` on, to be judged once those are known."""

    start: int
    tokens: tuple[int, ...]
    sure: tuple[int, ...]


class AutoPolicy:
    """Picks drafter and length in each round from costs and chances, both measured as it runs.

    V, the cost of a verification, is not convex in its width (the second token is dear, the third
    cheap), so all lengths are looked at. A draft model is asked for one guess after the other: how
    sure it is of the last one decides whether another is worth its time, and at the end how many
    are worth their verification.

    When no guess is worth it the model rests: it does not run, and nothing would be learned about
    it any more. So now and then it is scored against text that came without it, in one forward, as
    often as a small part of the time gone by allows. Lookup costs nothing and is judged by every
    token, used or not.

    Args:
        costs: as measured at load.
        model: a draft model, or None.
        lookup: drafts from n-grams of the context, or None.
        learned: what is known of these drafters; it goes on learning.
        clock: seconds from any fixed point, monotonic.
    """

    _NEW_REQUEST = 0.5
    _SCORING_SHARE = 0.005
    # Plain steps that a first score may cost: bad luck with the first drafts is soon corrected.
    _CREDIT = 1.0
    # What a draft missed is read once, and serves for about so many rounds.
    _CATCH_UP_SERVES = 24
    _SPEED_FADE = 0.97
    _SPEED_PRIOR = 16.0
    _ROUNDS_A_PLAN = 4

    def __init__(
        self,
        costs: Costs,
        model: DraftModel | None,
        lookup: Lookup | None,
        learned: Learned | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._costs = FollowedCosts(costs)
        self._model = model
        self._lookup = lookup
        self._clock = clock
        self._learned = learned or Learned()
        self._model_chances = self._learned.model
        self._lookup_chances = self._learned.lookup
        self._tokens = self._SPEED_PRIOR * self._learned.speedup
        self._seconds = self._SPEED_PRIOR * costs.verify[0]
        self._saved = self._CREDIT * costs.verify[0]
        # What a score of all its tokens takes, as far as is known.
        self._score_seconds = 0.0
        self._of_model: _Guessed | None = None
        self._of_lookup: _Guessed | None = None
        self._at = 0
        self._round_seconds = 0.0
        self._plan_age = 0
        self._plan = self._planned()

    def begin(self, prompt: Sequence[int], /) -> None:
        """Trust less in what was learned from another text."""
        self._model_chances.trust_less(self._NEW_REQUEST)
        self._lookup_chances.trust_less(self._NEW_REQUEST)
        self._of_model = self._of_lookup = None
        # The prompt's forward brings a token that no round had a part in.
        self._at = len(prompt) + 1
        self._round_seconds = 0.0
        self._plan = self._planned()

    def draft(self, context: Sequence[int], most: int, /) -> Draft:
        """The most valuable guesses, perhaps none."""
        self._learn(context)
        most = min(most, self._costs.most)
        draft, value = Draft(), 0.0
        if self._lookup is not None:
            draft, value = self._from_lookup(self._lookup, context, most)
        if self._model is not None:
            unseen = self._model.unseen(context)
            if most > 0 and self._model_value(unseen) > value:
                own = self._from_model(self._model, context, unseen, most)
                draft = replace(own if own.tokens else draft, forwards=own.forwards)
            else:
                self._rest(self._model, context)
        self._round_seconds += self._costs.verify(len(draft.tokens))
        return draft

    def verified(self, d: int, seconds: float, /) -> None:
        """Follow the target's costs."""
        self._costs.verified(d, seconds)

    def keep(self, length: int, /) -> None:
        """Tell both drafters."""
        if self._model is not None:
            self._model.keep(length)
        if self._lookup is not None:
            self._lookup.keep(length)

    def _learn(self, context: Sequence[int]) -> None:
        """Judge the guesses of the last round by what came, and follow the speed."""
        _judge(self._of_model, context, self._model_chances)
        _judge(self._of_lookup, context, self._lookup_chances)
        self._of_model = self._of_lookup = None
        if self._round_seconds:
            # Expected seconds: one busy moment of the machine is no property of a draft.
            self._tokens = self._tokens * self._SPEED_FADE + len(context) - self._at
            self._seconds = self._seconds * self._SPEED_FADE + self._round_seconds
            self._learned.speedup = self._speed * self._costs.verify(0)
        self._at = len(context)
        self._round_seconds = 0.0
        self._plan_age += 1
        if self._plan_age >= self._ROUNDS_A_PLAN:
            self._plan = self._planned()

    @property
    def _speed(self) -> float:
        """Tokens a second that time is worth: what came lately, at least the plain speed."""
        return max(self._tokens / self._seconds, 1.0 / self._costs.verify(0))

    def _from_lookup(
        self, lookup: Lookup, context: Sequence[int], most: int
    ) -> tuple[Draft, float]:
        tokens = tuple(islice(lookup.guesses(context), self._costs.most))
        if not tokens:
            return Draft(), 0.0
        sure = lookup.sure()
        self._of_lookup = _Guessed(len(context), tokens, (sure,) * len(tokens))
        chance = self._lookup_chances.all()[sure]
        d, value = self._worth([chance] * min(len(tokens), most))
        return (Draft(tokens[:d], lookup.name), value) if d else (Draft(), 0.0)

    def _worth(self, chances: Sequence[float]) -> tuple[int, float]:
        """How many guesses of these chances to verify, and what that is worth in tokens."""
        speed, alone = self._speed, self._costs.verify(0)
        best, best_value, tokens = 0, 0.0, 0.0
        for d, survives in enumerate(accumulate(chances, mul), start=1):
            tokens += survives
            value = tokens - speed * (self._costs.verify(d) - alone)
            if value > best_value:
                best, best_value = d, value
        return best, best_value

    def _model_value(self, unseen: int) -> float:
        catch_up = self._costs.catch_up(unseen - 1) / self._CATCH_UP_SERVES
        return float(self._plan[0][-1]) - self._speed * catch_up

    def _from_model(
        self, model: DraftModel, context: Sequence[int], unseen: int, most: int
    ) -> Draft:
        by_sureness = self._model_chances.all()
        tokens: list[int] = []
        sure: list[int] = []
        chances: list[float] = []
        survives = 1.0
        began = self._clock()
        for token in islice(model.guesses(context), most):
            tokens.append(token)
            sure.append(model.sure())
            chances.append(by_sureness[sure[-1]])
            survives *= chances[-1]
            if len(tokens) == most or not self._goes_on(chances, survives):
                break
        if not tokens:
            return Draft()
        self._costs.drafted(len(tokens), unseen, self._clock() - began)
        self._round_seconds += len(tokens) * self._costs.draft + self._costs.catch_up(unseen - 1)
        self._of_model = _Guessed(len(context), tuple(tokens), tuple(sure))
        d, _ = self._worth(chances)
        return Draft(tuple(tokens[:d]), model.name if d else None, len(tokens))

    def _goes_on(self, chances: Sequence[float], survives: float) -> bool:
        """Whether another guess is worth its time, after guesses of these chances."""
        depth = len(chances)
        more = float(np.interp(survives, _GRID, self._plan[depth]))
        if more <= 0.0:
            return False
        _, best = self._worth(chances)
        here = sum(accumulate(chances, mul))
        here -= self._speed * (self._costs.verify(depth) - self._costs.verify(0))
        return bool(here + more > best)

    def _planned(self) -> list[NDArray[np.float64]]:
        """What drafting on is worth in tokens at each depth, for chances of `_GRID` to get there.

        From the deepest on: a guess costs a forward of the draft, comes with one degree of
        sureness or another, and is then dropped, or verified and perhaps followed by more.
        """
        self._plan_age = 0
        most = self._costs.most
        value = np.zeros_like(_GRID)
        plan = [value]
        if self._model is None:
            return plan
        chances = np.array(self._model_chances.all())
        often = np.array(self._model_chances.often())
        survives = _GRID[:, None] * chances
        for depth in range(most - 1, -1, -1):
            wider = self._costs.verify(depth + 1) - self._costs.verify(depth)
            after = np.interp(survives, _GRID, value)
            gain = np.maximum(survives - self._speed * wider + after, 0.0)
            value = np.maximum(gain @ often - self._speed * self._costs.draft, 0.0)
            plan.append(value)
        return plan[::-1]

    def _rest(self, model: DraftModel, context: Sequence[int]) -> None:
        """Save up for a score, or have one; never where the best of drafts would be too dear."""
        if not any(self._pays_at_best(d) for d in range(1, self._costs.most + 1)):
            return
        reading = self._costs.catch_up(SCORED)
        if self._saved < max(reading, self._score_seconds):
            self._saved += self._SCORING_SHARE * self._costs.verify(0)
            return
        began = self._clock()
        scored = model.score(context, self._saved)
        spent = self._clock() - began
        self._saved = 0.0
        for sure, kept in scored:
            self._model_chances.count(sure, kept)
        if scored:
            self._score_seconds = reading + max(spent - reading, 0.0) * SCORED / len(scored)
            self._round_seconds += reading
            self._plan = self._planned()

    def _pays_at_best(self, d: int) -> bool:
        seconds = self._costs.verify(d) + d * self._costs.draft
        return d + 1 > seconds / self._costs.verify(0)


def _judge(guessed: _Guessed | None, context: Sequence[int], chances: Chances) -> None:
    if guessed is None:
        return
    came = context[guessed.start :]
    for token, sure, actual in zip(guessed.tokens, guessed.sure, came, strict=False):
        chances.count(sure, token == actual)
        if token != actual:
            return
