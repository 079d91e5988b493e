"""What a session and its worker process say to each other, and how.

A frame is the length of its body in 4 bytes, most significant first, and the body: one of the
values below, pickled. The reader builds nothing but these values, whatever the bytes say.

Session to worker: `Load` once, then `Generate`, `Score` and `Cancel`; the end of the stream ends
the worker.
Worker to session: `Phase` before each step that could crash, `Ready` once, then for each request
`Begun`, `Prefilled`s, `Part`s and one of `Finished`, `Scores`, `Cancelled` and `Failed`.
"""

from __future__ import annotations

import io
import pickle
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from tokforge_engine.bundle_check import CheckedBundle
from tokforge_engine.costs import Costs
from tokforge_engine.decoding import Token
from tokforge_engine.generation import (
    GenerateOptions,
    Likely,
    Message,
    Piece,
    Result,
    Run,
    Scored,
    TokenLogprobs,
    ToolCall,
)
from tokforge_engine.memory import Shape
from tokforge_engine.sampling import Sampling
from tokforge_engine.settings import Numerics, RuntimeSettings
from tokforge_engine.statistics import DrafterCount, Statistics

_MAX_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class LoadModel:
    """A model to load.

    Attributes:
        label: how messages and tokens name it.
        bundle: checked.
        settings: how to run it.
        context_length: where the bundle does not say.
    """

    label: str
    bundle: CheckedBundle
    settings: RuntimeSettings
    context_length: int | None


@dataclass(frozen=True, slots=True)
class Load:
    """Load a target and, perhaps, its draft, ready to verify up to `max_d` drafted tokens.

    `lookup` says whether tokens may be drafted from the context, `learned` names a file that keeps
    what is learned about the pair.
    """

    target: LoadModel
    draft: LoadModel | None
    lookup: bool
    learned: Path | None
    max_d: int
    numerics: Numerics


@dataclass(frozen=True, slots=True)
class Generate:
    """Answer a chat. `request` is a number that no other request of this session has."""

    request: int
    messages: tuple[Message, ...]
    options: GenerateOptions


@dataclass(frozen=True, slots=True)
class Score:
    """Say what the target thinks of a given answer to a chat.

    Attributes:
        request: as in `Generate`.
        messages: the chat.
        token_ids: the answer.
        among: for each of its places the ids to tell about; None for the likeliest.
    """

    request: int
    messages: tuple[Message, ...]
    token_ids: tuple[int, ...]
    among: tuple[tuple[int, ...], ...] | None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop answering `request` after the round that runs; too late is not an error."""

    request: int


@dataclass(frozen=True, slots=True)
class Phase:
    """What the worker does from now on, for the message in case it is the last thing it does."""

    doing: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The models are loaded.

    Attributes:
        costs: of their forwards, where they were measured.
    """

    costs: Costs | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """A request's prompt is made; `in_thought` says whether the answer begins within a thought."""

    request: int
    in_thought: bool


@dataclass(frozen=True, slots=True)
class Prefilled:
    """So many of the prompt's tokens have been read, of so many."""

    request: int
    done: int
    total: int


class Part(NamedTuple):
    """A piece of an answer, taken apart: to write down a dataclass takes several times as long.

    Attributes:
        texts: of its runs.
        texts_by: who guessed each run.
        ids: of its tokens.
        ids_by: who guessed each token.
        logprobs, drafted, accepted: as the piece has them.
    """

    request: int
    texts: tuple[str, ...]
    texts_by: tuple[str | None, ...]
    ids: tuple[int, ...]
    ids_by: tuple[str | None, ...]
    logprobs: tuple[TokenLogprobs, ...] = ()
    drafted: int = 0
    accepted: int = 0

    @property
    def piece(self) -> Piece:
        """The piece."""
        return Piece(
            tuple(map(Run, self.texts, self.texts_by)),
            tuple(map(Token, self.ids, self.ids_by)),
            self.logprobs,
            self.drafted,
            self.accepted,
        )


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer."""

    request: int
    result: Result


@dataclass(frozen=True, slots=True)
class Scores:
    """The answer to `Score`, place by place."""

    request: int
    scored: tuple[Scored, ...]


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The request was cancelled and the caches are rolled back."""

    request: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Loading (`request` is None) or a request failed, and the worker lives.

    Attributes:
        error: name of a class in `tokforge_engine.errors`.
    """

    request: int | None
    error: str
    message: str
    hint: str


Order = Load | Generate | Score | Cancel
Report = Phase | Ready | Begun | Prefilled | Part | Finished | Scores | Cancelled | Failed

_VALUES = {
    (value.__module__, value.__qualname__): value
    for value in (
        *(Load, LoadModel, Generate, Score, Cancel),
        *(Phase, Ready, Begun, Prefilled, Part, Finished, Scores, Cancelled, Failed),
        *(CheckedBundle, Shape, RuntimeSettings, GenerateOptions, Sampling, Message, ToolCall),
        *(Result, Scored, Statistics, DrafterCount, Likely, TokenLogprobs),
        *(Costs, type(Path())),
    )
}


class BadMessage(Exception):
    """The bytes are not a message."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        try:
            return _VALUES[module, name]
        except KeyError:
            raise BadMessage(f"{module}.{name} is not part of the protocol") from None


def write(stream: IO[bytes], message: Order | Report) -> None:
    """Write one frame and flush it.

    Raises:
        BadMessage: it is larger than a reader takes, or cannot be written down.
        OSError: nobody reads at the other end.
    """
    try:
        body = pickle.dumps(message)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise BadMessage(str(error)) from None
    if len(body) > _MAX_BYTES:
        raise BadMessage(f"a message of {len(body):,} bytes")
    stream.write(struct.pack(">I", len(body)) + body)
    stream.flush()


def check(order: Order) -> None:
    """Know that the worker will be able to read an order that callers have a part in.

    Raises:
        BadMessage: a value in it is of a type of the caller's own, or it is too large.
    """
    stream = io.BytesIO()
    write(stream, order)
    stream.seek(0)
    read(stream)


def read(stream: IO[bytes]) -> object | None:
    """Read one frame; None at the end of the stream, also in the middle of a frame.

    Raises:
        BadMessage: the bytes are not a message.
    """
    head = stream.read(4)
    if len(head) < 4:
        return None
    (size,) = struct.unpack(">I", head)
    if size > _MAX_BYTES:
        raise BadMessage(f"a message of {size:,} bytes")
    body = stream.read(size)
    if len(body) < size:
        return None
    try:
        message: object = _Unpickler(io.BytesIO(body)).load()
    except BadMessage:
        raise
    except Exception as error:  # noqa: BLE001 - what unpickling raises is not specified
        raise BadMessage(str(error)) from None
    return message
