from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.thinking import Said, ThinkSplitter


def split(*pieces):
    splitter = ThinkSplitter()
    said = [each for piece in pieces for each in splitter.add(piece)]
    return [*said, *splitter.finish()]


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (["hello"], [Said("hello", False)]),
        (["<think>hm</think>yes"], [Said("hm", True), Said("yes", False)]),
        (
            ["<thi", "nk>h", "m</", "think>yes"],
            [Said("h", True), Said("m", True), Said("yes", False)],
        ),
        (["1 <2"], [Said("1 <2", False)]),
        (["1 <", "2"], [Said("1 ", False), Said("<2", False)]),
        (["<thi"], [Said("<thi", False)]),
        (["<think>hm"], [Said("hm", True)]),
        (["</think>a"], [Said("</think>a", False)]),
    ],
)
def test_thoughts_and_answer(pieces, said):
    assert split(*pieces) == said


@given(st.lists(st.sampled_from(["<", "think>", "</", "/", "a", "<think>", "</think>", "hm"])))
def test_pieces_of_any_size_say_the_same(parts):
    whole = "".join(parts)

    def joined(said):
        return {
            thought: "".join(each.text for each in said if each.thought is thought)
            for thought in (True, False)
        }

    assert joined(split(*parts)) == joined(split(whole)) == joined(split(*whole))
    thoughts = re.findall(r"<think>(.*?)(?:</think>|$)", whole)
    assert joined(split(whole))[True] == "".join(thoughts)
