from __future__ import annotations

import math

import pytest

from tokforge_engine import InvalidRequest, Sampling


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"temperature": -0.1}, "temperature expected 0 to 100, got -0.1"),
        ({"temperature": math.nan}, "temperature expected 0 to 100, got nan"),
        ({"top_k": -1}, "top_k expected 0 to"),
        ({"top_p": 1.5}, "top_p expected 0 to 1, got 1.5"),
        ({"min_p": math.inf}, "min_p expected 0 to 1, got inf"),
        ({"repetition_penalty": 0.0}, "repetition_penalty expected 0.01 to 100, got 0"),
        ({"presence_penalty": 101.0}, "presence_penalty expected -100 to 100"),
        ({"logit_bias": ((3, math.nan),)}, "bias of a token expected"),
        ({"logit_bias": ((-3, 1.0),)}, "token id with a bias expected 0 to"),
        ({"seed": -1}, "seed expected 0 to"),
        ({"seed": 2**63}, "seed expected 0 to"),
    ],
)
def test_what_is_out_of_range_is_refused_with_the_range(options, says):
    with pytest.raises(InvalidRequest, match=says):
        Sampling(**options)


def test_nothing_is_drawn_unless_asked():
    assert Sampling().is_plain_greedy
    assert Sampling(top_k=5, seed=3).is_plain_greedy
    assert not Sampling(temperature=0.1).is_plain_greedy
    assert not Sampling(repetition_penalty=1.1).is_plain_greedy
    assert not Sampling(presence_penalty=1.1).draws
