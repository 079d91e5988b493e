"""What flags ask for."""

from __future__ import annotations

import pytest

from tokforge_models.bundle import Settings
from tokforge_models.cli.answers import draft_length, overrides_of
from tokforge_models.cli.option_groups import Running
from tokforge_models.errors import UsageError


@pytest.mark.parametrize(("text", "length"), [("auto", "auto"), ("0", 0), ("15", 15)])
def test_a_draft_length(text: str, length: int | str) -> None:
    assert draft_length(text) == length


@pytest.mark.parametrize("text", ["16", "-1", "", "3.0", "\u0663", "x" * 999])
def test_no_draft_length(text: str) -> None:
    with pytest.raises(UsageError, match="expected auto or 0 to 15") as caught:
        draft_length(text)
    assert len(caught.value.message) < 120


def test_both_models_get_what_is_asked_and_the_draft_its_own_threads() -> None:
    running = Running(threads=4, draft_threads=1, backend="opencl", memory="low")
    asked = overrides_of(running, "3", samples=True)
    assert asked.target == Settings(backend="opencl", threads=4, memory="low", sampler="mixed")
    assert asked.draft == Settings(threads=1, memory="low")
    assert asked.d == 3
    same = overrides_of(Running(threads=2), None, samples=False)
    assert same.target == same.draft == Settings(threads=2)
    assert same.d is None
