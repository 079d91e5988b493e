from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.acceptance import Accepted, accept


@pytest.mark.parametrize(
    ("drafted", "chosen", "tokens", "kept"),
    [
        ([], [5], (5,), 0),
        ([5], [5, 6], (5, 6), 1),
        ([4], [5, 6], (5,), 0),
        ([5, 6, 7], [5, 6, 7, 8], (5, 6, 7, 8), 3),
        ([5, 6, 7], [5, 0, 7, 8], (5, 0), 1),
        # What comes after a disagreement is worth nothing, even where it agrees by chance.
        ([5, 6, 7], [1, 6, 7, 8], (1,), 0),
    ],
)
def test_table(drafted, chosen, tokens, kept):
    assert accept(drafted, iter(chosen)) == Accepted(tokens, kept)


@given(st.lists(st.integers(0, 2), max_size=6), st.lists(st.integers(0, 2), min_size=7, max_size=7))
def test_takes_one_choice_for_each_emitted_token(drafted, chosen):
    choices = iter(chosen)
    outcome = accept(drafted, choices)
    assert outcome.tokens == tuple(chosen[: len(outcome.tokens)])
    assert list(choices) == chosen[len(outcome.tokens) :]
    assert outcome.kept == len(outcome.tokens) - 1
    assert list(outcome.tokens[: outcome.kept]) == drafted[: outcome.kept]
