"""Tokens drawn from logits, so that the same seed draws the same text with and without a draft."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tokforge_engine.choice import greedy
from tokforge_engine.errors import InvalidRequest
from tokforge_engine.sampling import Sampling

Row: TypeAlias = NDArray[np.float32]

# -log(u) of the numbers u that `_uniform` makes lies between 5.5e-17 and 37.5, so a token whose
# weight is below exp(-42) never comes first in a race with one of weight 1.
_HOPELESS = math.exp(-42.0)
_COLDEST = 1e-30
# Far above what float32 loses.
_ROUNDING = 1e-3
_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 2**64 - 1
_PIECE = 8192


class Sampler:
    """Chooses the tokens of one answer, one after the other.

    Each token of the vocabulary has its own random number, a pure function of the seed, the place
    in the answer and the id; the token whose number, weighted by probability, comes first is drawn
    (an exponential race, also known as the Gumbel-max trick). So a draft that reads the same
    numbers draws what the target draws wherever they see the same probabilities.

    Args:
        sampling: with a seed where `sampling.draws`.
        prompt: what the answer follows.
        vocabulary: number of columns of the target's logits.

    Raises:
        InvalidRequest: a token with a bias is outside the vocabulary.
    """

    def __init__(self, sampling: Sampling, prompt: Sequence[int], vocabulary: int) -> None:
        self._sampling = sampling
        self._place = 0
        self._bias = np.zeros(0, np.float32)
        if sampling.logit_bias:
            self._bias = np.zeros(vocabulary, np.float32)
            for token, bias in sampling.logit_bias:
                if token >= vocabulary:
                    raise InvalidRequest(
                        f"a token id with a bias expected 0 to {vocabulary - 1}, got {token}"
                    )
                self._bias[token] += bias
        self._seen = np.zeros(vocabulary, bool)
        self._seen[list(prompt)] = True
        self._answered = np.zeros(vocabulary, bool)

    def __call__(self, row: Row) -> int:
        """The target's next token, from logits of shape [vocabulary]; the place moves on."""
        token = self.guess(row, 0)
        self._place += 1
        self._seen[token] = self._answered[token] = True
        return token

    def guess(self, row: Row, ahead: int) -> int:
        """A draft's token for a place `ahead` of the next one.

        Args:
            row: logits of at most the target's vocabulary.
            ahead: 0 for the next place; negative for places that have been filled.
        """
        scores = self._adjusted(row)
        likeliest = greedy(scores)
        if not self._sampling.draws:
            return likeliest
        ids, weights = candidates(scores, self._sampling)
        return int(ids[self._first(ids, weights, self._place + ahead)])

    def _adjusted(self, row: Row) -> Row:
        sampling, size = self._sampling, len(row)
        if self._bias.size:
            row = row + self._bias[:size]
        if sampling.repetition_penalty != 1.0:
            row, penalty = row.copy(), np.float32(sampling.repetition_penalty)
            seen = np.flatnonzero(self._seen[:size])
            row[seen] = np.where(row[seen] > 0, row[seen] / penalty, row[seen] * penalty)
        if sampling.presence_penalty:
            row = row.copy()
            row[self._answered[:size]] -= np.float32(sampling.presence_penalty)
        return row

    def _first(self, ids: NDArray[np.int64], weights: Row, place: int) -> int:
        """Which of `ids` comes first in the race, as an index."""
        uniform = self._uniform(ids, place)
        heaviest = int(weights.argmax())
        bound = -math.log(uniform[heaviest]) / float(weights[heaviest]) * (1.0 + _ROUNDING)
        # As -log(u) is at least 1 - u, few can come before the heaviest.
        hopeful = np.flatnonzero(1.0 - uniform <= bound * weights)
        return int(hopeful[np.argmin(-np.log(uniform[hopeful]) / weights[hopeful])])

    def _uniform(self, ids: NDArray[np.int64], place: int) -> NDArray[np.float64]:
        """A number in (0, 1) for each id: the finisher of SplitMix64 over seed, place and id."""
        assert self._sampling.seed is not None
        key = _mix(np.array([(self._sampling.seed + place * _GOLDEN) & _WORD], np.uint64))
        uniform = np.empty(len(ids))
        # Piece by piece, so that what is in between stays in the processor's cache.
        for start in range(0, len(ids), _PIECE):
            bits = ids[start : start + _PIECE].astype(np.uint64)
            bits *= np.uint64(_GOLDEN)
            bits ^= key
            uniform[start : start + _PIECE] = _mix(bits) >> np.uint64(11)
        uniform += 0.5
        uniform *= 2.0**-53
        return uniform


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """In place."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words ^= words >> np.uint64(shift)
        words *= np.uint64(factor)
    words ^= words >> np.uint64(31)
    return words


def candidates(scores: Row, sampling: Sampling) -> tuple[NDArray[np.int64], Row]:
    """Which tokens may be drawn, and their weights, of which the largest is 1.

    Args:
        scores: finite maximum, shape [vocabulary].
        sampling: with a temperature above 0.

    Returns:
        Ids in ascending order and as many weights, proportional to the probabilities.
    """
    with np.errstate(over="ignore"):
        weights = scores - scores.max()
        weights /= np.float32(max(sampling.temperature, _COLDEST))
    np.exp(weights, out=weights)
    least, total = _HOPELESS, None
    if 0 < sampling.top_k < len(scores):
        least = max(least, float(np.partition(weights, -sampling.top_k)[-sampling.top_k]))
    elif sampling.top_p < 1.0:
        total = float(weights.sum(dtype=np.float64))
        # What lies below this has less than 1 - top_p in all: few tokens are left to be sorted.
        least = max(least, (1.0 - sampling.top_p) * total / len(scores) * (1.0 - _ROUNDING))
    ids = np.flatnonzero(weights >= np.float32(max(least, sampling.min_p)))
    weights = weights[ids]
    if 0 < sampling.top_k < len(ids):
        # Equals at the border: those with the lowest ids stay.
        first = np.sort(np.argsort(-weights, kind="stable")[: sampling.top_k])
        ids, weights = ids[first], weights[first]
    if sampling.top_p < 1.0:
        keep = _nucleus(weights, sampling.top_p * (total or float(weights.sum(dtype=np.float64))))
        ids, weights = ids[keep], weights[keep]
    return ids, weights


def _nucleus(weights: Row, share: float) -> NDArray[np.bool_]:
    """The fewest, heaviest weights that come to `share` together; of equals the first."""
    ordered = np.sort(weights)[::-1]
    count = int(np.searchsorted(ordered.astype(np.float64).cumsum(), share)) + 1
    least = ordered[min(count, len(ordered)) - 1]
    keep: NDArray[np.bool_] = weights > least
    equal = np.flatnonzero(weights == least)
    keep[equal[: count - int(keep.sum())]] = True
    return keep
