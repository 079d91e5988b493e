from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.learned import Learned, PairLearned


def taught():
    pair = PairLearned()
    for _ in range(20):
        pair.of("any").model.count(7, True)
        pair.of("lookup").lookup.count(0, False)
    pair.of("any").speedup = 1.5
    pair.of("lookup").speedup = 1.2
    return pair


def state(pair):
    known = [pair.of(drafters) for drafters in ("any", "model", "lookup")]
    chances = [(learned.model.all(), learned.lookup.all()) for learned in known]
    return chances, [learned.speedup for learned in known]


def test_comes_back_as_it_went(tmp_path):
    file = tmp_path / "not" / "yet" / "pair.json"
    taught().write(file)
    assert state(PairLearned.read(file)) == state(taught()) != state(PairLearned())
    assert list(file.parent.iterdir()) == [file]


def test_who_may_guess_has_its_own_speed_and_all_have_the_same_chances():
    chances, speedups = state(taught())
    assert speedups == [1.5, 1.0, 1.2]
    assert chances == [chances[0]] * 3
    assert chances[0] != (Learned().model.all(), Learned().lookup.all())


def changed(**keys):
    document = {
        "schema": 3,
        "speedups": {"any": 1.5},
        "model": {"tried": [1.0] * 8, "kept": [0.5] * 8},
        "lookup": {"tried": [1.0] * 6, "kept": [0.5] * 6},
    }
    return json.dumps({**document, **keys}).encode()


def test_the_document_that_the_others_are_made_from_is_read(tmp_path):
    file = tmp_path / "pair.json"
    file.write_bytes(changed())
    assert PairLearned.read(file).of("any").speedup == 1.5


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"[" * 90_000,
        changed(schema=1),
        changed(speedups={"model": 0.2}),
        changed(speedups={"any": "fast"}),
        changed(speedups={"any": float("nan")}),
        changed(speedups=[1.5]),
        changed(speedups=2),
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
    assert state(PairLearned.read(file)) == state(PairLearned())


def test_no_file_and_a_directory_are_as_good_as_none(tmp_path):
    assert state(PairLearned.read(tmp_path / "absent")) == state(PairLearned())
    assert state(PairLearned.read(tmp_path)) == state(PairLearned())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pair.json")
    assert state(PairLearned.read(tmp_path / "pair.json")) == state(PairLearned())


@given(st.binary(max_size=300))
def test_nothing_in_a_file_can_raise(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("learned") / "pair.json"
    file.write_bytes(content)
    PairLearned.read(file)


def test_a_write_that_fails_leaves_no_rest(tmp_path):
    file = tmp_path / "pair.json"
    file.mkdir()
    with pytest.raises(OSError):
        taught().write(file)
    assert list(tmp_path.iterdir()) == [file]
