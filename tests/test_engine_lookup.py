from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.lookup import MATCHES, Lookup


def guesses(context, k=4, lookup=None):
    return list(islice((lookup or Lookup()).guesses(context), k))


@pytest.mark.parametrize(
    ("context", "guessed"),
    [
        ([], []),
        ([1], []),
        ([1, 2, 3, 4], []),
        ([1, 2, 3, 9, 2], []),
        ([1, 2, 3, 4, 5, 9, 1, 2], [3, 4, 5, 9]),
        # The longest match wins, of several the latest.
        ([7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2], [3, 8, 1, 2]),
        ([1, 2, 3, 9, 1, 2, 4, 9, 8, 1, 2], [4, 9, 8, 1]),
        # A text that repeats itself goes on repeating itself.
        ([5, 6, 5, 6], [5, 6, 5, 6]),
        ([5, 5, 5], [5, 5, 5, 5]),
    ],
)
def test_what_followed_the_last_time(context, guessed):
    assert guesses(context) == guessed


@pytest.mark.parametrize("length", range(2, 20))
def test_it_is_the_surer_the_longer_the_match(length):
    passage = list(range(100, 100 + length))
    lookup = Lookup()
    assert guesses([1, *passage, 2, 3, *passage], 1, lookup) == [2]
    assert lookup.sure() == sum(length >= least for least in MATCHES) - 1


@given(
    context=st.lists(st.integers(0, 3), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=5),
)
def test_an_index_that_grows_says_what_a_new_one_says(context, cuts):
    lookup = Lookup()
    for end in sorted(cuts):
        assert guesses(context[:end], lookup=lookup) == guesses(context[:end])
        lookup.keep(end)
    assert guesses(context, lookup=lookup) == guesses(context)


@given(
    one=st.lists(st.integers(0, 3), max_size=40),
    other=st.lists(st.integers(0, 3), max_size=40),
)
def test_a_context_that_goes_another_way_is_read_anew(one, other):
    lookup = Lookup()
    guesses(one, lookup=lookup)
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    lookup.keep(same)
    assert guesses(other, lookup=lookup) == guesses(other)
