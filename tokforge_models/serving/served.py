"""What is served: a loaded pair, and what people and programs are told of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tokforge_engine import GenerateOptions, Message, Piece, Result


class RunningAnswer(Protocol):
    """A running generation; `tokforge_engine.Generation` is one."""

    @property
    def in_thought(self) -> bool:
        """Whether it begins within a thought that the prompt opened; known with its first piece."""
        ...

    @property
    def result(self) -> Result:
        """The finished answer, once all pieces were read."""
        ...

    def __iter__(self) -> Iterator[Piece]: ...

    def cancel(self) -> None:
        """End it, from any thread."""
        ...


class Model(Protocol):
    """Answers one request after the other; `tokforge_engine.Session` does."""

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        ...

    @property
    def max_d(self) -> int:
        """The largest draft length."""
        ...

    def generate(self, prompt: Sequence[Message], options: GenerateOptions, /) -> RunningAnswer:
        """Begin an answer."""
        ...

    def close(self) -> None:
        """End its process, from any thread; an answer that is being made fails."""
        ...


@dataclass(frozen=True, slots=True)
class Served:
    """A loaded pair.

    Attributes:
        model: answers.
        name: the target's id, which requests name.
        draft: the draft's id, or None.
        lookup: whether tokens may be drafted from the context.
        reason: why this draft, or none.
        rule: the registry's rule that said so, or None.
        notes: what else a person should know.
        d: draft length of requests that name none.
    """

    model: Model
    name: str
    draft: str | None
    lookup: bool
    reason: str
    rule: str | None
    notes: tuple[str, ...]
    d: int | Literal["auto"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How an answer ended.

    Attributes:
        result: the answer.
        waited: seconds from its request to its beginning.
    """

    result: Result
    waited: float
