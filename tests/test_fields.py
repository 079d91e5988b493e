"""Typed reading of a mapping: right values come back, wrong ones are noted and reading goes on."""

from __future__ import annotations

from enum import StrEnum

import pytest

from tokforge_models.reading.fields import Fields, one_of
from tokforge_models.reading.strict_yaml import Problems, read


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def fields_of(text: str) -> Fields:
    problems = Problems("f")
    fields = Fields.of(read(text.encode(), problems), "", problems)
    assert fields is not None
    return fields


def faults(fields: Fields) -> list[str]:
    return [str(problem) for problem in fields.problems.found]


def test_right_values() -> None:
    fields = fields_of("t: x\nw: [a, b]\nc: red\ni: 3\nn: 2.5\nf: true\nm: {x: 1}\nl: [{x: 1}]\n")
    assert fields.text("t") == "x"
    assert fields.texts("w") == ("a", "b")
    assert fields.choice("c", Colour) is Colour.RED
    assert fields.integer("i", 1, 3) == 3
    assert fields.number("n", 0, 3) == 2.5
    assert fields.number("i", 0, 3) == 3.0
    assert fields.flag("f") is True
    inner = fields.mapping("m")
    assert inner is not None
    assert inner.integer("x", 0, 9) == 1
    assert [one.integer("x", 0, 9) for one in fields.mappings("l")] == [1]
    fields.done()
    assert faults(fields) == []


def test_missing_values() -> None:
    fields = fields_of("other: 1")
    assert fields.text("t") is None
    assert fields.texts("w") is None
    assert fields.integer("i", 0, 1) is None
    assert fields.flag("f") is False
    assert fields.mapping("m") is None
    assert fields.mappings("l") == []
    assert fields.required_text("r") == ""
    assert faults(fields) == ["f:1: r: expected a text, got nothing"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("v: 1", "expected a text (in quotes, if this is meant), got the number 1"),
        ("v: true", "expected a text (in quotes, if this is meant), got true"),
        ("v:", "expected a text, got nothing"),
        ("v: ''", "expected a text, got ''"),
        ("v: []", "expected a text, got a list of 0"),
        ("v: {}", "expected a text, got a mapping"),
        (r'v: "\e[31m"', r"expected a text on one line, all visible, got '\x1b[31m'"),
        (r'v: "a\0b"', r"expected a text on one line, all visible, got 'a\x00b'"),
        (r'v: "a\nb"', r"expected a text on one line, all visible, got 'a\nb'"),
        ("v: green", "expected one of red, blue, got 'green'"),
    ],
)
def test_wrong_texts(text: str, fault: str) -> None:
    fields = fields_of(text)
    assert fields.text("v", one_of(["red", "blue"])) is None
    assert faults(fields) == [f"f:1: v: {fault}"]


@pytest.mark.parametrize("text", ["v: 0", "v: 9", "v: 1.0", "v: '1'", "v: true", "v: []", "v:"])
def test_wrong_integers(text: str) -> None:
    fields = fields_of(text)
    assert fields.integer("v", 1, 8) is None
    [fault] = faults(fields)
    assert fault.startswith("f:1: v: expected a whole number from 1 to 8, got ")


def test_a_list_is_read_to_its_end() -> None:
    fields = fields_of("v:\n- a\n- 1\n- a\n- c\n")
    assert fields.texts("v") == ("a", "c")
    assert faults(fields) == [
        "f:3: v.1: expected a text (in quotes, if this is meant), got the number 1",
        "f:4: v.2: expected each value once, got 'a' again",
    ]


def test_unknown_keys_are_named_with_the_nearest_known_one() -> None:
    fields = fields_of("sources: x\nsourcse: y\nzzz: 1\n")
    fields.text("sources")
    fields.done()
    assert sorted(faults(fields)) == [
        "f:2: sourcse: expected a known key (sources perhaps), got an unknown one",
        "f:3: zzz: expected a known key (sources), got an unknown one",
    ]


def test_named_mappings_check_the_names() -> None:
    fields = fields_of("m:\n  good: {}\n  Bad: {}\n  other: 1\n")
    found = fields.named_mappings("m", lambda name: None if name.islower() else "lower case")
    assert [(word.text, word.line) for word, _ in found] == [("good", 2), ("Bad", 3)]
    assert faults(fields) == [
        "f:3: m.Bad: expected lower case, got 'Bad'",
        "f:4: m.other: expected a mapping, got the number 1",
    ]
