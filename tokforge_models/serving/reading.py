"""What a model says, told apart: thoughts, text, calls of functions, and who guessed what."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from tokforge_engine import Piece, Said, ThinkSplitter, TokenLogprobs
from tokforge_models.serving.answered import Call, CalledFunction, Origin
from tokforge_models.serving.tools import Arguments, CallBegun, CallSplitter


@dataclass(frozen=True, slots=True)
class Reading:
    """What has become certain of an answer.

    Attributes:
        content: text.
        reasoning: thoughts.
        calls: beginnings of calls and parts of their arguments.
        origins: the text and the thoughts once more, by who guessed them.
        logprobs: of the tokens, where they were asked for.
    """

    content: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    origins: tuple[Origin, ...] = ()
    logprobs: tuple[TokenLogprobs, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.content or self.reasoning or self.calls or self.logprobs)

    @classmethod
    def joined(cls, readings: Sequence[Reading]) -> Reading:
        """All of an answer, from its parts in order."""
        return cls(
            "".join(each.content for each in readings),
            "".join(each.reasoning for each in readings),
            tuple(chain.from_iterable(each.calls for each in readings)),
            tuple(_joined(chain.from_iterable(each.origins for each in readings))),
            tuple(chain.from_iterable(each.logprobs for each in readings)),
        )


class ChatReader:
    """Reads the pieces of an answer to a chat, in order.

    Blanks that stand between a thought's end and the answer, or at a thought's beginning, are
    dropped.

    Args:
        tools: names of the functions that may be called.
    """

    def __init__(self, tools: frozenset[str]) -> None:
        self._thoughts = ThinkSplitter()
        self._splitter = CallSplitter(tools) if tools else None
        self._calls_begun = 0
        self._begun = {"content": True, "reasoning_content": False}

    def begin(self, in_thought: bool) -> None:
        """The text begins, perhaps within a thought."""
        self._thoughts = ThinkSplitter(thinking=in_thought)

    @property
    def called(self) -> bool:
        """Whether a function was called."""
        return self._splitter is not None and self._splitter.calls > 0

    def read(self, piece: Piece) -> Reading:
        """What a piece makes certain."""
        gathered = _Gathered()
        for run in piece.runs:
            for said in self._thoughts.add(run.text):
                self._take(said, run.drafted_by, gathered)
        return gathered.reading(piece.logprobs)

    def finish(self) -> Reading:
        """What was held back, now that nothing follows."""
        gathered = _Gathered()
        for said in self._thoughts.finish():
            self._take(said, None, gathered)
        if self._splitter is not None:
            self._gather(self._splitter.finish(), None, gathered)
        return gathered.reading(())

    def _take(self, said: Said, by: str | None, gathered: _Gathered) -> None:
        field = "reasoning_content" if said.thought else "content"
        if said.thought:
            self._begun["content"] = False
        text = said.text if self._begun[field] else said.text.lstrip()
        self._begun[field] = self._begun[field] or bool(text)
        if said.thought:
            gathered.think(text, by)
        elif self._splitter is None:
            gathered.say(text, by)
        else:
            self._gather(self._splitter.add(text), by, gathered)

    def _gather(
        self, parts: list[str | CallBegun | Arguments], by: str | None, gathered: _Gathered
    ) -> None:
        assert self._splitter is not None
        for part in parts:
            if isinstance(part, str):
                gathered.say(part, by)
            elif isinstance(part, CallBegun):
                self._calls_begun += 1
                gathered.call(self._calls_begun - 1, part.name)
            else:
                gathered.argue(self._calls_begun - 1, part.text)


class TextReader:
    """Reads the pieces of a text that goes on: everything is text."""

    called = False

    def begin(self, in_thought: bool) -> None:
        """Thoughts are text too."""

    def read(self, piece: Piece) -> Reading:
        """The piece's text."""
        gathered = _Gathered()
        for run in piece.runs:
            gathered.say(run.text, run.drafted_by)
        return gathered.reading(piece.logprobs)

    def finish(self) -> Reading:
        """Nothing is ever held back."""
        return Reading()


class _Gathered:
    """Parts of one reading."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[Call] = []
        self._origins: list[Origin] = []

    def say(self, text: str, by: str | None) -> None:
        if text:
            self._content.append(text)
            self._origins.append(Origin(text=text, drafted_by=by, field="content"))

    def think(self, text: str, by: str | None) -> None:
        if text:
            self._reasoning.append(text)
            self._origins.append(Origin(text=text, drafted_by=by, field="reasoning_content"))

    def call(self, index: int, name: str) -> None:
        function = CalledFunction(name=name, arguments="")
        id = f"call_{secrets.token_hex(12)}"
        self._calls.append(Call(index=index, id=id, type="function", function=function))

    def argue(self, index: int, text: str) -> None:
        self._calls.append(Call(index=index, function=CalledFunction(arguments=text)))

    def reading(self, logprobs: tuple[TokenLogprobs, ...]) -> Reading:
        return Reading(
            "".join(self._content),
            "".join(self._reasoning),
            tuple(self._calls),
            tuple(self._origins),
            logprobs,
        )


def _joined(origins: Iterable[Origin]) -> Iterable[Origin]:
    """Neighbours of one origin as one."""
    for (by, field), group in groupby(origins, lambda each: (each.drafted_by, each.field)):
        yield Origin(text="".join(each.text for each in group), drafted_by=by, field=field)
