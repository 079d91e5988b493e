from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.serving.tools import Arguments, CallBegun, CallSplitter

NAMES = {"sum", "time"}


def split(*texts):
    splitter = CallSplitter(NAMES)
    parts = [part for text in texts for part in splitter.add(text)]
    parts += splitter.finish()
    return joined(parts)


def joined(parts):
    whole = []
    for part in parts:
        if whole and type(whole[-1]) is type(part) and not isinstance(part, CallBegun):
            text = part if isinstance(part, str) else part.text
            last = whole.pop()
            whole.append(last + text if isinstance(last, str) else Arguments(last.text + text))
        else:
            whole.append(part)
    return whole


def call(name="sum", arguments='{"of": [1, 2]}'):
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def test_text_stays_text():
    assert split("a <tool", "_box> b\n") == ["a <tool_box> b\n"]
    assert split(" ", "\n") == [" \n"]
    assert split() == []


def test_a_call_is_taken_out_with_the_blanks_around_it():
    assert split(f"Let me see.\n{call()}\n{call('time', '{}')}\n Done. ") == [
        "Let me see.",
        CallBegun("sum"),
        Arguments('{"of": [1, 2]}'),
        CallBegun("time"),
        Arguments("{}"),
        "Done.",
    ]


def test_arguments_come_as_they_are_written():
    splitter = CallSplitter(NAMES)
    assert splitter.add('<tool_call>{"name": "sum", "arguments": {"te') == [
        CallBegun("sum"),
        Arguments('{"te'),
    ]
    assert splitter.add('xt": "}</tool_call>\\"') == [Arguments('xt": "}</tool_call>\\"')]
    assert splitter.add('"}}</tool_call>') == [Arguments('"}')]
    assert splitter.finish() == []
    assert splitter.calls == 1


def test_a_call_whose_arguments_come_first_is_one_too():
    text = '<tool_call>{"arguments": {"of": []}, "name": "sum"}</tool_call>'
    assert split(text) == [CallBegun("sum"), Arguments('{"of": []}')]


def test_a_call_whose_end_was_cut_is_one_if_it_is_whole():
    assert split(call().removesuffix("</tool_call>")) == [
        CallBegun("sum"),
        Arguments('{"of": [1, 2]}'),
    ]
    assert split('<tool_call>{"arguments": {}, "name": "sum"}') == [
        CallBegun("sum"),
        Arguments("{}"),
    ]


def test_half_a_character_in_arguments_can_still_be_sent():
    _, arguments = split('<tool_call>{"arguments": {"a": "\\ud800"}, "name": "sum"}</tool_call>')
    assert arguments.text.encode()
    assert json.loads(arguments.text) == {"a": "\ud800"}


def test_a_name_that_is_no_text_names_no_function():
    text = '<tool_call>{"arguments": {}, "name": []}</tool_call>'
    assert split(text) == [text]


def test_what_is_no_call_of_a_known_function_stays_text():
    for text in (
        call("other"),
        "<tool_call>sum(1, 2)</tool_call>",
        '<tool_call>{"name": "sum", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "sum", "arguments": "{}"}</tool_call>',
        '<tool_call>{"name": "other", "arg',
        "<tool_call>",
    ):
        assert split(text) == [text]


def test_arguments_that_are_no_json_end_with_the_mark():
    assert split('<tool_call>{"name": "sum", "arguments": {"of": [}</tool_call> so') == [
        CallBegun("sum"),
        Arguments('{"of": [}'),
        "so",
    ]


def test_an_answer_may_end_within_arguments():
    assert split('<tool_call>{"name": "sum", "arguments": {"of": [1,') == [
        CallBegun("sum"),
        Arguments('{"of": [1,'),
    ]


fragments = st.sampled_from(
    [
        "a", " ", "\n", "<", "<tool_call>", "</tool_call>", '{"name": "sum", "arguments": ',
        '{"name": "other", "arguments": ', '{"of": "}\\""}', "{}", "}", '"', "\\", "[", "text",
    ]
)  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.lists(fragments).map("".join), st.lists(st.integers(0, 80), max_size=8))
def test_parts_do_not_depend_on_how_the_text_is_cut(text, cuts):
    places = sorted({min(cut, len(text)) for cut in cuts})
    texts = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    assert split(*texts) == split(text)


@given(st.dictionaries(st.text(), json_values), st.text(), st.booleans())
def test_whatever_the_arguments_are_they_come_out_whole(arguments, before, ascii_only):
    written = json.dumps(arguments, ensure_ascii=ascii_only)
    parts = split(before, call("sum", written))
    assert parts[-2] == CallBegun("sum")
    assert json.loads(parts[-1].text) == arguments
    assert "".join(part for part in parts if isinstance(part, str)) == before.rstrip()
