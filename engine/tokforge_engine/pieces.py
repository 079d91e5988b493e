"""An answer on its way out: text and tokens, in as many messages as people can see."""

from __future__ import annotations

import time
from collections.abc import Callable

from tokforge_engine.decoding import Token
from tokforge_engine.generation import Piece, Run, TokenLogprobs
from tokforge_engine.messages import Part, Report
from tokforge_engine.statistics import Tally

Send = Callable[[Report], None]

# After the first, pieces go out at most this often: people do not see more, and each costs a
# message and a switch of processes.
_PIECE_SECONDS = 0.025


class Pieces:
    """Collects what is certain and sends it, the first at once.

    Args:
        request: whose answer it is.
        send: takes reports.
        tally: counts what was drafted so far.
    """

    def __init__(self, request: int, send: Send, tally: Tally) -> None:
        self._request = request
        self._send = send
        self._tally = tally
        self._sent_at = float("-inf")
        self._runs: list[Run] = []
        self._tokens: list[Token] = []
        self._logprobs: list[TokenLogprobs] = []
        self._sent: list[str] = []

    @property
    def text(self) -> str:
        """What was sent."""
        return "".join(self._sent)

    def add(
        self, text: str, token: Token | None = None, logprobs: TokenLogprobs | None = None
    ) -> None:
        """Take what became certain with a token, and what is known of the token."""
        by = token.drafted_by if token else None
        if text and self._runs and self._runs[-1].drafted_by == by:
            self._runs[-1] = Run(self._runs[-1].text + text, by)
        elif text:
            self._runs.append(Run(text, by))
        if token:
            self._tokens.append(token)
        if logprobs:
            self._logprobs.append(logprobs)
        if time.monotonic() - self._sent_at >= _PIECE_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send what was collected."""
        if self._runs or self._tokens:
            so_far = self._tally.statistics()
            piece = Piece(
                tuple(self._runs),
                tuple(self._tokens),
                tuple(self._logprobs),
                so_far.drafted,
                so_far.accepted,
            )
            self._send(Part(self._request, piece))
            self._sent.append(piece.text)
            self._runs, self._tokens, self._logprobs = [], [], []
            self._sent_at = time.monotonic()
