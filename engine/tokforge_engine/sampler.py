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
_HOPELESS = 42.0
# In a logarithm of a weight: far above what float32 loses.
_ROUNDING = 1e-3
_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 2**64 - 1


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
        winner = int(np.argmin(-np.log(self._uniform(ids, self._place + ahead)) / weights))
        return int(ids[winner])

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

    def _uniform(self, ids: NDArray[np.int64], place: int) -> NDArray[np.float64]:
        """A number in (0, 1) for each id: the finisher of SplitMix64 over seed, place and id."""
        assert self._sampling.seed is not None
        key = _mix(np.array([(self._sampling.seed + place * _GOLDEN) & _WORD], np.uint64))
        bits = _mix(key ^ (ids.astype(np.uint64) * np.uint64(_GOLDEN)))
        return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def candidates(scores: Row, sampling: Sampling) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Which tokens may be drawn, and their weights, of which the largest is 1.

    Args:
        scores: finite maximum, shape [vocabulary].
        sampling: with a temperature above 0.

    Returns:
        Ids in ascending order and as many weights, proportional to the probabilities.
    """
    temperature, best = sampling.temperature, scores.max()
    floor = best - np.float32(_HOPELESS * temperature)
    total = None
    if 0 < sampling.top_k < len(scores):
        floor = max(floor, np.partition(scores, -sampling.top_k)[-sampling.top_k])
    elif sampling.top_p < 1.0:
        total = _total(scores, best, temperature)
        # What lies below this has less than 1 - top_p in all: few tokens are left to be sorted.
        light = (1.0 - sampling.top_p) * total / len(scores)
        floor = max(floor, best + np.float32(temperature * (math.log(light) - _ROUNDING)))
    ids = np.flatnonzero(scores >= floor)
    if 0 < sampling.top_k < len(ids):
        # Equals at the border: those with the lowest ids stay.
        ids = np.sort(ids[np.argsort(-scores[ids], kind="stable")[: sampling.top_k]])
    weights = np.exp((scores[ids].astype(np.float64) - best) / temperature)
    keep = weights >= sampling.min_p
    if sampling.top_p < 1.0:
        keep &= _nucleus(weights, sampling.top_p * (total or float(weights.sum())))
    return ids[keep], weights[keep]


def _total(scores: Row, best: np.float32, temperature: float) -> float:
    """The sum of all weights, in one pass in the precision of the logits."""
    with np.errstate(over="ignore"):
        weights = (scores - best) / np.float32(max(temperature, 1e-30))
    return float(np.exp(weights, out=weights).sum())


def _nucleus(weights: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
    """The fewest, heaviest weights that come to `share` together; of equals the first."""
    order = np.argsort(-weights, kind="stable")
    count = int(np.searchsorted(np.cumsum(weights[order]), share)) + 1
    keep = np.zeros(len(weights), bool)
    keep[order[:count]] = True
    return keep
