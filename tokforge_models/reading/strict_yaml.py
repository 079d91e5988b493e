"""A strict and safe part of YAML, with the line of every value.

What is read is what a reviewer sees: one document of mappings, lists and plain values. Anchors,
aliases, merge keys, tags, duplicate keys and non-text keys are problems, and so are files that
are too large or too deep, so that no input can cost more than a bounded time and memory: the
parser's events are checked one by one, and nothing here recurses.

Plain words follow YAML 1.2: ``true`` and ``false`` are the only booleans, so ``on``, ``off``,
``yes`` and ``no`` stay text. JSON is read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tokforge_models.errors import Problem

MAX_BYTES = 1 << 19
MAX_DEPTH = 16
MAX_NODES = 20_000
MAX_PROBLEMS = 100
_MAX_TEXT = 200

# libyaml is ten times faster, but not every build of PyYAML has it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(
    r"[-+]?(?:(?:[0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?"
    r"|[0-9]{1,30}[eE][-+]?[0-9]{1,3})"
)
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scalar:
    """A plain value; `line` is 1-based."""

    value: str | int | float | bool | None
    line: int


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping: key -> value, and the line of each key."""

    entries: dict[str, Node]
    lines: dict[str, int]
    line: int


Node: TypeAlias = Scalar | Items | Entries


class Problems:
    """Collects what is wrong with one file, at most `MAX_PROBLEMS` of it."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: list[Problem] = []

    @property
    def found(self) -> list[Problem]:
        """The problems in the order of their lines."""
        return sorted(self._found, key=lambda problem: problem.line)

    @property
    def full(self) -> bool:
        """Whether further problems would not be kept."""
        return len(self._found) > MAX_PROBLEMS

    def add(self, line: int, key: str, expected: str, got: str) -> None:
        """Note one problem; the last that fits says that there are more."""
        if len(self._found) == MAX_PROBLEMS:
            self._found.append(
                Problem(self.file, line, "", "a file with fewer problems", "more than are shown")
            )
        elif len(self._found) < MAX_PROBLEMS:
            texts = (_short(text) for text in (key, expected, got))
            self._found.append(Problem(self.file, line, *texts))


def _short(text: str) -> str:
    if not text.isprintable():
        text = ascii(text)
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."


def describe(node: Node) -> str:
    """What stands there, in words short enough for one line of a message."""
    if isinstance(node, Items):
        return f"a list of {len(node.items)}"
    if isinstance(node, Entries):
        return "a mapping"
    match node.value:
        case None:
            return "nothing"
        case bool(flag):
            return str(flag).lower()
        case str(text):
            return repr(text if len(text) <= 60 else text[:57] + "...")
        case number:
            return f"the number {number}"


def read_file(path: Path, problems: Problems) -> Node | None:
    """Read a YAML or JSON file; None, with the reasons in `problems`, where it cannot be read."""
    try:
        if not path.is_file():
            got = "something else" if path.exists() else "no such file"
            problems.add(1, "", "a readable file", got)
            return None
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        problems.add(1, "", "a readable file", error.strerror or type(error).__name__)
        return None
    return read(data, problems)


def read(data: bytes, problems: Problems) -> Node | None:
    """Read YAML or JSON text; None, with the reasons in `problems`, where it is not usable."""
    if len(data) > MAX_BYTES:
        problems.add(1, "", f"at most {MAX_BYTES} bytes", "more")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.add(line, "", "UTF-8 text", f"the byte 0x{data[error.start]:02x}")
        return None
    builder = _Builder(problems)
    try:
        root = builder.build(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problems.add(line, builder.key, "YAML that can be parsed", error.problem or "an error")
        return None
    except yaml.YAMLError as error:
        problems.add(1, "", "YAML that can be parsed", str(error).splitlines()[0])
        return None
    except _TooMuchError:
        return None
    if root is None:
        problems.add(1, "", "a document", "an empty file")
    return root


class _TooMuchError(Exception):
    """A limit was passed; the problem has been noted."""


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    line: int
    is_list: bool
    items: list[Node] = field(default_factory=list)
    entries: dict[str, Node] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    awaits_key: bool = True
    key: str = ""
    key_is_new: bool = True


class _Builder:
    """Turns events into nodes, checking each."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._open: list[_Open] = []
        self._nodes = 0
        self._root: Node | None = None

    @property
    def key(self) -> str:
        """Dotted path of where we are."""
        parts = [
            str(len(part.items)) if part.is_list else part.key
            for part in self._open
            if part.is_list or not part.awaits_key
        ]
        return ".".join(parts)

    def build(self, events: Iterator[Any]) -> Node | None:
        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                if self._root is not None:
                    self._problems.add(line, "", "one document", "a second one")
                    break
            elif isinstance(event, yaml.NodeEvent):
                self._start(event, line)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._finish(self._open.pop())
        return self._root

    def _start(self, event: Any, line: int) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._problems.add(line, self.key, f"at most {MAX_NODES} values", "more")
            raise _TooMuchError
        if isinstance(event, yaml.AliasEvent):
            self._problems.add(line, self.key, "the value itself", f"the alias *{event.anchor}")
            self._place(Scalar(None, line))
            return
        if event.anchor:
            self._problems.add(line, self.key, "no anchors", f"&{event.anchor}")
        if event.tag is not None:
            self._problems.add(line, self.key, "no tags", describe(Scalar(event.tag, line)))
        if isinstance(event, yaml.ScalarEvent):
            plain = event.implicit[0]
            self._place(Scalar(_resolve(event.value) if plain else event.value, line))
            return
        if len(self._open) == MAX_DEPTH:
            self._problems.add(line, self.key, f"at most {MAX_DEPTH} levels", "more")
            raise _TooMuchError
        self._open.append(_Open(line, isinstance(event, yaml.SequenceStartEvent)))

    def _finish(self, done: _Open) -> None:
        if done.is_list:
            self._place(Items(tuple(done.items), done.line))
        else:
            self._place(Entries(done.entries, done.lines, done.line))

    def _place(self, node: Node) -> None:
        if not self._open:
            self._root = node
            return
        top = self._open[-1]
        if top.is_list:
            top.items.append(node)
        elif top.awaits_key:
            self._take_key(top, node)
        else:
            if top.key_is_new:
                top.entries[top.key] = node
            top.awaits_key = True

    def _take_key(self, top: _Open, node: Node) -> None:
        if isinstance(node, Scalar) and isinstance(node.value, str):
            top.key = node.value
            top.key_is_new = top.key not in top.entries
        else:
            self._problems.add(node.line, self.key, "a text as key", describe(node))
            top.key = "?"
            top.key_is_new = False
        top.awaits_key = False
        if top.key_is_new:
            top.lines[top.key] = node.line
        elif top.key in top.lines:
            first = top.lines[top.key]
            self._problems.add(node.line, self.key, "each key once", f"again, after line {first}")


def _resolve(text: str) -> str | int | float | bool | None:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
