"""Typed, strict reading of one mapping of a file.

`Fields` answers each question with a value of the asked type, notes what is wrong as a problem
with line and key, and goes on, so that all faults of a file come out in one run. A key that
nobody asked for is a fault too.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from tokforge_models.errors import RegistryError
from tokforge_models.reading.strict_yaml import (
    Entries,
    Items,
    Node,
    Problems,
    Scalar,
    describe,
    read_file,
)

# A check of a text: what was expected instead, or None where the text is right.
Check = Callable[[str], str | None]
Choice = TypeVar("Choice", bound=StrEnum)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Word:
    """A text with the place where it stands."""

    text: str
    line: int
    key: str


class Fields:
    """The entries of one mapping."""

    def __init__(self, node: Entries, key: str, problems: Problems) -> None:
        self.line = node.line
        self.key = key
        self.problems = problems
        self._node = node
        self._asked: set[str] = set()

    @classmethod
    def of(cls, node: Node | None, key: str, problems: Problems) -> Fields | None:
        """The fields of `node`, or None where it is not a mapping (noted, unless it is None)."""
        if isinstance(node, Entries):
            return cls(node, key, problems)
        if node is not None:
            problems.add(node.line, key, "a mapping", describe(node))
        return None

    def path(self, name: str) -> str:
        """Dotted key of the entry `name`."""
        return f"{self.key}.{name}" if self.key else name

    def line_of(self, name: str) -> int:
        """Line of the key `name`, or of this mapping where there is no such key."""
        return self._node.lines.get(name, self.line)

    def has(self, name: str) -> bool:
        """Whether the key is there."""
        return name in self._node.entries

    def wrong(self, name: str, expected: str, got: str) -> None:
        """Note a problem with the entry `name`."""
        self.problems.add(self.line_of(name), self.path(name), expected, got)

    def node(self, name: str) -> Node | None:
        """The raw node of an entry; from now on the key counts as known."""
        self._asked.add(name)
        return self._node.entries.get(name)

    def require(self, name: str, expected: str) -> None:
        """Note a problem where the entry is missing."""
        self._asked.add(name)
        if not self.has(name):
            self.problems.add(self.line, self.path(name), expected, "nothing")

    def text(self, name: str, check: Check | None = None) -> str | None:
        """A text that is not empty."""
        node = self.node(name)
        if node is None:
            return None
        word = self._word(node, self.path(name), check)
        return word.text if word else None

    def required_text(self, name: str, check: Check | None = None) -> str:
        """A text that must be there; the empty text where it is not (noted)."""
        self.require(name, "a text")
        return self.text(name, check) or ""

    def word(self, name: str, check: Check | None = None) -> Word | None:
        """A text with its place."""
        node = self.node(name)
        return None if node is None else self._word(node, self.path(name), check)

    def words(self, name: str, check: Check | None = None) -> tuple[Word, ...] | None:
        """A list of texts, each once; None where the key is missing or not a list."""
        nodes = self.items(name, "a list of texts")
        if nodes is None:
            return None
        found: dict[str, Word] = {}
        for index, node in enumerate(nodes):
            word = self._word(node, f"{self.path(name)}.{index}", check)
            if word is None:
                continue
            if word.text in found:
                self.problems.add(word.line, word.key, "each value once", f"{word.text!r} again")
            found[word.text] = word
        return tuple(found.values())

    def texts(self, name: str, check: Check | None = None) -> tuple[str, ...] | None:
        """A list of texts without their places."""
        words = self.words(name, check)
        return None if words is None else tuple(word.text for word in words)

    def choice(self, name: str, choices: type[Choice]) -> Choice | None:
        """One of the values of an enumeration."""
        text = self.text(name, one_of([str(choice) for choice in choices]))
        return choices(text) if text else None

    def integer(self, name: str, low: int, high: int) -> int | None:
        """A whole number from `low` to `high`."""
        value = self._number(name, f"a whole number from {low} to {high}", low, high)
        return value if isinstance(value, int) else None

    def number(self, name: str, low: float, high: float) -> float | None:
        """A number from `low` to `high`."""
        value = self._number(name, f"a number from {low:g} to {high:g}", low, high, fraction=True)
        return None if value is None else float(value)

    def flag(self, name: str) -> bool:
        """true or false; false where the key is missing."""
        node = self.node(name)
        if node is None:
            return False
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.problems.add(node.line, self.path(name), "true or false", describe(node))
        return False

    def mapping(self, name: str) -> Fields | None:
        """A mapping inside this one."""
        return Fields.of(self.node(name), self.path(name), self.problems)

    def mappings(self, name: str) -> list[Fields]:
        """A list of mappings."""
        nodes = self.items(name, "a list of mappings") or ()
        found = (
            Fields.of(node, f"{self.path(name)}.{index}", self.problems)
            for index, node in enumerate(nodes)
        )
        return [fields for fields in found if fields is not None]

    def named_mappings(self, name: str, check: Check) -> list[tuple[Word, Fields]]:
        """A mapping from checked names to mappings; each name comes with its place."""
        outer = self.mapping(name)
        if outer is None:
            return []
        found = []
        for inner, line in outer._node.lines.items():
            key = outer.path(inner)
            if expected := check(inner):
                self.problems.add(line, key, expected, describe(Scalar(inner, line)))
            fields = Fields.of(outer._node.entries.get(inner), key, self.problems)
            if fields is not None:
                found.append((Word(inner, line, key), fields))
        return found

    def items(self, name: str, expected: str) -> tuple[Node, ...] | None:
        """The nodes of a list; None where the key is missing or not a list (noted)."""
        node = self.node(name)
        if node is None:
            return None
        if isinstance(node, Items):
            return node.items
        self.problems.add(node.line, self.path(name), expected, describe(node))
        return None

    def done(self) -> None:
        """Note the keys that nobody asked for."""
        for name in self._node.entries:
            if name in self._asked or self.problems.full:
                continue
            close = difflib.get_close_matches(name, sorted(self._asked), n=1)
            known = f"{close[0]} perhaps" if close else ", ".join(sorted(self._asked))
            self.wrong(name, f"a known key ({known})", "an unknown one")

    def _word(self, node: Node, key: str, check: Check | None) -> Word | None:
        value = node.value if isinstance(node, Scalar) else None
        if not isinstance(value, str) or not value:
            unquoted = value is not None and value != ""
            expected = "a text (in quotes, if this is meant)" if unquoted else "a text"
            self.problems.add(node.line, key, expected, describe(node))
            return None
        if not value.isprintable():
            # It will be shown on terminals, and some of it will name files.
            self.problems.add(node.line, key, "a text on one line, all visible", describe(node))
            return None
        if check and (expected_instead := check(value)):
            self.problems.add(node.line, key, expected_instead, describe(node))
            return None
        return Word(value, node.line, key)

    def _number(
        self, name: str, expected: str, low: float, high: float, *, fraction: bool = False
    ) -> int | float | None:
        node = self.node(name)
        if node is None:
            return None
        value = node.value if isinstance(node, Scalar) else None
        typed = isinstance(value, int | float if fraction else int) and not isinstance(value, bool)
        if typed and isinstance(value, int | float) and low <= value <= high:
            return value
        self.problems.add(node.line, self.path(name), expected, describe(node))
        return None


def read_strictly(
    path: Path, read: Callable[[Fields], Value | None], *, what: str, hint: str
) -> Value:
    """Read a file that is one mapping.

    Args:
        path: a JSON or YAML file.
        read: makes the value of the mapping; None, with the reasons noted, where it is none.
        what: how messages call the file.
        hint: what to do about a fault.

    Raises:
        RegistryError: with every problem of the file.
    """
    problems = Problems(str(path))
    fields = Fields.of(read_file(path, problems), "", problems)
    value = read(fields) if fields else None
    if value is None or problems.found:
        raise RegistryError(problems.found, what=what, hint=hint)
    return value


def one_of(choices: Sequence[str]) -> Check:
    """A check that a text is one of `choices`."""
    return lambda text: None if text in choices else "one of " + ", ".join(choices)
