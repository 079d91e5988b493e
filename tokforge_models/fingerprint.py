"""What a bundle's content says about whether two models can work together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Compatibility facts of one bundle, read from its files.

    Attributes:
        tokens: the bytes of every real token, by id; padding beyond the tokenizer is not here.
        special_ids: ids that are never text.
        stop_ids: ids that end an answer.
        attention: ``full``, ``linear``, ``mixed`` or ``unknown``.
        context_length: tokens, or None where the bundle does not say.
    """

    tokens: tuple[bytes, ...]
    special_ids: frozenset[int]
    stop_ids: frozenset[int]
    attention: str = "full"
    context_length: int | None = None
