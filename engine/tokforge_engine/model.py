"""The seam between decoding and whatever computes logits.

A language model here is a growing row of token ids with one vector of logits behind each of them.
MNN is one implementation (`tokforge_engine.mnn_model`); the tests bring integer automata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Logits: TypeAlias = NDArray[np.float32]


PREFILL_CHUNK = 64
"""Tokens of a prompt fed in one forward, so that reading can be shown and stopped in between.

Even, so that every chunk runs in whole tiles of rows.
"""


class LanguageModel(Protocol):
    """Token ids in, logits out, roll back to a length.

    Logits are float32 of shape ``[rows, vocabulary]`` and may be a view that the next call
    overwrites: take what is needed from them before calling again.
    """

    @property
    def vocabulary(self) -> int:
        """How many ids there are: ids are 0 to vocabulary - 1, and so are the logits' columns."""
        ...

    @property
    def length(self) -> int:
        """Tokens in the KV cache."""
        ...

    @property
    def context_length(self) -> int | None:
        """How many tokens the model was made for, or None where its bundle does not say."""
        ...

    def extend(self, ids: Sequence[int]) -> Logits:
        """Append `ids` (at least one) and return the logits after the last: shape [1, vocabulary].

        Raises:
            EngineError: an id is outside the vocabulary, or the model failed.
        """
        ...

    def verify(self, ids: Sequence[int]) -> Logits:
        """Append `ids` and return the logits after each of them: shape [len(ids), vocabulary].

        Raises:
            EngineError: an id is outside the vocabulary, the model failed, or it was not loaded
                for so many ids in one forward.
        """
        ...

    def rollback(self, length: int) -> None:
        """Forget everything after the first `length` tokens; 0 <= length <= self.length."""
        ...
