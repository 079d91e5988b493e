"""The strict part of YAML: what is read, what is refused, and that hostile input costs little."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.reading import strict_yaml
from tokforge_models.reading.strict_yaml import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NODES,
    MAX_PROBLEMS,
    Entries,
    Items,
    Node,
    Problems,
    Scalar,
    describe,
    read,
    read_file,
)

TOO_DEEP = f"at most {MAX_DEPTH} levels"
TOO_MANY = f"at most {MAX_NODES} values"


def plain(node: Node | None) -> object:
    """The node as Python's own values."""
    match node:
        case Scalar():
            return node.value
        case Items():
            return [plain(item) for item in node.items]
        case Entries():
            return {key: plain(value) for key, value in node.entries.items()}
        case None:
            return None


def value_of(text: str) -> object:
    problems = Problems("f")
    node = read(text.encode(), problems)
    assert problems.found == []
    return plain(node)


def faults_of(data: bytes) -> list[tuple[int, str, str, str]]:
    problems = Problems("f")
    read(data, problems)
    return [(p.line, p.key, p.expected, p.got) for p in problems.found]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: on", {"a": "on"}),
        ("a: off", {"a": "off"}),
        ("a: yes", {"a": "yes"}),
        ("a: No", {"a": "No"}),
        ("a: y", {"a": "y"}),
        ("off: 1", {"off": 1}),
        ("a: true", {"a": True}),
        ("a: 'true'", {"a": "true"}),
        ("a: 12", {"a": 12}),
        ("a: '12'", {"a": "12"}),
        ("a: -3", {"a": -3}),
        ("a: 012", {"a": "012"}),
        ("a: 0x1f", {"a": "0x1f"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: 1:30", {"a": "1:30"}),
        ("a: 2026-12-01", {"a": "2026-12-01"}),
        ("a: 3.4", {"a": 3.4}),
        ("a: 1e-06", {"a": 1e-06}),
        ("a: .inf", {"a": ".inf"}),
        ("a: 99999999999999999999", {"a": "99999999999999999999"}),
        ("a: ~", {"a": None}),
        ("a:", {"a": None}),
        ("- 1\n- [x, {y: z}]", [1, ["x", {"y": "z"}]]),
        ('{"a": [1, "b", true, null]}', {"a": [1, "b", True, None]}),
        ("\ufeffa: 1", {"a": 1}),
        ("a: >-\n  two\n  words", {"a": "two words"}),
    ],
)
def test_reads_what_it_says(text: str, value: object) -> None:
    assert value_of(text) == value


def test_every_node_knows_its_line() -> None:
    node = read(b"# head\na: 1\nb:\n  - x\n  - c: y\n", Problems("f"))
    assert isinstance(node, Entries)
    assert node.lines == {"a": 2, "b": 3}
    items = node.entries["b"]
    assert isinstance(items, Items)
    assert [item.line for item in items.items] == [4, 5]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", (1, "", "a document", "an empty file")),
        (b"# only a comment\n", (1, "", "a document", "an empty file")),
        (b"a: 1\nb: \xff\n", (2, "", "UTF-8 text", "the byte 0xff")),
        ("a: 1".encode("utf-16"), (1, "", "UTF-8 text", "the byte 0xff")),
        (b"a: 1\nb: 2\na: 3\n", (3, "a", "each key once", "again, after line 1")),
        (b"x:\n  a: 1\n  a: 3\n", (3, "x.a", "each key once", "again, after line 2")),
        (b"- - a: 1\n    a: 3\n", (2, "0.0.a", "each key once", "again, after line 1")),
        (b"a: &x 1\n", (1, "a", "no anchors", "&x")),
        (b"a: !run 1\n", (1, "a", "no tags", "'!run'")),
        (b"a: 1\n---\nb: 2\n", (2, "", "one document", "a second one")),
        (b"1: a\n", (1, "", "a text as key", "the number 1")),
        (b"? [a, b]\n: 1\n", (1, "", "a text as key", "a list of 2")),
        (b"a: 'open\n", (2, "a", "YAML that can be parsed", "found unexpected end of stream")),
        (b"x" * (MAX_BYTES + 1), (1, "", f"at most {MAX_BYTES} bytes", "more")),
        (b"[" * 40 + b"]" * 40, (1, ".".join(["0"] * MAX_DEPTH), TOO_DEEP, "more")),
        (b"{a: " * 100_000, (1, ".".join(["a"] * MAX_DEPTH), TOO_DEEP, "more")),
        (b"- x\n" * (MAX_NODES + 9), (MAX_NODES, f"{MAX_NODES - 1}", TOO_MANY, "more")),
    ],
)  # fmt: skip
def test_refuses_with_line_and_key(data: bytes, fault: tuple[int, str, str, str]) -> None:
    assert faults_of(data) == [fault]


def test_absurd_depth_is_refused_by_the_parser_or_by_us() -> None:
    assert [fault[0] for fault in faults_of(b"[" * 400_000)] == [1]
    assert [fault[0] for fault in faults_of(b"- " * 200_000)] == [1]


def test_control_characters_are_refused() -> None:
    [(line, _, expected, _)] = faults_of(b"a: \x01\n")
    assert (line, expected) == (1, "YAML that can be parsed")


def test_aliases_cannot_explode_or_recurse() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{name}: &{name} [*{previous}, *{previous}]\n"
        for previous, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    faults = faults_of(bomb.encode())
    assert len(faults) == 9 + 16
    assert faults[1] == (2, "b", "no anchors", "&b")
    assert faults[2] == (2, "b.0", "the value itself", "the alias *a")
    assert faults_of(b"&x a: *x\n")[-1] == (1, "a", "the value itself", "the alias *x")
    assert faults_of(b"&x [1, *x]\n")[-1] == (1, "1", "the value itself", "the alias *x")
    assert faults_of(b"x:\n  <<: *base\n")[0] == (2, "x.<<", "the value itself", "the alias *base")


def test_problems_are_bounded() -> None:
    faults = faults_of(b"- &a x\n" * 5_000)
    assert len(faults) == MAX_PROBLEMS + 1
    assert faults[-1][2] == "a file with fewer problems"


def test_texts_of_problems_are_short() -> None:
    [(_, key, _, got)] = faults_of(b"? " + b"k" * 9_000 + b"\n: &" + b"x" * 9_000 + b" 1\n")
    assert len(key) == len(got) == 200


def test_problems_cannot_speak_to_the_terminal() -> None:
    [(_, key, _, _)] = faults_of(rb"""{"\e[2J": &a 1}""")
    assert key == r"'\x1b[2J'"


def test_files_that_cannot_be_read(tmp_path) -> None:
    for path, got in ((tmp_path / "none.yaml", "no such file"), (tmp_path, "something else")):
        problems = Problems("f")
        assert read_file(path, problems) is None
        assert [problem.got for problem in problems.found] == [got]


def test_the_slower_parser_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: [1, {b: off}]\nc: |\n  text\n"
    faulty = b"a: &x 1\na: *x\n? {}\n: 2\n"
    fast, fast_faults = value_of(text), faults_of(faulty)
    monkeypatch.setattr(strict_yaml, "_LOADER", yaml.SafeLoader)
    assert value_of(text) == fast
    assert faults_of(faulty) == fast_faults


def test_descriptions_are_short() -> None:
    assert describe(Scalar("x" * 500, 1)) == repr("x" * 57 + "...")
    assert describe(Scalar(True, 1)) == "true"
    assert describe(Scalar(None, 1)) == "nothing"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.text(st.characters(min_codepoint=0x20, max_codepoint=0xD7FF, exclude_categories=["Cc"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner),
    max_leaves=12,
)


@given(json_values)
def test_json_is_read_as_it_is(value: object) -> None:
    text = json.dumps({"v": value})
    assert value_of(text) == {"v": value}


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    problems = Problems("f")
    node = read(data, problems)
    assert node is not None or problems.found
