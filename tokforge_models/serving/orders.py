"""From a request of the API to an order for the engine: a pure decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from tokforge_engine import GenerateOptions, InvalidRequest, Message, Sampling, ToolCall
from tokforge_models.serving.asked import (
    AssistantMessage,
    ChatMessage,
    ChatRequest,
    CompletionRequest,
    NamedTool,
    Request,
    Text,
    ToolMessage,
)
from tokforge_models.serving.errors import BadRequest, NotFound
from tokforge_models.serving.grammar import grammar_of
from tokforge_models.serving.served import Served
from tokforge_models.serving.tools import CLOSE_CALL


@dataclass(frozen=True, slots=True)
class Order:
    """What the engine shall do, and how what it says is told.

    Attributes:
        chat: the messages.
        options: how to answer.
        tools: names of the functions that may be called.
        stream: whether parts are sent as they come.
        usage: whether a stream ends with the usage.
        provenance: whether who guessed what is told.
        live_timings: whether each chunk has timings.
    """

    chat: tuple[Message, ...]
    options: GenerateOptions
    tools: frozenset[str] = frozenset()
    stream: bool = False
    usage: bool = False
    provenance: bool = False
    live_timings: bool = False


def chat_order(request: ChatRequest, served: Served, most_tokens: int) -> Order:
    """What a chat request orders.

    Args:
        request: valid by itself.
        served: what is to honour it.
        most_tokens: of an answer; also of those that say nothing of it.

    Raises:
        NotFound: it is for another model.
        BadRequest: fields contradict each other, or this pair cannot honour one.
    """
    _check_model(request, served)
    _check_tools(request)
    if request.top_logprobs is not None and not request.logprobs:
        raise BadRequest("top_logprobs needs logprobs to be true", param="top_logprobs")
    grammar = grammar_of(request)
    template = request.chat_template_kwargs
    thinking = template.enable_thinking if template else None
    if grammar is not None:
        if thinking:
            raise BadRequest(
                "an answer that must be in a format, or a call, leaves no room to think",
                param="chat_template_kwargs.enable_thinking",
            )
        thinking = False
    tools = [] if request.tool_choice == "none" else request.tools or []
    # What follows the first call is cut off.
    stop = (CLOSE_CALL,) if tools and request.parallel_tool_calls is False and not grammar else ()
    options = _options(
        request,
        served,
        _most_tokens(request, most_tokens),
        stop=(*_stops(request), *stop),
        enable_thinking=thinking,
        tools=tuple(tool.model_dump_json(exclude_none=True) for tool in tools),
        grammar=grammar,
        logprobs=(request.top_logprobs or 0) if request.logprobs else None,
    )
    names = frozenset(tool.function.name for tool in tools)
    return _order(request, _messages(request.messages), options, names)


def completion_order(request: CompletionRequest, served: Served, most_tokens: int) -> Order:
    """What a completion request orders; see `chat_order`."""
    _check_model(request, served)
    prompt = request.prompt if isinstance(request.prompt, str) else request.prompt[0]
    options = _options(
        request,
        served,
        _limit("max_tokens", request.max_tokens, most_tokens),
        stop=_stops(request),
        raw=True,
        logprobs=request.logprobs,
    )
    with _naming("prompt"):
        chat = (Message("user", prompt),)
    return _order(request, chat, options)


def _order(
    request: Request,
    chat: tuple[Message, ...],
    options: GenerateOptions,
    tools: frozenset[str] = frozenset(),
) -> Order:
    if request.stream_options is not None and not request.stream:
        raise BadRequest("stream_options needs stream to be true", param="stream_options")
    if request.timings_per_token and not request.stream:
        raise BadRequest("timings_per_token needs stream to be true", param="timings_per_token")
    return Order(
        chat,
        options,
        tools,
        stream=bool(request.stream),
        usage=bool(request.stream_options and request.stream_options.include_usage),
        provenance=bool(request.provenance),
        live_timings=bool(request.timings_per_token),
    )


def _check_model(request: Request, served: Served) -> None:
    if request.model != served.name:
        raise NotFound(
            f"no such model here; expected {served.name!r}", param="model", code="model_not_found"
        )


def _check_tools(request: ChatRequest) -> None:
    names = [tool.function.name for tool in request.tools or ()]
    if len(set(names)) < len(names):
        raise BadRequest("two functions have the same name", param="tools")
    choice = request.tool_choice
    if not names:
        for field in ("tool_choice", "parallel_tool_calls"):
            if getattr(request, field) not in {None, "none"}:
                raise BadRequest(f"{field} needs tools", param=field)
    if isinstance(choice, NamedTool) and choice.function.name not in names:
        raise BadRequest("expected the name of one of the tools", param="tool_choice.function.name")
    if not (choice == "required" or isinstance(choice, NamedTool)):
        for place, tool in enumerate(request.tools or ()):
            if tool.function.strict:
                raise BadRequest(
                    "strict is honoured only where tool_choice demands a call",
                    param=f"tools[{place}].function.strict",
                )


def _most_tokens(request: ChatRequest, most: int) -> int:
    old, new = request.max_tokens, request.max_completion_tokens
    if old is not None and new is not None and old != new:
        raise BadRequest(
            f"max_tokens says {old} and max_completion_tokens {new}", param="max_tokens"
        )
    name = "max_tokens" if new is None else "max_completion_tokens"
    return _limit(name, old if new is None else new, most)


def _limit(name: str, wanted: int | None, most: int) -> int:
    if wanted is not None and wanted > most:
        raise BadRequest(f"expected at most {most} in this server, got {wanted}", param=name)
    return wanted or most


def _stops(request: Request) -> tuple[str, ...]:
    stop = request.stop
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def _options(
    request: Request,
    served: Served,
    max_tokens: int,
    *,
    stop: tuple[str, ...],
    enable_thinking: bool | None = None,
    raw: bool = False,
    tools: tuple[str, ...] = (),
    grammar: str | None = None,
    logprobs: int | None = None,
) -> GenerateOptions:
    drafter, d = _drafting(request, served)
    with _naming(None):
        return GenerateOptions(
            max_tokens=max_tokens,
            d=d,
            drafter=drafter,
            stop=stop,
            enable_thinking=enable_thinking,
            sampling=_sampling(request),
            raw=raw,
            tools=tools,
            grammar=grammar,
            logprobs=logprobs,
        )


def _sampling(request: Request) -> Sampling:
    wanted = {
        "temperature": request.temperature,
        "top_k": request.top_k,
        "top_p": request.top_p,
        "min_p": request.min_p,
        "repetition_penalty": request.repetition_penalty,
        "presence_penalty": request.presence_penalty,
        "seed": request.seed,
    }
    bias = tuple((int(token), value) for token, value in (request.logit_bias or {}).items())
    given = {name: value for name, value in wanted.items() if value is not None}
    return Sampling(logit_bias=bias, **given)  # type: ignore[arg-type]


def _drafting(
    request: Request, served: Served
) -> tuple[Literal["any", "model", "lookup"], int | Literal["auto"]]:
    """Who guesses, and how far."""
    d = served.d if request.d is None else request.d
    if d != "auto" and d > served.model.max_d:
        raise BadRequest(
            f"expected auto or 0 to {served.model.max_d} in this server, got {d}", param="d"
        )
    wanted = request.draft or "auto"
    if wanted == "none":
        if request.d not in {None, 0}:
            raise BadRequest("without a draft, d is 0", param="d")
        return "any", 0
    if wanted == "lookup" and served.lookup:
        return "lookup", d
    if wanted in {"model", served.draft} and served.draft:
        return "model", d
    if wanted != "auto":
        loaded = ["auto", "none", *(["lookup"] if served.lookup else [])]
        loaded += ["model", repr(served.draft)] if served.draft else []
        raise BadRequest(f"expected one of {', '.join(loaded)}", param="draft")
    return "any", d


def _messages(messages: Sequence[ChatMessage]) -> tuple[Message, ...]:
    chat = []
    called: set[str] = set()
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        with _naming(f"{where}.content"):
            if isinstance(message, AssistantMessage):
                if message.content is None and not message.tool_calls:
                    raise BadRequest("expected content or tool_calls", param=where)
                called.update(call.id for call in message.tool_calls or ())
                chat.append(_assistant(message, where))
                continue
            if isinstance(message, ToolMessage) and message.tool_call_id not in called:
                raise BadRequest(
                    "expected the id of a tool call in an earlier message",
                    param=f"{where}.tool_call_id",
                )
            role = "system" if message.role == "developer" else message.role
            chat.append(Message(role, _text(message.content)))
    return tuple(chat)


def _assistant(message: AssistantMessage, where: str) -> Message:
    calls = []
    for place, call in enumerate(message.tool_calls or ()):
        with _naming(f"{where}.tool_calls[{place}].function.arguments"):
            calls.append(ToolCall(call.function.name, call.function.arguments))
    return Message(
        "assistant",
        _text(message.content or ""),
        (message.reasoning_content or "").strip("\n"),
        tuple(calls),
    )


def _text(content: Text) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content)


@contextmanager
def _naming(param: str | None) -> Iterator[None]:
    """What the engine refuses is refused in the API's shape, with the field it is about."""
    try:
        yield
    except InvalidRequest as refused:
        raise BadRequest(refused.message, param=param) from None
