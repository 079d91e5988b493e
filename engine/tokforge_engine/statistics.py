"""What a generation did and where its time went.

`Tally` counts while decoding runs; `Statistics` is the frozen result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from tokforge_engine.policy import Draft

Activity = Literal["prefill", "draft", "verify", "rollback"]


@dataclass(frozen=True, slots=True)
class DrafterCount:
    """What one drafter did.

    Attributes:
        name: as tokens name it.
        drafted: its tokens that were verified.
        accepted: how many of them the target agreed with.
    """

    name: str
    drafted: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts and seconds of one generation.

    Attributes:
        rounds: forwards of the target after the prompt's, with or without a draft.
        drafted: guesses that were verified.
        accepted: how many of them the target agreed with.
        draft_forwards: forwards of the draft model, one a guess; guesses that were dropped before
            verification included, scores not.
        drafters: `drafted` and `accepted` for each drafter that had a part.
        accepted_by_position: `accepted`, split by place in the draft (index 0 is the first).
        drafted_by_position: `drafted`, split in the same way.
        reused: tokens of the prompt that the cache held from before.
        prefilled: the other tokens of the prompt.
        forgotten: tokens in the cache that did not serve this prompt: 0 in a chat that goes on,
            unless its template rewrites history.
        emitted: tokens handed out, a stop token included. Each round brings its accepted tokens
            and one more; the prompt's forward brings one; what followed a stop token or a limit
            in its block was not handed out.
        prefill_seconds: in the target's forward of the prompt, the first token's choice included.
        draft_seconds: in drafters, their own catching up with the context included.
        verify_seconds: in forwards of the target after the prompt's.
        rollback_seconds: in rolling caches back.
        other_seconds: the rest: choices from those logits, and consumers of the tokens.
    """

    rounds: int
    drafted: int
    accepted: int
    draft_forwards: int
    drafters: tuple[DrafterCount, ...]
    accepted_by_position: tuple[int, ...]
    drafted_by_position: tuple[int, ...]
    reused: int
    prefilled: int
    forgotten: int
    emitted: int
    prefill_seconds: float
    draft_seconds: float
    verify_seconds: float
    rollback_seconds: float
    other_seconds: float

    @property
    def decode_seconds(self) -> float:
        """Everything after the prompt's forward."""
        return self.draft_seconds + self.verify_seconds + self.rollback_seconds + self.other_seconds

    @property
    def tokens_per_second(self) -> float:
        """Tokens after the first, a second of decoding; 0.0 where there was none."""
        if self.emitted < 2 or self.decode_seconds <= 0.0:
            return 0.0
        return (self.emitted - 1) / self.decode_seconds


class Stopwatch:
    """The time of ``with`` blocks; three of them are in each round.

    Args:
        clock: seconds from any fixed point, monotonic.

    Attributes:
        seconds: what the last block took, once it is over.
        total: what all of them took.
    """

    __slots__ = ("_began", "_clock", "seconds", "total")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = self.seconds = self.total = 0.0

    def __enter__(self) -> Stopwatch:
        self._began = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = self._clock() - self._began
        self.total += self.seconds


class Tally:
    """Counts and clocks of a running generation.

    Args:
        clock: seconds from any fixed point, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        activities: tuple[Activity, ...] = get_args(Activity)
        self._watches = {activity: Stopwatch(clock) for activity in activities}
        self._drafted: list[int] = []
        self._accepted: list[int] = []
        self._by_drafter: dict[str, tuple[int, int]] = {}
        self._rounds = 0
        self._draft_forwards = 0
        self._emitted = 0
        self._prompt = (0, 0, 0)

    def timed(self, activity: Activity) -> Stopwatch:
        """Charge the time of a ``with`` block to `activity`."""
        return self._watches[activity]

    def prompt(self, *, reused: int, prefilled: int, forgotten: int) -> None:
        """What the cache was worth to this request."""
        self._prompt = (reused, prefilled, forgotten)

    def round(self, draft: Draft, kept: int) -> None:
        """Count one verification, of which so many guesses were kept."""
        self._rounds += 1
        self._draft_forwards += draft.forwards
        drafted = len(draft.tokens)
        if draft.by is not None:
            before = self._by_drafter.get(draft.by, (0, 0))
            self._by_drafter[draft.by] = (before[0] + drafted, before[1] + kept)
        missing = drafted - len(self._drafted)
        self._drafted += [0] * missing
        self._accepted += [0] * missing
        for position in range(drafted):
            self._drafted[position] += 1
        for position in range(kept):
            self._accepted[position] += 1

    @property
    def drafted(self) -> int:
        """Guesses that were verified so far."""
        return sum(self._drafted)

    @property
    def accepted(self) -> int:
        """How many of them the target agreed with."""
        return sum(self._accepted)

    def emit(self) -> None:
        """Count one token that is about to be handed out."""
        self._emitted += 1

    def statistics(self) -> Statistics:
        """The counts so far, with all time since construction accounted for."""
        total = self._clock() - self._began
        return Statistics(
            rounds=self._rounds,
            drafted=self.drafted,
            accepted=self.accepted,
            draft_forwards=self._draft_forwards,
            drafters=tuple(
                DrafterCount(name, *counts) for name, counts in self._by_drafter.items()
            ),
            accepted_by_position=tuple(self._accepted),
            drafted_by_position=tuple(self._drafted),
            reused=self._prompt[0],
            prefilled=self._prompt[1],
            forgotten=self._prompt[2],
            emitted=self._emitted,
            prefill_seconds=self._watches["prefill"].total,
            draft_seconds=self._watches["draft"].total,
            verify_seconds=self._watches["verify"].total,
            rollback_seconds=self._watches["rollback"].total,
            other_seconds=total - sum(watch.total for watch in self._watches.values()),
        )
