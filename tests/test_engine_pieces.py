from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.decoding import Token
from tokforge_engine.detokenizing import Detokenizer
from tokforge_engine.generation import Run
from tokforge_engine.pieces import Pieces
from tokforge_engine.statistics import Tally


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("tokforge_engine.pieces.time.monotonic", lambda: now[0])
    return now


def sent_by(steps, clock, stop=()):
    sent = []
    texts = [text.encode() for _, text, _ in steps]
    pieces = Pieces(7, sent.append, Tally(), Detokenizer(texts.__getitem__, stop))
    for place, (seconds, _, by) in enumerate(steps):
        clock[0] += seconds
        pieces.add(Token(place, by))
    pieces.finish()
    assert {part.request for part in sent} <= {7}
    assert pieces.text == "".join(part.piece.text for part in sent)
    return [part.piece for part in sent]


def test_the_first_goes_at_once_and_the_next_after_a_while(clock):
    first, rest = sent_by([(0, "a", None), (0.01, "b", None), (0.01, "c", None)], clock)
    assert (first.text, rest.text) == ("a", "bc")
    assert (len(first.tokens), len(rest.tokens)) == (1, 2)


def test_what_one_guessed_is_one_run(clock):
    steps = [(0, "a", None), (0, "b", "draft"), (0, "c", "draft"), (0, "", None), (0, "d", None)]
    _, rest = sent_by(steps, clock)
    assert rest.runs == (Run("bc", "draft"), Run("d", None))
    assert len(rest.tokens) == 4


steps = st.tuples(
    st.floats(0, 0.05), st.sampled_from(["", "x", "yz"]), st.sampled_from([None, "draft"])
)


@given(st.lists(steps))
def test_nothing_is_lost_or_empty(steps):
    with pytest.MonkeyPatch.context() as patch:
        now = [0.0]
        patch.setattr("tokforge_engine.pieces.time.monotonic", lambda: now[0])
        pieces = sent_by(steps, now)
    assert "".join(piece.text for piece in pieces) == "".join(text for _, text, _ in steps)
    assert sum(len(piece.tokens) for piece in pieces) == len(steps)
    assert all(piece.tokens or piece.runs for piece in pieces)
    assert all(run.text for piece in pieces for run in piece.runs)
