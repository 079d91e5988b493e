"""Calls of functions, taken out of what a model says while it arrives.

A call is what stands between ``<tool_call>`` and ``</tool_call>``: a JSON object with the `name` of
a known function and its `arguments`, an object. Whatever else stands there is text, and stays it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass

from tokforge_engine.detokenizing import overlap

OPEN_CALL, CLOSE_CALL = "<tool_call>", "</tool_call>"
_HEAD = re.compile(
    r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)'
)


@dataclass(frozen=True, slots=True)
class CallBegun:
    """A call of a function begins; its arguments follow."""

    name: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """The next part of the last call's arguments: JSON text."""

    text: str


Part = str | CallBegun | Arguments


class CallSplitter:
    """Splits calls from text.

    Invariants: the parts do not depend on how the text is cut into pieces. Without calls, the
    texts joined are what was added; with calls, blanks around them are dropped. Arguments joined
    are one JSON object, unless the answer ended within it or the model wrote none.

    Args:
        names: the functions that there are.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held = ""
        self._blanks = ""
        self._after_call = False
        self._arguments: _Object | None = None
        self._done = False
        self.calls = 0
        """How many calls have begun."""

    def add(self, text: str) -> list[Part]:
        """What has become certain with `text`."""
        self._held += text
        parts: list[Part] = []
        while self._step(parts):
            pass
        return _joined(parts)

    def finish(self) -> list[Part]:
        """What was held back, now that nothing follows."""
        parts = self.add("")
        held, self._held = self._held, ""
        if self._arguments is None and not self._done:
            # A stop text may have cut the mark that would have ended a call.
            if not (held.startswith(OPEN_CALL) and self._whole(held[len(OPEN_CALL) :], parts)):
                self._say(parts, held)
            if self._blanks and not self.calls:
                parts.append(self._blanks)
        return _joined(parts)

    def _step(self, parts: list[Part]) -> bool:
        """Take something from what is held; False where more text is needed."""
        if self._done:
            return self._skip_to_close()
        if self._arguments is not None:
            taken = self._arguments.take(self._held)
            if taken:
                parts.append(Arguments(self._held[:taken]))
            self._held = self._held[taken:]
            self._done = self._arguments.over
            return self._done
        if not self._held.startswith(OPEN_CALL):
            return self._take_text(parts)
        return self._take_call(parts)

    def _take_text(self, parts: list[Part]) -> bool:
        before, mark, _ = self._held.partition(OPEN_CALL)
        keep = 0 if mark else overlap(self._held, OPEN_CALL)
        end = len(before) if mark else len(self._held) - keep
        self._say(parts, self._held[:end])
        self._held = self._held[end:]
        return bool(mark)

    def _take_call(self, parts: list[Part]) -> bool:
        inside = self._held[len(OPEN_CALL) :]
        head = _HEAD.match(inside)
        name = _string(head[1]) if head else None
        if head and name in self._names:
            self._begin(parts, str(name))
            self._held = inside[head.end() :]
            self._arguments = _Object()
            return True
        body, close, after = inside.partition(CLOSE_CALL)
        if not close:
            return False
        if not self._whole(body, parts):
            self._say(parts, OPEN_CALL + body + CLOSE_CALL)
        self._held = after
        return True

    def _whole(self, body: str, parts: list[Part]) -> bool:
        """A call whose name did not come first, once it is complete."""
        try:
            call = json.loads(body)
        except (ValueError, RecursionError):
            return False
        if not isinstance(call, dict) or set(call) - {"name", "arguments", "parameters"}:
            return False
        arguments = call.get("arguments", call.get("parameters", {}))
        name = call.get("name")
        if not isinstance(name, str) or name not in self._names or not isinstance(arguments, dict):
            return False
        self._begin(parts, name)
        # An escape may be half a character, which only an escape can tell on.
        parts.append(Arguments(json.dumps(arguments)))
        return True

    def _begin(self, parts: list[Part], name: str) -> None:
        self._blanks = ""
        self._after_call = True
        self.calls += 1
        parts.append(CallBegun(name))

    def _skip_to_close(self) -> bool:
        _, close, after = self._held.partition(CLOSE_CALL)
        self._held = after if close else self._held[-len(CLOSE_CALL) :]
        if close:
            self._arguments, self._done = None, False
        return bool(close)

    def _say(self, parts: list[Part], text: str) -> None:
        """Text, without the blanks at its end, which may stand before a call."""
        text = self._blanks + text
        if self._after_call:
            text = text.lstrip()
        said = text.rstrip()
        self._blanks = text[len(said) :]
        if said:
            self._after_call = False
            parts.append(said)


class _Object:
    """Finds the end of a JSON object that arrives in parts."""

    def __init__(self) -> None:
        self.over = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def take(self, text: str) -> int:
        """How many characters of `text` belong to it."""
        for place, character in enumerate(text):
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif character == "\\":
                    self._escaped = True
                elif character == '"':
                    self._in_string = False
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth == 0:
                    self.over = True
                    return place + 1
            elif character == "<":
                # No JSON goes on like this, but a mark does.
                self.over = True
                return place
        return len(text)


def _string(text: str) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _joined(parts: list[Part]) -> list[Part]:
    """Neighbours of a kind as one."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, str) and isinstance(last, str):
            joined[-1] = last + part
        elif isinstance(part, Arguments) and isinstance(last, Arguments):
            joined[-1] = Arguments(last.text + part.text)
        else:
            joined.append(part)
    return joined
