"""How a token is chosen from one row of logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from tokforge_engine.errors import EngineError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Choose: TypeAlias = Callable[[NDArray[np.float32]], int]


def greedy(row: NDArray[np.float32]) -> int:
    """The id with the largest logit; of equals the lowest.

    Args:
        row: logits of shape [vocabulary].

    Raises:
        EngineError: the largest logit is not a finite number, so the row means nothing.
    """
    token = int(row.argmax())
    largest = float(row[token])
    if largest - largest != 0.0:
        raise EngineError(
            f"the model computed logits that are not numbers (the largest is {largest})",
            hint="another precision or memory setting may help; verify the bundle with --full",
        )
    return token
