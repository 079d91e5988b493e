"""An answer on its way out: text and tokens, in as many messages as people can see."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tokforge_engine.decoding import Token
from tokforge_engine.detokenizing import Detokenizer
from tokforge_engine.generation import TokenLogprobs
from tokforge_engine.messages import Part, Report
from tokforge_engine.statistics import Tally

Send = Callable[[Report], None]

# After the first, pieces go out at most this often, as often as films show pictures: people do not
# see more, and each costs a message and a switch of processes.
_PIECE_SECONDS = 0.04


class Pieces:
    """Collects tokens and sends them with what they say, the first at once.

    Tokens become text where a piece goes out, several in a row: after each forward of a model this
    code would be cold in the processor's caches, and take several times as long. Where a text may
    end the answer, each becomes text as it comes.

    Args:
        request: whose answer it is.
        send: takes reports.
        tally: counts what was drafted so far.
        text: makes text of ids.
        recorded: what there is to tell of each token, at least of those that were added; empty
            where nobody asked.
    """

    def __init__(
        self,
        request: int,
        send: Send,
        tally: Tally,
        text: Detokenizer,
        recorded: Sequence[TokenLogprobs] = (),
    ) -> None:
        self._request = request
        self._send = send
        self._tally = tally
        self._detokenizer = text
        self._sent_at = float("-inf")
        self._texts: list[str] = []
        self._texts_by: list[str | None] = []
        self._ids: list[int] = []
        self._ids_by: list[str | None] = []
        self._recorded = recorded
        self._sent_ids = 0
        # How many of these ids have become text.
        self._said = 0
        self._sent: list[str] = []

    @property
    def text(self) -> str:
        """What was sent."""
        return "".join(self._sent)

    @property
    def stopped(self) -> bool:
        """Whether a stop text was met."""
        return self._detokenizer.stopped

    def add(self, token: Token) -> None:
        """Take a token."""
        self._ids.append(token.id)
        self._ids_by.append(token.drafted_by)
        if self._detokenizer.may_stop:
            self._say()
        if time.monotonic() - self._sent_at >= _PIECE_SECONDS:
            self._flush()

    def finish(self) -> None:
        """Send the rest; no token follows."""
        self._say()
        self._add(self._detokenizer.finish(), None)
        self._flush()

    def _say(self) -> None:
        """Make text of the ids that came since."""
        for place in range(self._said, len(self._ids)):
            self._add(self._detokenizer.add(self._ids[place]), self._ids_by[place])
        self._said = len(self._ids)

    def _add(self, text: str, by: str | None) -> None:
        if text and self._texts and self._texts_by[-1] == by:
            self._texts[-1] += text
        elif text:
            self._texts.append(text)
            self._texts_by.append(by)

    def _flush(self) -> None:
        self._say()
        if not self._texts and not self._ids:
            return
        sent, self._sent_ids = self._sent_ids, self._sent_ids + len(self._ids)
        self._send(
            Part(
                self._request,
                *(tuple(self._texts), tuple(self._texts_by)),
                *(tuple(self._ids), tuple(self._ids_by)),
                tuple(self._recorded[sent : self._sent_ids]),
                self._tally.drafted,
                self._tally.accepted,
            )
        )
        self._sent += self._texts
        self._texts, self._texts_by, self._ids, self._ids_by, self._said = [], [], [], [], 0
        self._sent_at = time.monotonic()
