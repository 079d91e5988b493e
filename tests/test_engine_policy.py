from __future__ import annotations

import pytest

from tokforge_engine.policy import Draft, FixedLength
from toy_models import Script


@pytest.mark.parametrize(("d", "most", "tokens"), [(3, 9, 3), (3, 2, 2), (3, 0, 0), (0, 9, 0)])
def test_a_fixed_length_is_what_there_is_room_for(d, most, tokens):
    draft = FixedLength(Script([5, 6, 7, 8], start=2), d).draft([1, 2], most)
    assert draft == Draft((5, 6, 7, 8)[:tokens], "script" if tokens else None)


def test_a_drafter_may_have_fewer_guesses_or_none():
    policy = FixedLength(Script([5], start=2), 3)
    assert policy.draft([1, 2], 9) == Draft((5,), "script")
    assert policy.draft([1, 2, 3], 9) == Draft()


def test_without_a_drafter_it_is_plain_decoding():
    assert FixedLength().draft([1, 2], 9) == Draft()
