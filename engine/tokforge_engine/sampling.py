"""How a text is sampled: the values that a request may set."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tokforge_engine.errors import InvalidRequest

MAX_SEED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """From which tokens the next one is drawn, and how likely each is.

    Applied in this order: bias and penalties, temperature, top-k, top-p, min-p. Whatever is set,
    paired text is plain text for equal logits and the same seed.

    Attributes:
        temperature: 0 to 100; 0 takes the most likely token and draws nothing.
        top_k: only the k most likely tokens, of equals the lowest ids; 0 means all.
        top_p: only the fewest, most likely tokens that have this probability together.
        min_p: only tokens at least this many times as likely as the most likely one.
        repetition_penalty: positive logits of tokens in the prompt or the answer are divided by
            it and negative ones multiplied; 1 changes nothing.
        presence_penalty: taken from the logits of tokens that are in the answer.
        logit_bias: pairs of a token id and what is added to its logit.
        seed: 0 to 2**63 - 1; None draws one, which the result tells.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, 0.0, 100.0)
        _check("top_k", self.top_k, 0, MAX_SEED)
        _check("top_p", self.top_p, 0.0, 1.0)
        _check("min_p", self.min_p, 0.0, 1.0)
        _check("repetition_penalty", self.repetition_penalty, 0.01, 100.0)
        _check("presence_penalty", self.presence_penalty, -100.0, 100.0)
        for token, bias in self.logit_bias:
            _check("the bias of a token", bias, -1000.0, 1000.0)
            _check("a token id with a bias", token, 0, MAX_SEED)
        if self.seed is not None:
            _check("seed", self.seed, 0, MAX_SEED)

    @property
    def draws(self) -> bool:
        """Whether chance has a part in it."""
        return self.temperature > 0.0

    @property
    def is_plain_greedy(self) -> bool:
        """Whether the next token is simply the one with the largest logit."""
        return (
            not self.draws
            and not self.logit_bias
            and self.repetition_penalty == 1.0
            and self.presence_penalty == 0.0
        )


def _check(name: str, value: float, least: float, most: float) -> None:
    if not (math.isfinite(value) and least <= value <= most):
        raise InvalidRequest(f"{name} expected {least:g} to {most:g}, got {value:g}")
