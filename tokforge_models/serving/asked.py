"""What clients may ask for: the requests of the OpenAI API, as far as they are honoured.

A field that is not here is refused, whatever its value, and so is a value that would have to be
ignored. Fields that only this server knows say so in their description.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tokforge_engine.generation import MAX_LOGPROBS
from tokforge_engine.sampling import MAX_SEED
from tokforge_engine.settings import MAX_D

_MOST_TOKENS = 1_000_000
_MOST_STOPS = 16
# As many as a context can hold with something in them; each costs more than its text.
_MOST_MESSAGES = 4_096
_MOST_PARTS = 128
_MOST_BIASED = 10_000

Zero = Annotated[float, Field(ge=0, le=0, description="Only 0: it is not supported.")]

One = Annotated[int, Field(ge=1, le=1, description="Only 1: there is one answer.")]


class Strict(BaseModel):
    """Unknown fields are refused, and a text is no number."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, protected_namespaces=()
    )


class TextPart(Strict):
    """A part of a message; pictures, sound and files are not supported."""

    type: Literal["text"]
    text: str


Text = str | Annotated[list[TextPart], Field(min_length=1, max_length=_MOST_PARTS)]


class FunctionCall(Strict):
    """Which function was called, and with what."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    arguments: Annotated[str, Field(description="A JSON object, as text.")]


class ToolCall(Strict):
    """A call that an earlier answer made."""

    id: Annotated[str, Field(min_length=1)]
    type: Literal["function"]
    function: FunctionCall
    index: int | None = None


class SystemMessage(Strict):
    """What the model is told first; `developer` is taken for `system`."""

    role: Literal["system", "developer"]
    content: Text


class UserMessage(Strict):
    """What the user says."""

    role: Literal["user"]
    content: Text


class AssistantMessage(Strict):
    """What the model said. The fields that can only be null are those that clients hand back."""

    role: Literal["assistant"]
    content: Text | None = None
    reasoning_content: Annotated[
        str | None, Field(description="Extension: what was thought, as an answer gives it.")
    ] = None
    tool_calls: Annotated[list[ToolCall], Field(min_length=1, max_length=_MOST_PARTS)] | None = None
    refusal: None = None
    annotations: None = None
    audio: None = None
    function_call: None = None


class ToolMessage(Strict):
    """What a called function returned."""

    role: Literal["tool"]
    tool_call_id: str
    content: Text


ChatMessage = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class FunctionSpec(Strict):
    """A function that the model may call."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: str | None = None
    parameters: Annotated[dict[str, Any] | None, Field(description="A JSON schema.")] = None
    strict: Annotated[
        bool | None,
        Field(description="True only where tool_choice demands a call; else nothing ensures it."),
    ] = None


class Tool(Strict):
    """A tool; only functions are supported."""

    type: Literal["function"]
    function: FunctionSpec


class FunctionName(Strict):
    """A function by its name."""

    name: str


class NamedTool(Strict):
    """The function that must be called."""

    type: Literal["function"]
    function: FunctionName


class JsonSchema(Strict):
    """A schema that the answer must fulfil; it always does, whatever `strict` says."""

    model_config = ConfigDict(populate_by_name=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: str | None = None
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    strict: bool | None = None


class AnyText(Strict):
    """No constraint."""

    type: Literal["text"]


class AnyJson(Strict):
    """Any JSON object."""

    type: Literal["json_object"]


class SchemaJson(Strict):
    """JSON by a schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchema


ResponseFormat = Annotated[AnyText | AnyJson | SchemaJson, Field(discriminator="type")]


class StreamOptions(Strict):
    """How to stream."""

    include_usage: bool | None = None


class TemplateOptions(Strict):
    """What the chat template is told."""

    enable_thinking: bool | None = None


class Request(Strict):
    """What both ways of asking have in common."""

    model: Annotated[str, Field(description="The id that /v1/models gives.")]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int, Field(ge=1, le=_MOST_TOKENS)] | None = None
    temperature: Annotated[
        float | None,
        Field(ge=0, le=2, description="0, which takes the likeliest token, unless given."),
    ] = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = None
    stop: (
        Annotated[str, Field(min_length=1)]
        | Annotated[
            list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=_MOST_STOPS)
        ]
        | None
    ) = None
    logit_bias: (
        Annotated[
            dict[
                Annotated[str, Field(pattern=r"^[0-9]{1,9}$")],
                Annotated[float, Field(ge=-100, le=100)],
            ],
            Field(
                max_length=_MOST_BIASED, description="Token ids, and what is added to their logits."
            ),
        ]
        | None
    ) = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Zero | None = None
    n: One | None = None
    top_k: Annotated[
        int | None, Field(ge=0, le=MAX_SEED, description="Extension: 0 means all.")
    ] = None
    min_p: Annotated[float | None, Field(ge=0, le=1, description="Extension.")] = None
    repetition_penalty: Annotated[
        float | None, Field(ge=0.01, le=100, description="Extension: 1 changes nothing.")
    ] = None
    draft: Annotated[
        str | None,
        Field(
            description="Extension, who guesses: auto (as served), none, lookup (the context "
            "alone), model, or the draft's id."
        ),
    ] = None
    d: Annotated[
        Annotated[int, Field(ge=0, le=MAX_D)] | Literal["auto"] | None,
        Field(description="Extension: tokens guessed a round."),
    ] = None
    provenance: Annotated[
        bool | None, Field(description="Extension: tell of each part of the text who guessed it.")
    ] = None
    timings_per_token: Annotated[
        bool | None, Field(description="Extension: timings in every chunk of a stream.")
    ] = None


class ChatRequest(Request):
    """`POST /v1/chat/completions`."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=_MOST_MESSAGES)]
    max_completion_tokens: Annotated[int, Field(ge=1, le=_MOST_TOKENS)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_LOGPROBS)] | None = None
    tools: Annotated[list[Tool], Field(min_length=1, max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    chat_template_kwargs: Annotated[TemplateOptions | None, Field(description="Extension.")] = None


class CompletionRequest(Request):
    """`POST /v1/completions`: a text goes on, without the chat template."""

    prompt: (
        Annotated[str, Field(min_length=1)]
        | Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=1)]
    )
    logprobs: Annotated[int, Field(ge=0, le=5)] | None = None
    best_of: One | None = None
