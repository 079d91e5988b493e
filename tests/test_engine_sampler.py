from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine import EngineError, InvalidRequest, Sampling
from tokforge_engine.decoding import decode
from tokforge_engine.drafting import DraftModel
from tokforge_engine.policy import FixedLength
from tokforge_engine.sampler import Sampler, candidates
from tokforge_engine.statistics import Tally
from toy_models import ToyModel, table


def row(*logits):
    return np.array(logits, dtype=np.float32)


def kept(logits, **options):
    options.setdefault("temperature", 1.0)
    ids, weights = candidates(row(*logits), Sampling(**options))
    assert weights.max() == 1.0
    return ids.tolist()


def test_all_tokens_may_be_drawn_with_their_probabilities():
    ids, weights = candidates(row(1.0, 3.0, 2.0), Sampling(temperature=0.5))
    assert ids.tolist() == [0, 1, 2]
    assert weights == pytest.approx(np.exp([-4.0, 0.0, -2.0]))


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"top_k": 1}, [1]),
        ({"top_k": 2}, [1, 2]),
        ({"top_k": 3}, [0, 1, 2]),
        ({"top_k": 99}, [0, 1, 2, 3, 4]),
        ({"top_p": 0.0}, [1]),
        ({"top_p": 0.49}, [1]),
        ({"top_p": 0.51}, [1, 2]),
        ({"top_p": 0.76}, [0, 1, 2]),
        ({"min_p": 0.4}, [1, 2]),
        ({"min_p": 0.2}, [0, 1, 2, 3]),
        ({"min_p": 1.0}, [1]),
        ({"top_k": 3, "top_p": 0.6, "min_p": 0.6}, [1]),
    ],
)
def test_which_tokens_may_be_drawn(options, ids):
    # Probabilities 1/8, 1/2, 1/4 and two of 1/16 minus what the last has less.
    logits = [np.log(p) for p in (0.125, 0.5, 0.25, 0.12, 0.005)]
    assert kept(logits, **options) == ids


def test_of_equals_at_the_border_the_lowest_ids_stay():
    assert kept([0.0, 2.0, 2.0, 2.0, 5.0], top_k=3) == [1, 2, 4]
    assert kept([1.0, 1.0, 1.0, 1.0], top_p=0.5) == [0, 1]


def test_a_token_that_was_ruled_out_is_never_drawn():
    assert kept([-np.inf, 0.0, -np.inf]) == [1]


@given(
    logits=st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=30),
    top_p=st.floats(0.01, 1.0),
)
def test_the_nucleus_is_the_fewest_tokens_with_its_share(logits, top_p):
    ids = kept(logits, top_p=top_p)
    chances = np.exp(np.array(logits, np.float32).astype(np.float64) - max(logits))
    chances /= chances.sum()
    share = chances[ids].sum()
    assert share >= top_p - 1e-6
    assert share - chances[ids].min() <= top_p + 1e-6


def test_tokens_come_as_often_as_they_are_likely():
    chances = np.array([0.5, 0.3, 0.15, 0.05])
    sampler = Sampler(Sampling(temperature=1.0, seed=1), [0], 4)
    draws = 20_000
    counts = Counter(sampler(np.log(chances).astype(np.float32)) for _ in range(draws))
    deviation = np.sqrt(draws * chances * (1 - chances))
    assert all(abs(counts[t] - draws * chances[t]) < 4 * deviation[t] for t in range(4))


def test_a_seed_is_one_text_and_seeds_differ():
    def text(seed):
        sampler = Sampler(Sampling(temperature=1.0, seed=seed), [0], 50)
        return [sampler(np.zeros(50, np.float32)) for _ in range(20)]

    assert text(7) == text(7) != text(8)
    assert len({tuple(text(seed)) for seed in range(50)}) == 50


def test_a_guess_draws_what_the_target_will():
    sampler = Sampler(Sampling(temperature=1.0, seed=3), [0], 50)
    rows = np.random.default_rng(0).normal(size=(5, 50)).astype(np.float32)
    guesses = [sampler.guess(each, ahead) for ahead, each in enumerate(rows)]
    assert [sampler(each) for each in rows] == guesses
    assert [sampler.guess(each, ahead - 5) for ahead, each in enumerate(rows)] == guesses


def test_penalties_and_biases_move_logits():
    def greedy(logits, prompt=(0,), **options):
        return Sampler(Sampling(**options), prompt, len(logits))(row(*logits))

    assert greedy([4.0, 3.0]) == 0
    assert greedy([4.0, 3.0], repetition_penalty=2.0) == 1
    assert greedy([-4.0, -5.0], repetition_penalty=2.0) == 1
    assert greedy([4.0, 3.0], presence_penalty=9.0) == 0
    assert greedy([4.0, 3.0], logit_bias=((1, 0.6), (1, 0.6))) == 1
    twice = Sampler(Sampling(presence_penalty=2.0), [1], 2)
    assert [twice(row(4.0, 3.0)) for _ in range(3)] == [0, 1, 0]


def test_a_bias_outside_the_vocabulary_is_refused():
    with pytest.raises(InvalidRequest, match="a bias expected 0 to 9, got 10"):
        Sampler(Sampling(logit_bias=((10, 1.0),)), [0], 10)


def test_refuses_rows_that_are_not_numbers():
    with pytest.raises(EngineError, match="not numbers"):
        Sampler(Sampling(temperature=1.0, seed=0), [0], 2)(row(np.nan, 1.0))


def run(target, drafter, sampler, d=3):
    if isinstance(drafter, DraftModel):
        drafter.choose = sampler.guess
    tally = Tally()
    tokens = decode(
        target,
        FixedLength(drafter, d),
        [1, 0],
        limit=40,
        is_stop=set().__contains__,
        tally=tally,
        choose=sampler,
    )
    return [token.id for token in tokens], tally.statistics()


rows = st.lists(st.lists(st.floats(-3, 3, width=32), min_size=6, max_size=6), min_size=1)


@given(
    target_rows=rows,
    draft_rows=rows,
    d=st.integers(1, 6),
    sampling=st.builds(
        Sampling,
        temperature=st.floats(0.0, 3.0),
        top_k=st.integers(0, 6),
        top_p=st.floats(0.0, 1.0),
        min_p=st.floats(0.0, 1.0),
        repetition_penalty=st.floats(0.5, 2.0),
        presence_penalty=st.floats(-1.0, 1.0),
        logit_bias=st.lists(st.tuples(st.integers(0, 5), st.floats(-5, 5)), max_size=2).map(tuple),
        seed=st.integers(0, 2**63 - 1),
    ),
)
def test_paired_equals_plain_however_it_is_sampled(target_rows, draft_rows, d, sampling):
    target = ToyModel(6, table(6, target_rows))
    plain, _ = run(target, None, Sampler(sampling, [1, 0], 6))
    target.rollback(0)
    drafter = DraftModel(ToyModel(6, table(6, draft_rows)), 6)
    paired, _ = run(target, drafter, Sampler(sampling, [1, 0], 6), d)
    assert paired == plain


@given(target_rows=rows, seed=st.integers(0, 1000), temperature=st.floats(0.1, 3.0))
def test_a_draft_equal_to_its_target_is_accepted_whole_when_sampling(
    target_rows, seed, temperature
):
    sampling = Sampling(temperature=temperature, seed=seed)
    drafter = DraftModel(ToyModel(6, table(6, target_rows)), 6)
    _, statistics = run(ToyModel(6, table(6, target_rows)), drafter, Sampler(sampling, [1, 0], 6))
    assert statistics.accepted == statistics.drafted > 0
