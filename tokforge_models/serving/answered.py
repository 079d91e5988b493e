"""What clients are answered: the values of the OpenAI API, with this server's extensions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tokforge_engine.statistics import Statistics
from tokforge_models.serving.served import Ended

FinishReason = Literal["stop", "length", "tool_calls"]


class Value(BaseModel):
    """A part of an answer; what was not set is not sent."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    def to_json(self) -> str:
        """As it is sent."""
        return self.model_dump_json(exclude_unset=True)


class TokenLogprob(Value):
    """A token and how likely it was; `bytes` where it is a part of a character too."""

    token: str
    logprob: float
    bytes: list[int]


class ChosenLogprob(TokenLogprob):
    """A token of the answer, and what else was likely in its place."""

    top_logprobs: list[TokenLogprob]


class ChatLogprobs(Value):
    """Of all tokens of this answer or chunk."""

    content: list[ChosenLogprob]
    refusal: None = None


class CompletionLogprobs(Value):
    """The same, as `/v1/completions` tells it."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CalledFunction(Value):
    """A call, or a part of it: the name comes whole, the arguments in parts."""

    name: str | None = None
    arguments: str = ""


class Call(Value):
    """A call of a function; in a stream, what of it has become certain."""

    index: int | None = None
    id: str | None = None
    type: Literal["function"] | None = None
    function: CalledFunction


class Origin(Value):
    """Extension: a stretch of text and who guessed it (null: the target itself)."""

    text: str
    drafted_by: str | None
    field: Literal["content", "reasoning_content"]


class Timings(Value):
    """Extension: counts and times, by the names that llama-server gives them."""

    cache_n: Annotated[int, Field(description="Tokens of the prompt that the cache held.")]
    prompt_n: Annotated[int, Field(description="The other tokens of the prompt.")]
    prompt_ms: float
    prompt_per_token_ms: float
    prompt_per_second: float
    predicted_n: int
    predicted_ms: float
    predicted_per_token_ms: float
    predicted_per_second: float
    draft_n: Annotated[int, Field(description="Guesses that were verified.")]
    draft_n_accepted: int
    rounds: Annotated[int, Field(description="Forwards of the target after the prompt's.")]
    draft_ms: float
    verify_ms: float
    queue_ms: Annotated[float, Field(description="Waiting for one's turn.")]

    @classmethod
    def of(cls, ended: Ended) -> Timings:
        """Of a finished answer."""
        result, stats = ended.result, ended.result.stats
        return cls(
            cache_n=stats.reused,
            prompt_n=stats.prefilled,
            prompt_ms=_ms(stats.prefill_seconds),
            prompt_per_token_ms=_per_token_ms(stats.prefill_seconds, stats.prefilled),
            prompt_per_second=round(_prefill_speed(stats), 3),
            predicted_n=result.completion_tokens,
            predicted_ms=_ms(stats.decode_seconds),
            predicted_per_token_ms=_per_token_ms(stats.decode_seconds, result.completion_tokens),
            predicted_per_second=round(stats.tokens_per_second, 3),
            draft_n=stats.drafted,
            draft_n_accepted=stats.accepted,
            rounds=stats.rounds,
            draft_ms=_ms(stats.draft_seconds),
            verify_ms=_ms(stats.verify_seconds),
            queue_ms=_ms(ended.waited),
        )


class LiveTimings(Value):
    """Extension: the same while an answer grows, as far as it is known then."""

    predicted_n: int
    predicted_ms: float
    predicted_per_second: float
    draft_n: int
    draft_n_accepted: int


class PromptDetails(Value):
    """What the cache held."""

    cached_tokens: int


class Usage(Value):
    """Tokens; those that end an answer are not counted."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails

    @classmethod
    def of(cls, ended: Ended) -> Usage:
        """Of a finished answer."""
        result = ended.result
        return cls(
            prompt_tokens=result.prompt_tokens,
            completion_tokens=result.completion_tokens,
            total_tokens=result.prompt_tokens + result.completion_tokens,
            prompt_tokens_details=PromptDetails(cached_tokens=result.stats.reused),
        )


class AnswerMessage(Value):
    """An answer's message; in a stream, what of it has become certain."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[Call] | None = None


class ChatChoice(Value):
    """The answer; there is one."""

    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason
    provenance: list[Origin] | None = None


class ChatChunkChoice(Value):
    """What comes next of the answer."""

    index: int
    delta: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason | None
    provenance: list[Origin] | None = None


class CompletionChoice(Value):
    """The text; in a stream, what comes next of it."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: FinishReason | None
    provenance: list[Origin] | None = None


class Answered(Value):
    """What all answers and chunks have in common.

    `seed` is an extension: what the answer was drawn with, null where nothing was drawn.
    """

    id: str
    created: int
    model: str
    usage: Usage | None = None
    timings: Timings | LiveTimings | None = None
    seed: int | None = None


class ChatCompletion(Answered):
    """A whole answer to a chat."""

    object: Literal["chat.completion"]
    choices: list[ChatChoice]


class ChatCompletionChunk(Answered):
    """A part of one."""

    object: Literal["chat.completion.chunk"]
    choices: list[ChatChunkChoice]


class Completion(Answered):
    """How a text went on, or a part of that."""

    object: Literal["text_completion"]
    choices: list[CompletionChoice]


class ModelCard(Value):
    """A model that is served."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(Value):
    """All models that are served: one."""

    object: Literal["list"]
    data: list[ModelCard]


class Pairing(Value):
    """What runs, with whom and why."""

    model: str
    draft: str | None
    lookup: bool
    reason: str
    rule: str | None
    notes: list[str]
    d: int | Literal["auto"]
    max_d: int
    max_tokens: int
    grammars: Annotated[bool, Field(description="Whether response_format can be honoured.")]


class Health(Value):
    """Whether requests are answered, and how many are here."""

    status: Annotated[
        Literal["ok", "loading", "failed", "stopping"],
        Field(description="failed: it could not be loaded again; each request is another try."),
    ]
    running: int
    waiting: int


class ErrorBody(Value):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class Error(Value):
    """Any answer but 200."""

    error: ErrorBody


def _prefill_speed(stats: Statistics) -> float:
    return stats.prefilled / stats.prefill_seconds if stats.prefill_seconds > 0 else 0.0


def _per_token_ms(seconds: float, tokens: int) -> float:
    return _ms(seconds / tokens) if tokens else 0.0


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
