from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.scoring import agreement, divergence, first_difference, gap, scored_token


def scored(token, *logits, among=None):
    return scored_token(token, b"x", np.array(logits, dtype=np.float32), among)


def test_the_likeliest_in_order_with_their_probabilities():
    each = scored_token(2, "é".encode()[:1], np.log(np.array([0.2, 0.5, 0.3], np.float32)), None)
    assert (each.token, each.text, each.ids) == (2, "�", (1, 2, 0))
    assert [math.exp(value) for value in each.logprobs] == pytest.approx([0.5, 0.3, 0.2])


def test_of_equals_the_lowest_first():
    assert scored(0, 1.0, 2.0, 2.0).ids == (1, 2, 0)
    assert len(scored(0, *[0.0] * 1000).ids) == 64


def test_the_ids_that_were_asked_for():
    each = scored(0, 0.0, math.log(3.0), among=[1, 0])
    assert each.ids == (1, 0)
    assert [math.exp(value) for value in each.logprobs] == pytest.approx([0.75, 0.25])


def test_agreement_and_gap():
    places = [scored(1, 0.0, 2.0, 1.0), scored(0, 0.0, 2.0, 1.5)]
    assert agreement(places) == 0.5
    assert [gap(place) for place in places] == pytest.approx([1.0, 0.5])


def test_the_divergence_is_that_of_the_formula():
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.3, 0.2])
    ours = scored(0, *np.log(p))
    theirs = scored(0, *np.log(q), among=ours.ids)
    assert divergence([ours], [theirs]) == pytest.approx(float((p * np.log(p / q)).sum()), rel=1e-5)
    assert divergence([ours], [ours]) == 0.0


logits = st.lists(st.floats(-8, 8, width=32), min_size=100, max_size=100)


@given(logits, logits)
def test_the_divergence_of_the_likeliest_is_a_close_lower_bound(one, other):
    ours = scored(0, *one)
    theirs = scored(0, *other, among=ours.ids)
    whole = divergence([scored(0, *one, among=range(100))], [scored(0, *other, among=range(100))])
    assert 0.0 <= divergence([ours], [theirs]) <= whole + 1e-6


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [([], [], None), ([1, 2], [1, 2], None), ([1, 2], [1, 3], 1), ([1], [1, 3], 1), ([5], [6], 0)],
)
def test_where_two_answers_part(one, other, place):
    assert first_difference(one, other) == place
