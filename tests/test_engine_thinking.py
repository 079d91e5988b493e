from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.thinking import Said, ThinkSplitter, opens_thought


def split(*pieces, thinking=False):
    splitter = ThinkSplitter(thinking=thinking)
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


def test_a_thought_that_the_prompt_opened():
    assert split("hm</th", "ink>yes", thinking=True) == [Said("hm", True), Said("yes", False)]
    assert split("hm", thinking=True) == [Said("hm", True)]


@pytest.mark.parametrize(
    ("prompt", "opens"),
    [
        ("assistant\n", False),
        ("assistant\n<think>\n", True),
        ("assistant\n<think>\n\n</think>\n\n", False),
        ("<think> is a mark", False),
        ("", False),
    ],
)
def test_whether_a_prompt_ends_within_a_thought(prompt, opens):
    assert opens_thought(prompt) is opens


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
