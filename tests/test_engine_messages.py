from __future__ import annotations

import io
import os
import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.decoding import Token
from tokforge_engine.generation import GenerateOptions, Message, Piece, Run
from tokforge_engine.messages import BadMessage, Cancel, Generate, Part, Phase, read, write


@pytest.mark.parametrize(
    "message",
    [
        Generate(3, (Message("user", "schöne Grüße"),), GenerateOptions(stop=("x",))),
        Part(3, ("te", "xt"), ("draft", None), (5, 6), ("draft", None), (), 4, 2),
        Cancel(3),
        Phase("loading"),
    ],
)
def test_comes_back_as_it_went(message):
    stream = io.BytesIO()
    write(stream, message)
    write(stream, message)
    stream.seek(0)
    assert [read(stream), read(stream), read(stream)] == [message, message, None]


def test_a_part_is_put_together_again():
    part = Part(3, ("te", "xt"), ("draft", None), (5, 6), ("draft", None), (), 4, 2)
    runs, tokens = (Run("te", "draft"), Run("xt", None)), (Token(5, "draft"), Token(6))
    assert part.piece == Piece(runs, tokens, drafted=4, accepted=2)


def test_a_stream_that_ends_within_a_frame_has_ended():
    stream = io.BytesIO()
    write(stream, Phase("loading"))
    for length in range(len(stream.getvalue())):
        assert read(io.BytesIO(stream.getvalue()[:length])) is None


def test_builds_nothing_that_is_not_part_of_the_protocol():
    body = pickle.dumps(os.getcwd)
    with pytest.raises(BadMessage, match="not part of the protocol"):
        read(io.BytesIO(struct.pack(">I", len(body)) + body))


@given(st.binary(max_size=200))
def test_garbage_is_a_bad_message(body):
    stream = io.BytesIO(struct.pack(">I", len(body)) + body)
    try:
        message = read(stream)
    except BadMessage:
        return
    assert not callable(message)


def test_printed_text_is_not_taken_for_a_huge_message():
    with pytest.raises(BadMessage, match="bytes"):
        read(io.BytesIO(b"The device supports: nothing"))


def test_what_no_reader_would_take_is_not_written(monkeypatch):
    monkeypatch.setattr("tokforge_engine.messages._MAX_BYTES", 1000)
    stream = io.BytesIO()
    with pytest.raises(BadMessage, match="bytes"):
        write(stream, Phase("x" * 1000))
    with pytest.raises(BadMessage):
        write(stream, Phase(lambda: None))
    assert stream.getvalue() == b""
