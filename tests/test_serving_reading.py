from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine import Piece, Run
from tokforge_models.serving.reading import ChatReader, Reading, TextReader

NONE: frozenset[str] = frozenset()


def read(runs, tools=NONE):
    """One reading of an answer whose pieces are single runs."""
    reader = ChatReader(tools)
    readings = [reader.read(Piece((Run(text, by),), ())) for text, by in runs]
    return Reading.joined([*readings, reader.finish()]), reader


def test_thoughts_and_text_are_told_apart():
    reading, reader = read([("<think>\nWell", "d"), (".\n</thi", None), ("nk>\n\nYes.", "d")])
    assert (reading.reasoning, reading.content) == ("Well.\n", "Yes.")
    assert not reader.called
    assert [(each.text, each.drafted_by, each.field) for each in reading.origins] == [
        ("Well", "d", "reasoning_content"),
        (".\n", None, "reasoning_content"),
        ("Yes.", "d", "content"),
    ]


def test_text_without_thoughts_keeps_its_blanks():
    reading, _ = read([("\n a ", None)])
    assert reading.content == "\n a "


def test_a_call_in_a_thought_is_none():
    text = '<think><tool_call>{"name": "f", "arguments": {}}</tool_call></think>ok'
    reading, reader = read([(text, None)], frozenset({"f"}))
    assert reading.content == "ok"
    assert not reader.called


def test_calls_are_numbered_and_named():
    text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    reading, reader = read([(text, None), (text, "d")], frozenset({"f"}))
    assert reader.called
    assert [call.index for call in reading.calls] == [0, 0, 1, 1]
    assert reading.calls[0].id != reading.calls[2].id


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", " b", "\n", "<think>", "</think>", "<th", "ink>"]),
            st.sampled_from([None, "d", "lookup"]),
        ),
        max_size=12,
    )
)
def test_what_is_told_by_origin_is_what_is_told(runs):
    reading, _ = read(runs)
    for field, text in (("content", reading.content), ("reasoning_content", reading.reasoning)):
        assert "".join(each.text for each in reading.origins if each.field == field) == text
    pairs = zip(reading.origins, reading.origins[1:], strict=False)
    assert all((a.drafted_by, a.field) != (b.drafted_by, b.field) for a, b in pairs)


def test_a_text_that_goes_on_is_all_text():
    reader = TextReader()
    reading = reader.read(Piece((Run("<think>", None), Run("x", "d")), ()))
    assert reading.content == "<think>x"
    assert not reader.finish()
