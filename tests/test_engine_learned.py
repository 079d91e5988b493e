from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.learned import Learned


def taught():
    learned = Learned()
    for _ in range(20):
        learned.model.count(7, True)
        learned.lookup.count(0, False)
    learned.speedup = 1.5
    return learned


def state(learned):
    return learned.model.all(), learned.lookup.all(), learned.speedup


def test_comes_back_as_it_went(tmp_path):
    file = tmp_path / "not" / "yet" / "pair.json"
    taught().write(file)
    assert state(Learned.read(file)) == state(taught()) != state(Learned())
    assert list(file.parent.iterdir()) == [file]


def changed(**keys):
    document = {
        "schema": 1,
        "speedup": 1.5,
        "model": {"tried": [1.0] * 8, "kept": [0.5] * 8},
        "lookup": {"tried": [1.0] * 6, "kept": [0.5] * 6},
    }
    return json.dumps({**document, **keys}).encode()


def test_the_document_that_the_others_are_made_from_is_read(tmp_path):
    file = tmp_path / "pair.json"
    file.write_bytes(changed())
    assert Learned.read(file).speedup == 1.5


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"[" * 90_000,
        changed(schema=2),
        changed(speedup=0.2),
        changed(speedup="fast"),
        changed(speedup=float("nan")),
        changed(model=3),
        changed(model={"tried": [1.0] * 7, "kept": [1.0] * 7}),
        changed(model={"tried": [1.0] * 8, "kept": [2.0] * 8}),
        changed(lookup={"tried": [float("inf")] * 6, "kept": [1.0] * 6}),
        changed(lookup={"tried": ["x"] * 6, "kept": [1.0] * 6}),
        changed(padding="x" * 200_000),
    ],
)
def test_a_file_that_is_no_such_file_is_as_good_as_none(tmp_path, content):
    file = tmp_path / "pair.json"
    file.write_bytes(content)
    assert state(Learned.read(file)) == state(Learned())


def test_no_file_and_a_directory_are_as_good_as_none(tmp_path):
    assert state(Learned.read(tmp_path / "absent")) == state(Learned())
    assert state(Learned.read(tmp_path)) == state(Learned())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pair.json")
    assert state(Learned.read(tmp_path / "pair.json")) == state(Learned())


@given(st.binary(max_size=300))
def test_nothing_in_a_file_can_raise(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("learned") / "pair.json"
    file.write_bytes(content)
    Learned.read(file)


def test_a_write_that_fails_leaves_no_rest(tmp_path):
    file = tmp_path / "pair.json"
    file.mkdir()
    with pytest.raises(OSError):
        taught().write(file)
    assert list(tmp_path.iterdir()) == [file]
