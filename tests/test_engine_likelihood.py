from __future__ import annotations

import math

import numpy as np
import pytest

from demo_pair import DRAFT, TARGET, needs_mnn
from tokforge_engine import GenerateOptions, Likely, ModelSpec, Session
from tokforge_engine.choice import greedy
from tokforge_engine.likelihood import Recorder

ROW = np.log(np.array([0.1, 0.5, 0.15, 0.25], np.float32)) + 7.0


def texts(token):
    return b"abcd"[token : token + 1]


def test_the_chosen_and_the_likeliest_are_told_with_their_probabilities():
    recorder = Recorder(greedy, 2, texts)
    assert recorder(ROW) == 1
    (told,) = recorder.recorded
    assert told.chosen == Likely(1, b"b", pytest.approx(math.log(0.5), abs=1e-6))
    assert [likely.id for likely in told.top] == [1, 3]
    assert told.top[1].logprob == pytest.approx(math.log(0.25), abs=1e-6)


@pytest.mark.parametrize("top", [0, 4, 20])
def test_as_many_are_told_as_there_are(top):
    recorder = Recorder(lambda row: 0, top, texts)
    recorder(ROW)
    (told,) = recorder.recorded
    assert told.chosen.id == 0
    assert [likely.id for likely in told.top] == [1, 3, 2, 0][:top]


def test_they_are_the_models_own_whatever_was_forbidden():
    recorder = Recorder(lambda row: greedy(np.where([1, 0, 1, 1], row, -np.inf)), 1, texts)
    assert recorder(ROW) == 3
    (told,) = recorder.recorded
    assert told.chosen.logprob == pytest.approx(math.log(0.25), abs=1e-6)
    assert told.top[0].id == 1


@needs_mnn
@pytest.mark.parametrize("d", [0, 3])
def test_every_token_of_a_real_answer_has_its_own(d):
    with Session(ModelSpec(TARGET), ModelSpec(DRAFT), max_d=3) as session:
        options = GenerateOptions(max_tokens=24, d=d, logprobs=2, ignore_stop_tokens=True)
        pieces = list(session.generate("What is a cat?", options))
        for piece in pieces:
            assert [told.chosen.id for told in piece.logprobs] == [t.id for t in piece.tokens]
        told = [each for piece in pieces for each in piece.logprobs]
        assert len(told) == 24
        # Greedy: the chosen one is the likeliest.
        assert all(each.chosen == each.top[0] for each in told)
        assert all(sum(math.exp(likely.logprob) for likely in each.top) <= 1.0001 for each in told)
        assert pieces[-1].accepted == sum(
            t.drafted_by is not None for p in pieces for t in p.tokens
        )
        assert pieces[-1].drafted >= pieces[-1].accepted
        assert bool(pieces[-1].drafted) == bool(d)
