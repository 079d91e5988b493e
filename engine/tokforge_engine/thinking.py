"""Thoughts split from the answer, while both arrive."""

from __future__ import annotations

from dataclasses import dataclass

from tokforge_engine.detokenizing import overlap

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Said:
    """A part of what a model says.

    Attributes:
        text: whole characters.
        thought: whether it is between the marks, which are part of neither.
    """

    text: str
    thought: bool


def opens_thought(prompt: str) -> bool:
    """Whether a prompt ends within a thought, which the answer then goes on with.

    >>> opens_thought("...<|im_start|>assistant\\n<think>\\n")
    True
    """
    return prompt.rstrip().endswith(_OPEN)


class ThinkSplitter:
    """Splits what stands between ``<think>`` and ``</think>`` from the rest.

    Invariant: all texts joined are what was added, without the marks. Text is held back only while
    it could be the beginning of a mark. Thoughts that are never closed are thoughts to the end.

    Args:
        thinking: whether the text begins within a thought, since its prompt opened one.
    """

    def __init__(self, *, thinking: bool = False) -> None:
        self._held = ""
        self._thinking = thinking

    def add(self, text: str) -> list[Said]:
        """What has become certain with `text`."""
        self._held += text
        said: list[Said] = []
        while True:
            mark = _CLOSE if self._thinking else _OPEN
            before, found, after = self._held.partition(mark)
            if not found:
                break
            self._say(said, before)
            self._held = after
            self._thinking = not self._thinking
        keep = overlap(self._held, mark)
        self._say(said, self._held[: len(self._held) - keep])
        self._held = self._held[len(self._held) - keep :]
        return said

    def finish(self) -> list[Said]:
        """What was held back, now that nothing follows."""
        said: list[Said] = []
        self._say(said, self._held)
        self._held = ""
        return said

    def _say(self, said: list[Said], text: str) -> None:
        if text:
            said.append(Said(text, self._thinking))
