"""How sure a target is of given tokens, and how far two settings of it are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tokforge_engine.generation import Scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TOLD = 64


def scored_token(
    token: int, text: bytes, row: NDArray[np.float32], among: Sequence[int] | None
) -> Scored:
    """What logits of shape [vocabulary] say of a token.

    Args:
        token: its id.
        text: its bytes.
        row: the logits in its place.
        among: the ids to tell about; None for the 64 likeliest, of equals the lowest first.
    """
    import numpy as np

    logits = row.astype(np.float64)
    logits -= logits.max()
    logits -= math.log(np.exp(logits).sum())
    ids = np.argsort(-logits, kind="stable")[:_TOLD] if among is None else np.array(among, int)
    return Scored(
        token, text.decode(errors="replace"), tuple(ids.tolist()), tuple(logits[ids].tolist())
    )


def agreement(scored: Sequence[Scored]) -> float:
    """Share of tokens that are the likeliest in their place; of places told about by likelihood."""
    if not scored:
        return 1.0
    return sum(each.token == each.ids[0] for each in scored) / len(scored)


def gap(scored: Scored) -> float:
    """How much likelier the likeliest token is than the second, as a difference of logits."""
    return scored.logprobs[0] - scored.logprobs[1]


def divergence(reference: Sequence[Scored], other: Sequence[Scored]) -> float:
    """Mean Kullback-Leibler divergence a token, in nats, of `other` from `reference`.

    Over the ids that both tell about, and all others as one: a lower bound, and close, since the
    others have next to nothing.
    """
    total = 0.0
    for ours, theirs in zip(reference, other, strict=True):
        assert ours.ids == theirs.ids
        p, q = (
            [*map(math.exp, each.logprobs), max(0.0, 1.0 - sum(map(math.exp, each.logprobs)))]
            for each in (ours, theirs)
        )
        total += sum(a * math.log(a / max(b, 1e-30)) for a, b in zip(p, q, strict=True) if a > 0.0)
    return max(0.0, total / max(len(reference), 1))


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first place where two answers differ, one that ends earlier included, or None."""
    for place, (ours, theirs) in enumerate(zip(one, other, strict=False)):
        if ours != theirs:
            return place
    return None if len(one) == len(other) else min(len(one), len(other))
