"""How likely each token of an answer was to the target, and what else was."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tokforge_engine.generation import Likely, TokenLogprobs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tokforge_engine.choice import Choose


class Recorder:
    """Wraps the choice of tokens and keeps their log probabilities, in the order of the choices.

    They are the model's own: before temperature, biases, penalties and grammars.

    Args:
        choose: takes one row of logits.
        top: how many of the likeliest ids are kept with each token.
        token_bytes: the bytes of an id.
    """

    def __init__(self, choose: Choose, top: int, token_bytes: Callable[[int], bytes]) -> None:
        self._choose = choose
        self._top = top
        self._token_bytes = token_bytes
        self.recorded: list[TokenLogprobs] = []

    def __call__(self, row: NDArray[np.float32]) -> int:
        """The choice from logits of shape [vocabulary]."""
        import numpy as np

        token = self._choose(row)
        best = row.max()
        total = float(best) + float(np.log(np.exp(row - best).sum(dtype=np.float64)))
        ids = np.argpartition(-row, min(self._top, len(row) - 1))[: self._top]
        likeliest = sorted(ids.tolist(), key=lambda id: (-row[id], id))
        self.recorded.append(
            TokenLogprobs(
                self._likely(token, row, total),
                tuple(self._likely(id, row, total) for id in likeliest),
            )
        )
        return token

    def _likely(self, token: int, row: NDArray[np.float32], total: float) -> Likely:
        return Likely(token, self._token_bytes(token), float(row[token]) - total)
