from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.detokenizing import Detokenizer


def stream(parts, stop=()):
    text = Detokenizer(parts.__getitem__, stop)
    return [text.add(token) for token in range(len(parts))], text.finish(), text.stopped


def test_a_character_is_never_split():
    smile = "🙂".encode()
    pieces, rest, _ = stream([b"a", smile[:1], smile[1:3], smile[3:] + b"b"])
    assert pieces == ["a", "", "", "🙂b"]
    assert rest == ""


def test_what_never_becomes_a_character_is_replaced():
    pieces, rest, _ = stream([b"a\xff", b"b\xe2\x82"])
    assert "".join(pieces) + rest == "a\ufffdb\ufffd"


def test_holds_back_only_what_could_begin_a_stop_text():
    pieces, rest, stopped = stream([b"one E", b"N", b"ough", b" EN", b"D two"], stop=["END"])
    assert pieces == ["one ", "", "ENough", " ", ""]
    assert (rest, stopped) == ("", True)


def test_gives_back_what_was_held_in_vain():
    pieces, rest, stopped = stream([b"one E", b"N"], stop=["END"])
    assert (pieces, rest, stopped) == (["one ", ""], "EN", False)


@pytest.mark.parametrize("stop", [["bc", "b"], ["b", "bc"]])
def test_the_earliest_of_several_stop_texts_cuts(stop):
    assert stream([b"ab", b"cd"], stop=stop) == (["a", ""], "", True)


@given(
    data=st.binary(max_size=40) | st.text(max_size=20).map(str.encode),
    cuts=st.lists(st.integers(0, 40), max_size=10),
)
def test_the_text_is_the_decoded_bytes_however_they_are_cut(data, cuts):
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    parts = [data[a:b] for a, b in itertools.pairwise(edges)]
    pieces, rest, _ = stream(parts)
    assert "".join(pieces) + rest == data.decode(errors="replace")


@given(
    text=st.text("abc", max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=10),
    stop=st.lists(st.text("abc", min_size=1, max_size=4), max_size=3),
)
def test_the_text_ends_before_the_first_stop_text_however_it_is_cut(text, cuts, stop):
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parts = [text[a:b].encode() for a, b in itertools.pairwise(edges)]
    pieces, rest, stopped = stream(parts, stop)
    # The earliest end decides, since what follows was not there yet when it was complete.
    ends = [
        len(text[:end])
        for end in range(len(text) + 1)
        if any(text[:end].endswith(word) for word in stop)
    ]
    got = "".join(pieces) + rest
    assert stopped == bool(ends)
    assert text.startswith(got)
    if not ends:
        assert got == text
    else:
        assert not any(word in got for word in stop)
        assert any(text[len(got) :].startswith(word) for word in stop)
