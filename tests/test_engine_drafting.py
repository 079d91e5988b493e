from __future__ import annotations

import math
from itertools import islice

import pytest

from tokforge_engine.drafting import SCORED, DraftModel
from toy_models import ToyModel, one_hot


def counter(vocabulary, context_length=None):
    step = one_hot(vocabulary, lambda ids: (ids[-1] + 1) % vocabulary)
    return ToyModel(vocabulary, step, context_length)


def propose(drafter, context, k):
    return list(islice(drafter.guesses(context), k))


def test_guesses_greedily_and_catches_up_in_one_forward():
    model = counter(10)
    assert propose(DraftModel(model, 10), [1, 2, 3], 3) == [4, 5, 6]
    assert model.widths == [3, 1, 1]


@pytest.mark.parametrize(
    ("length", "widths"), [(64, [64]), (65, [64, 1]), (128, [64, 64]), (200, [64, 64, 64, 8])]
)
def test_a_long_context_is_read_in_chunks_and_reported(length, widths):
    model = counter(10)
    drafter = DraftModel(model, 10)
    seen = []
    drafter.on_read = lambda done, total: seen.append((done, total))
    assert propose(drafter, [token % 10 for token in range(length)], 2) == [
        length % 10,
        (length + 1) % 10,
    ]
    assert model.widths == [*widths, 1]
    assert seen == [(64 * (n + 1), length) for n in range(len(widths) - 1)]


def test_reading_that_was_given_up_goes_on_later():
    class GiveUpError(Exception):
        pass

    def give_up(done, total):
        raise GiveUpError

    model = counter(10)
    drafter = DraftModel(model, 10)
    context = [token % 10 for token in range(150)]
    drafter.on_read = give_up
    with pytest.raises(GiveUpError):
        propose(drafter, context, 1)
    assert model.ids == context[:64]
    drafter.on_read = lambda done, total: None
    assert propose(drafter, context, 1) == [0]
    assert model.widths == [64, 64, 22]


@pytest.mark.parametrize(("accepted", "fed"), [(0, 1), (1, 1), (2, 1), (3, 2)])
def test_after_a_round_only_what_it_missed_is_fed(accepted, fed):
    model = counter(10)
    drafter = DraftModel(model, 10)
    context = [1, 2, 3]
    drafted = propose(drafter, context, 3)
    drafter.keep(len(context) + accepted)
    context = [*context, *drafted[:accepted], 9]
    model.widths.clear()
    propose(drafter, context, 1)
    assert model.widths == [fed]
    assert model.ids == context


def test_never_proposes_an_id_that_the_target_lacks():
    wide = ToyModel(10, lambda ids: [0, 1, 2, 0, 0, 0, 0, 0, 9, 9])
    assert propose(DraftModel(wide, 8), [1], 2) == [2, 2]


def test_is_silent_about_ids_it_does_not_know():
    model = counter(5)
    assert propose(DraftModel(model, 10), [1, 7], 2) == []
    assert model.ids == []


@pytest.mark.parametrize(("length", "proposed"), [(5, 3), (7, 2), (8, 1), (9, 0), (12, 0)])
def test_is_silent_where_its_own_context_ends(length, proposed):
    drafter = DraftModel(counter(10, context_length=8), 10)
    assert len(propose(drafter, [1] * length, 3)) == proposed


def test_a_score_compares_first_guesses_with_what_was_emitted():
    model = counter(50)
    context = [token % 50 for token in range(100)]
    context[90] = 7
    agreed = DraftModel(model, 50).score(context, 60.0)[::-1]
    assert len(agreed) == SCORED
    # All 50 tokens are nearly as likely.
    assert {sure for sure, _ in agreed} == {1}
    # Neither the odd token nor the one after it follows from its predecessor.
    assert [place for place, (_, kept) in enumerate(agreed, 100 - SCORED) if not kept] == [90, 91]
    assert model.widths == [SCORED]
    assert model.ids == []


@pytest.mark.parametrize(
    ("context", "scores"), [([1] * SCORED, True), ([1] * 99 + [60], True), ([1] * 99, False)]
)
def test_no_score_where_it_cannot_tell(context, scores):
    model = counter(50)
    assert DraftModel(model, 100, scores=scores).score(context, 60.0) == []
    assert model.widths == []


def test_where_there_is_no_time_a_score_is_of_the_last_token():
    drafter = DraftModel(counter(50), 50)
    assert [kept for _, kept in drafter.score([*range(40), 7], 0.0)] == [False]
    assert [kept for _, kept in drafter.score([*range(40), 40], 0.0)] == [True]


def test_after_a_score_it_reads_the_context_again():
    model = counter(50)
    drafter = DraftModel(model, 50)
    context = list(range(40))
    drafter.score(context, 60.0)
    assert propose(drafter, context, 1) == [40]
    assert model.ids == context


@pytest.mark.parametrize(
    ("near", "degree"),
    [(1, 7), (2, 6), (3, 5), (4, 5), (5, 4), (8, 3), (13, 2), (25, 1), (60, 0), (99, 0)],
)
def test_it_is_the_surer_the_fewer_tokens_are_nearly_as_likely(near, degree):
    logits = [9.0, *[6.0] * (near - 1), *[5.0] * (100 - near)]
    drafter = DraftModel(ToyModel(100, lambda ids: logits), 100)
    assert propose(drafter, [1], 1) == [0]
    assert drafter.sure() == degree


@pytest.mark.parametrize("largest", [math.nan, math.inf])
def test_it_is_not_sure_of_what_is_no_number(largest):
    drafter = DraftModel(ToyModel(3, lambda ids: [0.0, largest, 0.0]), 3)
    drafter.choose = lambda row, ahead: 0
    assert propose(drafter, [1], 1) == [0]
    assert drafter.sure() == 0
