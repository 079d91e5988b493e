"""Paired decoding: draft, verify in one forward, accept, roll back."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokforge_engine.acceptance import accept
from tokforge_engine.choice import greedy
from tokforge_engine.model import PREFILL_CHUNK, LanguageModel
from tokforge_engine.policy import Policy
from tokforge_engine.statistics import Tally

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Token:
    """One emitted token.

    Attributes:
        id: token id in the target's vocabulary.
        drafted_by: name of the drafter that guessed it, or None where the target alone did.
    """

    id: int
    drafted_by: str | None = None


def prefill(
    target: LanguageModel, prompt: Sequence[int], tally: Tally
) -> Generator[int, None, None]:
    """Feed a long prompt in chunks, as far as `decode` will still have something to feed.

    Yields how many tokens of the prompt are in the cache after each chunk, so that a consumer can
    show it, or stop there.
    """
    while len(prompt) - target.length > PREFILL_CHUNK:
        with tally.timed("prefill"):
            target.extend(prompt[target.length : target.length + PREFILL_CHUNK])
        yield target.length


def decode(
    target: LanguageModel,
    policy: Policy,
    prompt: Sequence[int],
    *,
    limit: int,
    is_stop: Callable[[int], bool],
    tally: Tally,
    choose: Callable[[NDArray[np.float32]], int] = greedy,
) -> Generator[Token, None, None]:
    """Continue `prompt`, with the same tokens whatever is guessed.

    Ends after `limit` tokens or with the first stop token, which is handed out too. However it
    ends, and also when its consumer abandons it, both caches hold at most the prompt and the
    tokens handed out, without the last: no forward has seen that one.

    Args:
        target: its cache holds a proper prefix of `prompt` (nothing, for a first request).
        policy: decides who drafts and how much; its drafters' caches hold prefixes of `prompt`.
        prompt: at least one id.
        limit: tokens to hand out at most, at least 1.
        is_stop: whether an id ends the text.
        tally: counts and times what happens here.
        choose: the target's choice from logits of shape [vocabulary].
    """
    context = list(prompt)
    block: tuple[int, ...]
    emitted = 0
    policy.begin(context)
    try:
        with tally.timed("prefill"):
            first = choose(target.extend(context[target.length :])[0])
        block, kept, by = (first,), 0, None
        while True:
            for place, token in enumerate(block):
                context.append(token)
                emitted += 1
                tally.emit()
                yield Token(token, by if place < kept else None)
                if is_stop(token) or emitted == limit:
                    return
            with tally.timed("draft"):
                # The verifying forward itself brings a token, so the last one is never drafted.
                draft = policy.draft(context, limit - emitted - 1)
            with tally.timed("verify") as verifying:
                logits = target.verify([context[-1], *draft.tokens])
            accepted = accept(draft.tokens, map(choose, logits))
            block, kept, by = accepted.tokens, accepted.kept, draft.by
            policy.verified(len(draft.tokens), verifying.seconds)
            tally.round(draft, kept)
            if draft.tokens or draft.forwards:
                with tally.timed("rollback"):
                    _roll_back(target, policy, len(context) + kept)
    finally:
        with tally.timed("rollback"):
            _roll_back(target, policy, len(prompt) + max(emitted - 1, 0))


def _roll_back(target: LanguageModel, policy: Policy, length: int) -> None:
    if length < target.length:
        target.rollback(length)
    policy.keep(length)
