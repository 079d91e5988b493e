"""When a draft's tokens mean the same to its target."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.model_files.fingerprint import Fingerprint
from tokforge_models.resolution.compatibility import compatible, differences, rollback_fault

WORDS = Fingerprint((b"a", b"b", b"<end>"), frozenset({2}), frozenset({2}), attention="full")


def with_tokens(*tokens: bytes) -> Fingerprint:
    return replace(WORDS, tokens=tokens)


@pytest.mark.parametrize(
    ("target", "draft", "refusal"),
    [
        (WORDS, WORDS, None),
        (WORDS, with_tokens(*WORDS.tokens, b"", b""), None),
        (with_tokens(*WORDS.tokens, b""), WORDS, None),
        (WORDS, with_tokens(b"a", b"x", b"<end>"), "id 1 is 'b' in the target and 'x' in the"),
        (WORDS, with_tokens(b"a", b"b"), "id 2 is '<end>' in the target and no token in the draft"),
        (with_tokens(b"a"), with_tokens(b"a", b"b"), "id 1 is no token in the target and 'b'"),
        (WORDS, with_tokens(b"a", b"\xff", b"c"), r"id 1 is 'b' in the target and '\\xff'"),
        (WORDS, with_tokens(), "id 0 is 'a' in the target and no token"),
        (replace(WORDS, attention="linear"), WORDS, "the target has linear attention"),
        (replace(WORDS, attention="mixed"), WORDS, "the target has linear attention"),
        (WORDS, replace(WORDS, attention="mixed"), "the draft has linear attention"),
        (replace(WORDS, attention="unknown"), WORDS, None),
    ],
)  # fmt: skip
def test_refusals(target: Fingerprint, draft: Fingerprint, refusal: str | None) -> None:
    got = compatible(target, draft)
    if refusal is None:
        assert got is None
    else:
        assert got is not None
        assert refusal in got


def test_long_texts_are_cut_in_messages() -> None:
    got = compatible(with_tokens(b"a" * 10_000), with_tokens(b"b" * 10_000))
    assert got is not None
    assert len(got) < 200


def test_rollback() -> None:
    assert rollback_fault(WORDS) is None
    assert rollback_fault(replace(WORDS, attention="linear")) is not None


def test_differences_are_named() -> None:
    assert differences(WORDS, WORDS) == ()
    draft = replace(WORDS, stop_ids=frozenset({1}), special_ids=frozenset({1, 2}))
    assert differences(WORDS, draft) == (
        "the stop tokens differ: only the target has 2 '<end>', only the draft has 1 'b'; "
        "the target's count",
        "the special tokens differ: only the draft has 1 'b'; the target's count",
    )
    many = replace(WORDS, special_ids=frozenset(range(10)))
    assert "and 5 more" in differences(WORDS, many)[0]


def test_a_shorter_context_is_named() -> None:
    target, draft = replace(WORDS, context_length=4096), replace(WORDS, context_length=1024)
    [note] = differences(target, draft)
    assert "1024" in note
    assert "4096" in note
    assert differences(draft, target) == ()


tokens = st.lists(st.binary(min_size=1, max_size=3), max_size=6).map(tuple)


@given(tokens, tokens, st.integers(0, 3))
def test_compatible_means_equal_texts(ours, theirs, padding) -> None:
    got = compatible(with_tokens(*ours), with_tokens(*theirs, *[b""] * padding))
    assert (got is None) == (ours == theirs)
