from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from demo_pair import DRAFT, TARGET, needs_mnn
from tokforge_engine import (
    GenerateOptions,
    ModelSpec,
    RuntimeSettings,
    Session,
    TooLittleMemory,
)
from tokforge_engine.memory import MIB, ModelLoad, Shape, needed_bytes

# The shape of Qwen3-0.6B at 4 bits.
SHAPE = Shape(
    weight_bytes=335_769_842,
    tokenizer_bytes=1_251_358,
    layers=28,
    parameters=595_984_384,
    largest=155_582_464,
    cached=57_344,
)
MODEL = ModelLoad(SHAPE, vocabulary=151_936, widths=(1,), tokens=1024)


def test_at_least_the_weights_and_the_cache():
    needed = needed_bytes(MODEL)
    cache = 1024 * 57_344 * 4
    assert SHAPE.weight_bytes + cache < needed < 2 * SHAPE.weight_bytes + 3 * cache


@pytest.mark.parametrize(
    "more",
    [
        {"tokens": 2048},
        {"widths": tuple(range(1, 9))},
        {"unrounded": True},
        {"shape": replace(SHAPE, weight_bytes=10**9)},
        {"shape": replace(SHAPE, layers=60)},
        {"shape": replace(SHAPE, cached=100_000)},
        {"vocabulary": 10**6},
    ],
)
def test_more_of_anything_needs_more(more):
    assert needed_bytes(replace(MODEL, **more)) > needed_bytes(MODEL)


def test_numbers_of_16_bits_need_less():
    assert needed_bytes(replace(MODEL, number_bytes=2)) < needed_bytes(MODEL)


def test_while_a_large_matrix_is_unpacked_it_counts():
    short = replace(MODEL, tokens=1, unrounded=True)
    assert needed_bytes(short) > 4 * (SHAPE.parameters + SHAPE.largest)


def test_two_models_need_what_each_needs_and_the_process_once():
    both, one = needed_bytes(MODEL, MODEL), needed_bytes(MODEL)
    assert 2 * one - 40 * MIB < both < 2 * one


@pytest.fixture
def free(monkeypatch):
    def set_free(count):
        monkeypatch.setattr("tokforge_engine.session.free_bytes", lambda: count)

    return set_free


def test_what_is_too_large_is_refused_before_anything_is_started(free, monkeypatch):
    free(100 * MIB)
    monkeypatch.setattr("tokforge_engine.session.WorkerProcess", None)
    with pytest.raises(TooLittleMemory) as caught:
        Session(ModelSpec(TARGET), ModelSpec(DRAFT))
    assert caught.value.exit_code == 7
    assert caught.value.kind == "refused"
    assert "demo-chat with demo-draft would need about" in caught.value.message
    assert "105 MB are free" in caught.value.message
    assert "--force" in caught.value.hint
    assert "--draft none" in caught.value.hint


@needs_mnn
@pytest.mark.parametrize("count", [None, 10**12])
def test_what_fits_or_cannot_be_told_is_loaded(free, count):
    free(count)
    with Session(ModelSpec(TARGET)) as session:
        assert session.pid


@needs_mnn
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see memory")
def test_the_estimate_is_not_below_what_is_taken_nor_far_above():
    settings = RuntimeSettings(threads=1)
    models = (ModelSpec(path, settings, context_length=600) for path in (TARGET, DRAFT))
    with Session(*models, lookup=True) as session:
        options = GenerateOptions(max_tokens=16, d=3, ignore_stop_tokens=True)
        list(session.generate("sea cat tree house river " * 100, options))
        status = Path("/proc", str(session.pid), "status").read_text()
        taken = int(status.partition("VmHWM:")[2].split()[0]) * 1024
        assert taken <= session.needed_bytes <= 1.5 * taken


@needs_mnn
def test_force_loads_it_all_the_same(free):
    free(1)
    with Session(ModelSpec(TARGET), force=True) as session:
        assert session.pid


def test_weights_that_are_unpacked_need_more_and_settings_say_so(free):
    def needed(**settings):
        free(1)
        with pytest.raises(TooLittleMemory) as caught:
            Session(ModelSpec(TARGET, RuntimeSettings(**settings)))
        return int(caught.value.message.partition("about ")[2].partition(" ")[0])

    # The bundle's own setting is low.
    assert needed() == needed(memory="low") < needed(memory="normal") == needed(memory="high")
