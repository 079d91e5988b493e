"""What one generation takes and gives: the values of `Session.generate`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

from tokforge_engine.decoding import Token
from tokforge_engine.errors import InvalidRequest
from tokforge_engine.sampling import Sampling
from tokforge_engine.settings import MAX_D
from tokforge_engine.statistics import Statistics

FinishReason = Literal["stop", "length"]

MAX_LOGPROBS = 20


def _check_text(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{name} is not valid Unicode: it holds a lone surrogate") from None
    if "\0" in text:
        raise InvalidRequest(f"{name} holds a NUL character, where MNN would end the text")


def _check_object(name: str, text: str) -> None:
    try:
        value = json.loads(text)
        plain = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        value, plain = None, ""
    if not isinstance(value, dict):
        raise InvalidRequest(f"{name} expected a JSON object, got {text[:40]!r}")
    # An escape in JSON may be what no text may hold; MNN has been seen to die of it.
    _check_text(name, plain)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that a model has called.

    Attributes:
        name: the function's.
        arguments: a JSON object, as text.
    """

    name: str
    arguments: str

    def __post_init__(self) -> None:
        _check_text("a tool call's name", self.name)
        _check_text("a tool call's arguments", self.arguments)
        _check_object("a tool call's arguments", self.arguments)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat, as the bundle's template takes it.

    Attributes:
        role: ``system``, ``user`` or ``assistant``; others where the template knows them.
        content: its text.
        reasoning: what was thought before it, for templates that take it apart from the content.
        tool_calls: functions that it calls, for templates that know them.
    """

    role: str
    content: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()

    def __post_init__(self) -> None:
        if not self.role:
            raise InvalidRequest("a message's role is empty; expected system, user or assistant")
        _check_text("a message's role", self.role)
        _check_text("a message's content", self.content)
        _check_text("a message's reasoning", self.reasoning)


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """How to continue a prompt.

    Attributes:
        max_tokens: most tokens to emit, at least 1.
        d: draft length, 0 to `MAX_D`; 0 is plain decoding; ``auto`` picks in each round what costs
            and chances, measured as it goes, make best. Without a drafter it has no effect.
        drafter: who may guess, as far as the session has it: the draft ``model``, ``lookup`` in
            the context, or ``any``: with ``auto`` the better one in each round, with a fixed d the
            model, or lookup where there is none.
        stop: texts that end the answer; they and what follows are not part of it.
        ignore_stop_tokens: go on past the tokens that end an answer (for measurements).
        enable_thinking: for templates that know it: whether the model may think before it answers;
            None leaves it to the template.
        sampling: how each token is chosen; the most likely one, unless it says otherwise.
        raw: continue the messages' texts as they are, without the chat template.
        tools: functions that the model may call, each a JSON object as the template takes it.
        grammar: what the answer must be, see `tokforge_engine.constraint`; None for any text.
        logprobs: tell with each token how likely it was, and of so many of the likeliest; None to
            tell nothing.
    """

    max_tokens: int = 512
    d: int | Literal["auto"] = 3
    drafter: Literal["any", "model", "lookup"] = "any"
    stop: tuple[str, ...] = ()
    ignore_stop_tokens: bool = False
    enable_thinking: bool | None = None
    sampling: Sampling = field(default_factory=Sampling)
    raw: bool = False
    tools: tuple[str, ...] = ()
    grammar: str | None = None
    logprobs: int | None = None

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise InvalidRequest(f"max_tokens expected at least 1, got {self.max_tokens}")
        if self.d != "auto" and not 0 <= self.d <= MAX_D:
            raise InvalidRequest(f"d expected auto or 0 to {MAX_D}, got {self.d}")
        if self.drafter not in {"any", "model", "lookup"}:
            raise InvalidRequest(f"drafter expected any, model or lookup, got {self.drafter!r}")
        for text in self.stop:
            if not text:
                raise InvalidRequest("a stop text is empty; expected at least one character")
            _check_text("a stop text", text)
        for tool in self.tools:
            _check_text("a tool", tool)
            _check_object("a tool", tool)
        if self.raw and self.tools:
            raise InvalidRequest("tools are shown by the chat template; expected none with raw")
        if self.grammar is not None and self.ignore_stop_tokens:
            raise InvalidRequest("a grammar says where the answer ends; stop tokens must count")
        if self.logprobs is not None and not 0 <= self.logprobs <= MAX_LOGPROBS:
            raise InvalidRequest(f"logprobs expected 0 to {MAX_LOGPROBS}, got {self.logprobs}")


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text with one origin.

    Attributes:
        text: whole characters, at least one.
        drafted_by: who guessed the token with which it became certain; None for the target.
    """

    text: str
    drafted_by: str | None


@dataclass(frozen=True, slots=True)
class Likely:
    """A token that may stand in a place.

    Attributes:
        id: in the target's vocabulary.
        text: its UTF-8 bytes, perhaps a part of a character.
        logprob: natural logarithm of its probability there.
    """

    id: int
    text: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """What the target thought of a token that it emitted.

    Attributes:
        chosen: the token.
        top: the likeliest in its place, in order; the chosen one is among them if it is likely.
    """

    chosen: Likely
    top: tuple[Likely, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the answer, as soon as it is certain.

    Attributes:
        runs: its text, by origin; the texts of all pieces together are the answer.
        tokens: the tokens that came with it; a character or a possible stop text may be held
            back, so a piece may have tokens and no text.
        logprobs: of each of the tokens, where they were asked for.
        drafted: guesses that were verified so far in this answer.
        accepted: how many of them the target agreed with.
    """

    runs: tuple[Run, ...]
    tokens: tuple[Token, ...]
    logprobs: tuple[TokenLogprobs, ...] = ()
    drafted: int = 0
    accepted: int = 0

    @property
    def text(self) -> str:
        """Whole characters, perhaps none."""
        return "".join(run.text for run in self.runs)


@dataclass(frozen=True, slots=True)
class Scored:
    """What a target thinks of a token in its place, read in one go with those around it.

    Attributes:
        token: its id.
        text: its text; a part of a character is shown as U+FFFD.
        ids: the likeliest ids in its place, in order, or those that were asked for.
        logprobs: logarithms of their probabilities.
    """

    token: int
    text: str
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """A finished generation.

    Attributes:
        text: the answer: the decoded `token_ids`, cut before a stop text.
        token_ids: emitted ids, without the stop token.
        finish_reason: ``stop`` (a stop token or text) or ``length`` (`max_tokens` or the
            context's end).
        prompt_tokens: tokens of the prompt, the chat template's included.
        completion_tokens: number of `token_ids`.
        stats: counts and seconds.
        seed: what the answer was drawn with; None where nothing was drawn.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    stats: Statistics
    seed: int | None = None
