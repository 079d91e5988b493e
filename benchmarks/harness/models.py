"""Models loaded in this process, each forward of them written down.

MNN prints to file descriptor 1, so `quiet` gives that to standard error and keeps a copy for what a
benchmark prints.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tokforge_engine.bundle_check import check_bundle
from tokforge_engine.mnn_model import MnnModel
from tokforge_engine.settings import RuntimeSettings

if TYPE_CHECKING:
    from tokforge_engine.model import Logits

Role = Literal["target", "draft"]


@dataclass(frozen=True, slots=True)
class Forward:
    """One forward: whose, of how many tokens, and how long it took."""

    role: Role
    tokens: int
    seconds: float


class WatchedModel:
    """A language model that writes its forwards into a list.

    Args:
        model: does the work.
        role: of the model.
        forwards: is added to.
    """

    def __init__(self, model: MnnModel, role: Role, forwards: list[Forward]) -> None:
        self.inner = model
        self._role: Role = role
        self._forwards = forwards

    @property
    def vocabulary(self) -> int:
        """As the model's."""
        return self.inner.vocabulary

    @property
    def length(self) -> int:
        """As the model's."""
        return self.inner.length

    @property
    def context_length(self) -> int | None:
        """As the model's."""
        return self.inner.context_length

    def extend(self, ids: Sequence[int]) -> Logits:
        """As the model's."""
        began = time.perf_counter()
        logits = self.inner.extend(ids)
        self._wrote(len(ids), began)
        return logits

    def verify(self, ids: Sequence[int]) -> Logits:
        """As the model's."""
        began = time.perf_counter()
        logits = self.inner.verify(ids)
        self._wrote(len(ids), began)
        return logits

    def rollback(self, length: int) -> None:
        """As the model's."""
        self.inner.rollback(length)

    def _wrote(self, tokens: int, began: float) -> None:
        self._forwards.append(Forward(self._role, tokens, time.perf_counter() - began))


def quiet() -> None:
    """Let nothing but our own prints reach standard output."""
    sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)


def load(bundle: Path, threads: int, widths: int = 1) -> MnnModel:
    """Load a bundle that may verify so many tokens in one forward."""
    scratch = Path(tempfile.mkdtemp(prefix="tokforge-bench-"))
    return MnnModel(check_bundle(bundle), RuntimeSettings(threads=threads), scratch, widths=widths)
