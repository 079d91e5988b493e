"""What is tried on which device."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.bundle import BACKENDS, LEVELS, Settings
from tokforge_models.measuring.space import formats_of, reference_of, threads_of
from tokforge_models.measuring.trials import changed

SHIPPED = Settings(backend="cpu", threads=4, precision="low", memory="low", sampler="greedy")
HERE = {name: "here" if name in {"cpu", "vulkan"} else "missing" for name in BACKENDS}


@pytest.mark.parametrize(
    ("cores", "threads"),
    [(1, (1,)), (2, (1, 2)), (5, (1, 2, 3, 4, 5)), (8, (1, 2, 3, 4, 6, 8)), (None, (1, 2, 3, 4))],
)
def test_threads(cores: int | None, threads: tuple[int, ...]) -> None:
    assert threads_of(cores) == threads


def test_as_many_threads_as_settings_can_say() -> None:
    assert threads_of(128)[-1] == 64


def test_formats_of_a_device_with_a_gpu() -> None:
    told = [", ".join(changed(each, SHIPPED)) for each in formats_of(SHIPPED, HERE)]
    assert told == [
        "dynamic option 2",
        "dynamic option 1",
        "backend vulkan",
        "precision normal",
        "precision high",
        "memory normal",
    ]


def test_a_backend_that_nobody_is_sure_of_is_not_tried() -> None:
    unknown = dict.fromkeys(BACKENDS, "unknown")
    assert {each.backend for each in formats_of(SHIPPED, unknown)} == {"cpu"}


settings = st.builds(
    Settings,
    backend=st.none() | st.sampled_from(BACKENDS),
    threads=st.none() | st.integers(1, 64),
    precision=st.none() | st.sampled_from(LEVELS),
    memory=st.none() | st.sampled_from(LEVELS),
    dynamic_option=st.none() | st.integers(0, 9),
)


@given(settings, st.dictionaries(st.sampled_from(BACKENDS), st.sampled_from(["here", "missing"])))
def test_every_format_is_another_one_and_runs_here(shipped: Settings, backends) -> None:
    found = formats_of(shipped, backends)
    assert len(set(found)) == len(found)
    for each in found:
        assert each != shipped
        assert each.threads == shipped.threads
        assert each.backend == shipped.backend or backends.get(each.backend or "cpu") == "here"
    reference = reference_of(shipped)
    assert (reference.backend, reference.memory, reference.threads) == (
        "cpu",
        "normal",
        shipped.threads,
    )
    assert reference_of(replace(reference, power="high")) == replace(reference, power="high")
