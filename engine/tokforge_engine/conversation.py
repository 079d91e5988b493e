"""What the caches of a session hold, so that a chat's next turn reads only what is new.

Ids that were generated are kept: the text of an answer that comes back in the next prompt is not
encoded again, which could give other ids, but replaced by the ids that it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from operator import eq


class Conversation:
    """The latest prompt and answer, as text and as ids.

    A prompt is recognised up to one of its cuts: places where text and ids are known to end
    together, which are the ends of prompts and of answers.
    """

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._text = ""
        # Lengths in characters and in ids, ascending.
        self._cuts: list[tuple[int, int]] = []

    @property
    def ids(self) -> Sequence[int]:
        """Everything read and generated, in order."""
        return self._ids

    def prompt(self, text: str, encode: Callable[[str, bool], list[int]]) -> list[int]:
        """Ids of a prompt, those that are known taken over.

        Args:
            text: the whole prompt, as the chat template renders it.
            encode: ids of a text, which may continue another one.
        """
        for characters, tokens in reversed(self._cuts):
            if text.startswith(self._text[:characters]):
                return [*self._ids[:tokens], *encode(text[characters:], True)]
        return encode(text, False)

    def asked(self, text: str, ids: Sequence[int]) -> None:
        """The prompt of the request that begins."""
        same = same_length(self._ids, ids)
        self._cuts = [
            (characters, tokens)
            for characters, tokens in self._cuts
            if tokens <= same and text.startswith(self._text[:characters])
        ]
        self._ids, self._text = list(ids), text
        self._cut()

    def answered(self, text: str, ids: Iterable[int]) -> None:
        """What was generated; `text` is what these ids say."""
        self._ids += ids
        self._text += text
        self._cut()

    def _cut(self) -> None:
        cut = (len(self._text), len(self._ids))
        if cut not in self._cuts[-1:]:
            self._cuts.append(cut)


def same_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two rows of ids have in common, from the first on."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def reusable(cached: Sequence[int], prompt: Sequence[int], starts: Sequence[int] | None) -> int:
    """How many tokens of the cache serve a prompt; the rest is forgotten.

    At least one token of the prompt is left to be read, since its logits are wanted.

    Args:
        cached: ids in the cache.
        prompt: at least one id.
        starts: where forwards of prompts began. A prompt that does not go on from the cache is read
            from one of these, in the same pieces as if the cache were empty: so its numbers do not
            depend on what was there. None where they do not depend on the pieces either.
    """
    same = same_length(cached, prompt)
    if same == len(cached) < len(prompt):
        return same
    most = min(same, len(prompt) - 1)
    if starts is None:
        return most
    return max((start for start in starts if start <= most), default=0)
