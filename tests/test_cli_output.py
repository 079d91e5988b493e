"""What people and programs read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.cli import output


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, "?"),
        (0, "0 B"),
        (211, "211 B"),
        (999, "999 B"),
        (1000, "1.00 KB"),
        (4660, "4.66 KB"),
        (999_499, "999 KB"),
        (999_500, "1.00 MB"),
        (335_769_842, "336 MB"),
        (17_748_780_498, "17.7 GB"),
        (2_000_000_000_000_000, "2000 TB"),
    ],
)
def test_size(count: int | None, shown: str) -> None:
    assert output.size(count) == shown


@given(st.text())
def test_no_control_character_reaches_a_terminal(text: str) -> None:
    shown = output.printable(text)
    assert not [c for c in shown if (ord(c) < 32 or 127 <= ord(c) < 160) and c not in "\t\n"]
    if text.isprintable():
        assert shown == text


def test_a_servers_words_cannot_hide_or_turn_others(capsys: pytest.CaptureFixture[str]) -> None:
    output.note("safe\u202egnp.exe \u200b")
    assert capsys.readouterr().err == "safe\\u202egnp.exe \\u200b\n"


def test_document_is_ascii_json(capsys: pytest.CaptureFixture[str]) -> None:
    output.document({"text": "schön \x1b[31m 猫"})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert json.loads(printed) == {"text": "schön \x1b[31m 猫"}


def test_error_goes_to_stderr_or_into_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    output.error("fetch", "no luck", "try again", as_json=False)
    plain = capsys.readouterr()
    assert plain.out == ""
    assert plain.err == "tokforge: no luck\n  try: try again\n"
    output.error("fetch", "no luck", "try again", as_json=True)
    as_json = capsys.readouterr()
    assert json.loads(as_json.out) == {
        "error": {"kind": "fetch", "message": "no luck", "hint": "try again"}
    }


def test_table_columns_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("ID", "STATE"), [("a", "ready"), ("longer", "x")])
    assert capsys.readouterr().out == "ID      STATE\na       ready\nlonger  x\n"
