"""Texts that every policy decodes alike.

A text is sampled once, plainly. Then each policy decodes it again: forwards, draws and guesses are
as in a real run, only the target's choice is replaced by the token that the text has in its place.
So all policies see one text, and none is lucky with an easier one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.models import Forward, WatchedModel
from harness.pricing import Run
from tokforge_engine.choice import greedy
from tokforge_engine.decoding import decode, prefill
from tokforge_engine.drafting import DraftModel, likeliest
from tokforge_engine.generation import Message
from tokforge_engine.policy import FixedLength, Policy
from tokforge_engine.sampler import Sampler
from tokforge_engine.sampling import Sampling
from tokforge_engine.statistics import Tally

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt and what the target made of it.

    Attributes:
        prompt: ids.
        answer: ids.
        sampling: with a seed where tokens were drawn.
    """

    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    sampling: Sampling


def ids_of(target: WatchedModel, question: str) -> tuple[int, ...]:
    """The prompt that the chat template makes of a question."""
    return tuple(target.inner.encode(target.inner.render([Message("user", question)])))


def write(target: WatchedModel, prompt: Sequence[int], tokens: int, sampling: Sampling) -> Text:
    """Sample a text of exactly so many tokens, past any stop token."""
    target.rollback(0)
    for _ in prefill(target, prompt, Tally()):
        pass
    choose = greedy if sampling.is_plain_greedy else Sampler(sampling, prompt, target.vocabulary)
    emitted = decode(
        target,
        FixedLength(),
        prompt,
        limit=tokens,
        is_stop=lambda _: False,
        tally=Tally(),
        choose=choose,
    )
    return Text(tuple(prompt), tuple(token.id for token in emitted), sampling)


class _Replay:
    """Chooses as the text does, after the work that a choice is."""

    def __init__(self, text: Text, vocabulary: int) -> None:
        self._answer = iter(text.answer)
        self.sampler = (
            None
            if text.sampling.is_plain_greedy
            else Sampler(text.sampling, text.prompt, vocabulary)
        )

    def __call__(self, row: NDArray[np.float32]) -> int:
        (self.sampler or greedy)(row)
        return next(self._answer)


def run(
    text: Text,
    target: WatchedModel,
    policy: Policy,
    draft: DraftModel | None,
    forwards: list[Forward],
) -> Run:
    """Decode a text with a policy, from empty caches.

    Args:
        text: to replay.
        target: the model.
        policy: with drafters that know nothing of the text.
        draft: the draft model that is among them, or None.
        forwards: where the models' forwards are written.
    """
    target.rollback(0)
    policy.keep(0)
    for _ in prefill(target, text.prompt, Tally()):
        pass
    choose = _Replay(text, target.vocabulary)
    if draft is not None:
        draft.choose = choose.sampler.guess if choose.sampler else likeliest
    tally = Tally()
    tokens = decode(
        target,
        policy,
        text.prompt,
        limit=len(text.answer),
        is_stop=lambda _: False,
        tally=tally,
        choose=choose,
    )
    next(tokens)
    forwards.clear()
    began = time.perf_counter()
    for _ in tokens:
        pass
    seconds = time.perf_counter() - began
    stats = tally.statistics()
    return Run(
        emitted=stats.emitted - 1,
        forwards=tuple(forwards),
        seconds=seconds,
        drafted=stats.drafted,
        accepted=stats.accepted,
    )
