"""Readings of an answer as the API tells them: whole, or chunk by chunk."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any, Protocol

from tokforge_engine import Likely, Piece, TokenLogprobs
from tokforge_models.serving.answered import (
    Answered,
    AnswerMessage,
    Call,
    CalledFunction,
    ChatChoice,
    ChatChunkChoice,
    ChatCompletion,
    ChatCompletionChunk,
    ChatLogprobs,
    ChosenLogprob,
    Completion,
    CompletionChoice,
    CompletionLogprobs,
    FinishReason,
    LiveTimings,
    Origin,
    Timings,
    TokenLogprob,
    Usage,
)
from tokforge_models.serving.orders import Order
from tokforge_models.serving.reading import Reading
from tokforge_models.serving.served import Ended

# What the API gives for a probability of nothing, which JSON cannot express.
_LEAST_LOGPROB = -9999.0


class Teller(Protocol):
    """Makes the answers to one request."""

    def begin(self) -> Sequence[Answered]:
        """What a stream begins with."""
        ...

    def part(self, reading: Reading, live: LiveTimings | None) -> Answered:
        """A chunk."""
        ...

    def end(self, ended: Ended, *, called: bool) -> Sequence[Answered]:
        """What a stream ends with."""
        ...

    def whole(self, reading: Reading, ended: Ended, *, called: bool) -> Answered:
        """The answer to a request that does not stream."""
        ...


class Clock:
    """Timings of an answer while it grows."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._tokens = 0

    def tick(self, piece: Piece) -> LiveTimings:
        """After one more piece."""
        now = time.monotonic()
        self._tokens += len(piece.tokens)
        if self._first is None:
            self._first, self._before = now, self._tokens
        seconds = now - self._first
        return LiveTimings(
            predicted_n=self._tokens,
            predicted_ms=round(seconds * 1000, 3),
            predicted_per_second=(
                round((self._tokens - self._before) / seconds, 3) if seconds else 0.0
            ),
            draft_n=piece.drafted,
            draft_n_accepted=piece.accepted,
        )


class _Telling:
    """What both kinds have in common."""

    prefix = ""

    def __init__(self, order: Order, model: str) -> None:
        self._order = order
        self._common: dict[str, Any] = {
            "id": f"{self.prefix}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
        }
        # A chunk says that there is no usage yet where the last one will have it.
        self._no_usage: dict[str, Any] = {"usage": None} if order.usage else {}

    def _origins(self, origins: Sequence[Origin]) -> dict[str, Any]:
        return {"provenance": list(origins)} if self._order.provenance else {}


class ChatTeller(_Telling):
    """Tells of `/v1/chat/completions`."""

    prefix = "chatcmpl"

    def begin(self) -> Sequence[Answered]:
        """The role."""
        return [self._chunk(AnswerMessage(role="assistant", content=""))]

    def part(self, reading: Reading, live: LiveTimings | None) -> Answered:
        """A chunk."""
        said: dict[str, Any] = {}
        if reading.content:
            said["content"] = reading.content
        if reading.reasoning:
            said["reasoning_content"] = reading.reasoning
        if reading.calls:
            said["tool_calls"] = list(reading.calls)
        return self._chunk(
            AnswerMessage(**said),
            logprobs=self._logprobs(reading.logprobs),
            origins=reading.origins,
            **_live(live),
        )

    def end(self, ended: Ended, *, called: bool) -> Sequence[Answered]:
        """Why it ended, timings, and the usage where it was asked for."""
        last = self._chunk(
            AnswerMessage(),
            finish_reason=_finish_reason(ended, called=called),
            timings=Timings.of(ended),
            seed=ended.result.seed,
        )
        if not self._order.usage:
            return [last]
        usage = ChatCompletionChunk(
            **self._common, object="chat.completion.chunk", choices=[], usage=Usage.of(ended)
        )
        return [last, usage]

    def whole(self, reading: Reading, ended: Ended, *, called: bool) -> Answered:
        """One document."""
        said: dict[str, Any] = {"role": "assistant", "content": reading.content}
        if reading.reasoning:
            said["reasoning_content"] = reading.reasoning
        if called:
            said["content"] = reading.content or None
            said["tool_calls"] = _whole_calls(reading.calls)
        choice = ChatChoice(
            index=0,
            message=AnswerMessage(**said),
            logprobs=self._logprobs(reading.logprobs),
            finish_reason=_finish_reason(ended, called=called),
            **self._origins(reading.origins),
        )
        return ChatCompletion(
            **self._common,
            object="chat.completion",
            choices=[choice],
            usage=Usage.of(ended),
            timings=Timings.of(ended),
            seed=ended.result.seed,
        )

    def _chunk(
        self,
        delta: AnswerMessage,
        *,
        logprobs: ChatLogprobs | None = None,
        finish_reason: FinishReason | None = None,
        origins: Sequence[Origin] = (),
        **more: Any,
    ) -> Answered:
        choice = ChatChunkChoice(
            index=0,
            delta=delta,
            logprobs=logprobs,
            finish_reason=finish_reason,
            **self._origins(origins),
        )
        return ChatCompletionChunk(
            **self._common,
            object="chat.completion.chunk",
            choices=[choice],
            **self._no_usage,
            **more,
        )

    def _logprobs(self, told: Sequence[TokenLogprobs]) -> ChatLogprobs | None:
        if self._order.options.logprobs is None:
            return None
        content = [
            ChosenLogprob(
                token=_shown(each.chosen),
                logprob=_logprob(each.chosen),
                bytes=list(each.chosen.text),
                top_logprobs=[_told(likely) for likely in each.top],
            )
            for each in told
        ]
        return ChatLogprobs(content=content, refusal=None)


class CompletionTeller(_Telling):
    """Tells of `/v1/completions`."""

    prefix = "cmpl"

    def __init__(self, order: Order, model: str) -> None:
        super().__init__(order, model)
        self._offset = 0

    def begin(self) -> Sequence[Answered]:
        """Nothing."""
        return []

    def part(self, reading: Reading, live: LiveTimings | None) -> Answered:
        """A chunk."""
        return self._completion(reading, None, **self._no_usage, **_live(live))

    def end(self, ended: Ended, *, called: bool) -> Sequence[Answered]:
        """Why it ended, timings, and the usage where it was asked for."""
        last = self._completion(
            Reading(),
            _finish_reason(ended, called=called),
            **self._no_usage,
            timings=Timings.of(ended),
            seed=ended.result.seed,
        )
        if not self._order.usage:
            return [last]
        usage = Completion(
            **self._common, object="text_completion", choices=[], usage=Usage.of(ended)
        )
        return [last, usage]

    def whole(self, reading: Reading, ended: Ended, *, called: bool) -> Answered:
        """One document."""
        return self._completion(
            reading,
            _finish_reason(ended, called=called),
            usage=Usage.of(ended),
            timings=Timings.of(ended),
            seed=ended.result.seed,
        )

    def _completion(
        self, reading: Reading, finish_reason: FinishReason | None, **more: Any
    ) -> Completion:
        choice = CompletionChoice(
            index=0,
            text=reading.content,
            logprobs=self._logprobs(reading.logprobs),
            finish_reason=finish_reason,
            **self._origins(reading.origins),
        )
        return Completion(**self._common, object="text_completion", choices=[choice], **more)

    def _logprobs(self, told: Sequence[TokenLogprobs]) -> CompletionLogprobs | None:
        if self._order.options.logprobs is None:
            return None
        offsets = []
        for each in told:
            offsets.append(self._offset)
            self._offset += len(_shown(each.chosen))
        return CompletionLogprobs(
            tokens=[_shown(each.chosen) for each in told],
            token_logprobs=[_logprob(each.chosen) for each in told],
            top_logprobs=[{_shown(t): _logprob(t) for t in each.top} for each in told],
            text_offset=offsets,
        )


def _live(timings: LiveTimings | None) -> dict[str, Any]:
    return {"timings": timings} if timings else {}


def _finish_reason(ended: Ended, *, called: bool) -> FinishReason:
    if called and ended.result.finish_reason == "stop":
        return "tool_calls"
    return ended.result.finish_reason


def _whole_calls(parts: Sequence[Call]) -> list[Call]:
    """Calls with their arguments in one."""
    calls: list[Call] = []
    for part in parts:
        if part.id is not None:
            calls.append(Call(id=part.id, type="function", function=part.function))
        else:
            last = calls[-1]
            function = CalledFunction(
                name=last.function.name,
                arguments=last.function.arguments + part.function.arguments,
            )
            calls[-1] = Call(id=last.id, type="function", function=function)
    return calls


def _shown(likely: Likely) -> str:
    return likely.text.decode(errors="replace")


def _logprob(likely: Likely) -> float:
    return max(likely.logprob, _LEAST_LOGPROB)


def _told(likely: Likely) -> TokenLogprob:
    return TokenLogprob(token=_shown(likely), logprob=_logprob(likely), bytes=list(likely.text))
