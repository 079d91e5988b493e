"""How far a target in one number format is from its reference, on texts of its own.

The measure is the mean Kullback-Leibler divergence a token, in nats, over the places of a few
answers: `tokforge_engine.scoring.divergence`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tokforge_engine.generation import GenerateOptions, Result, Scored
from tokforge_engine.scoring import divergence
from tokforge_models.measuring.runner import Generate

PROMPTS = (
    "Tell me a short story about a cat.",
    "List ten things that one finds in a kitchen.",
    "Write a function that adds up the even numbers of a list.",
    "Say it in other words: the ship left the harbour before the storm came.",
)


class Scores(Protocol):
    """As `tokforge_engine.Session.score`."""

    def __call__(
        self, prompt: str, token_ids: Sequence[int], among: Sequence[Sequence[int]] | None = None, /
    ) -> tuple[Scored, ...]:
        """Score an answer to a prompt."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """An answer as the reference reads it.

    Attributes:
        prompt: what was asked.
        places: one for each of its tokens.
    """

    prompt: str
    places: tuple[Scored, ...]


@dataclass(frozen=True, slots=True)
class Distance:
    """How one setting reads the same texts.

    Attributes:
        divergence: from the reference, in nats a token.
        digest: of all that was read; two settings with the same one compute the same numbers.
    """

    divergence: float
    digest: str


def answer(generate: Generate, prompt: str, options: GenerateOptions) -> Result:
    """One answer, to its end."""
    generation = generate(prompt, options)
    for _ in generation:
        pass
    return generation.result


def read_texts(score: Scores, answers: Iterable[tuple[str, Sequence[int]]]) -> tuple[Text, ...]:
    """What the reference says of answers; empty ones are left out.

    Args:
        score: of the reference's session.
        answers: prompts, each with the ids of an answer.
    """
    return tuple(Text(prompt, score(prompt, ids)) for prompt, ids in answers if ids)


def distance(score: Scores, texts: Sequence[Text]) -> Distance:
    """How far another setting is from the reference.

    Args:
        score: of that setting's session.
        texts: as the reference has read them.
    """
    there = [place for text in texts for place in text.places]
    here = [
        place
        for text in texts
        for place in score(
            text.prompt,
            [place.token for place in text.places],
            [place.ids for place in text.places],
        )
    ]
    read = repr([place.logprobs for place in here]).encode()
    return Distance(divergence(there, here), hashlib.sha256(read).hexdigest()[:16])
