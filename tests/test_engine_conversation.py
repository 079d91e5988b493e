from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.conversation import Conversation, reusable, same_length


def letters(text, continues):
    """One id a letter, and one before any text, as some tokenizers have it."""
    return [*([] if continues else [0]), *map(ord, text)]


def test_the_ids_of_an_answer_are_kept_and_never_encoded_again():
    conversation = Conversation()
    first = conversation.prompt("Hi?", letters)
    assert first == letters("Hi?", False)
    conversation.asked("Hi?", first)
    # One id for several letters, which encoding letter by letter would not give.
    conversation.answered("Hello", [7777])
    assert conversation.prompt("Hi?Hello!And?", letters) == [*first, 7777, *map(ord, "!And?")]
    assert conversation.ids == [*first, 7777]


def test_a_chat_that_was_edited_is_known_up_to_the_edit():
    conversation = Conversation()
    conversation.asked("a", conversation.prompt("a", letters))
    conversation.answered("bc", [77])
    conversation.asked("abcd", conversation.prompt("abcd", letters))
    conversation.answered("ef", [88])
    assert conversation.prompt("abcdXY", letters) == [0, ord("a"), 77, *map(ord, "dXY")]
    assert conversation.prompt("abX", letters) == [0, *map(ord, "abX")]
    assert conversation.prompt("Xb", letters) == [0, *map(ord, "Xb")]


def test_the_same_prompt_again_is_the_same_ids():
    conversation = Conversation()
    prompt = conversation.prompt("abc", letters)
    for _ in range(3):
        conversation.asked("abc", conversation.prompt("abc", letters))
        conversation.answered("de", [77])
        assert conversation.prompt("abc", letters) == prompt


texts = st.lists(st.tuples(st.text("ab", max_size=4), st.text("ab", max_size=4)), max_size=6)


@given(turns=texts, keep=st.integers(0, 6), other=st.text("ab", max_size=6))
def test_whatever_was_said_ids_and_text_agree(turns, keep, other):
    """Answers come in pairs of letters where they can: ids that no encoder would give."""

    def text_of(ids):
        return "".join(
            "" if token == 0 else chr(token % 1000) * (token // 1000 + 1) for token in ids
        )

    conversation, so_far = Conversation(), ""
    for number, (question, answer) in enumerate(turns):
        if number == keep:
            so_far = other
        so_far += question
        ids = conversation.prompt(so_far, letters)
        assert text_of(ids) == so_far
        conversation.asked(so_far, ids)
        said = [1000 + ord(letter) for letter in answer]
        conversation.answered(text_of(said), said)
        so_far += text_of(said)
        assert text_of(conversation.ids) == so_far


@pytest.mark.parametrize(
    ("cached", "prompt", "starts", "reused"),
    [
        ("", "abc", [], 0),
        ("abc", "abcde", [0], 3),
        ("abc", "abc", [0], 0),
        ("abc", "abc", [0, 2], 2),
        ("abcdef", "abc", [0, 2, 3], 2),
        ("abcdef", "abcxyz", [0, 2, 4], 2),
        ("abcdef", "abcxyz", None, 3),
        ("abcdef", "abc", None, 2),
        ("abc", "xyz", [0, 2], 0),
        ("abc", "xyz", None, 0),
    ],
)
def test_how_much_of_the_cache_serves(cached, prompt, starts, reused):
    assert reusable(cached, prompt, starts) == reused


@given(
    st.text("ab", max_size=9), st.text("ab", min_size=1, max_size=9), st.lists(st.integers(0, 9))
)
def test_what_is_reused_is_a_proper_beginning_of_both(cached, prompt, starts):
    for some in (starts, None):
        count = reusable(cached, prompt, some)
        assert count < len(prompt)
        assert cached[:count] == prompt[:count]
        assert count <= same_length(cached, prompt)
