"""Tokens to text, while they arrive."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence


class Detokenizer:
    """Turns ids into text as early as it is certain.

    Invariants: the texts returned by `add` and `finish`, joined, are the decoded bytes of all
    added ids, cut before the first stop text; a character is never split; text is held back only
    while it could be the beginning of a stop text. Bytes that are not UTF-8 become U+FFFD, as
    ``bytes.decode(errors="replace")`` does it.

    Args:
        token_bytes: the bytes of an id.
        stop: texts that end the answer.
    """

    def __init__(self, token_bytes: Callable[[int], bytes], stop: Sequence[str] = ()) -> None:
        self._token_bytes = token_bytes
        self._stop = tuple(stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self.stopped = False
        """Whether a stop text was met; ids added after it have no effect."""

    @property
    def may_stop(self) -> bool:
        """Whether any text ends the answer."""
        return bool(self._stop)

    def add(self, token: int) -> str:
        """Text that has become certain with this id; often empty."""
        return self._release(self._decoder.decode(self._token_bytes(token)))

    def finish(self) -> str:
        """What was held back, now that no id follows."""
        text = self._release(self._decoder.decode(b"", final=True)) + self._held
        self._held = ""
        return text

    def _release(self, text: str) -> str:
        if self.stopped:
            return ""
        text = self._held + text
        found = [at for stop in self._stop if (at := text.find(stop)) >= 0]
        if found:
            self.stopped = True
            self._held = ""
            return text[: min(found)]
        keep = max((overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def overlap(text: str, stop: str) -> int:
    """How many characters at the end of `text` are a beginning of `stop`, but not all of it."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
