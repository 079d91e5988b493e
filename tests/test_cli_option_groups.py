"""Groups of options: each option of a group is one of the command, and the group its value."""

from __future__ import annotations

import inspect
from typing import Annotated

import pytest
import typer

from tokforge_engine import InvalidRequest, Sampling
from tokforge_models.cli.option_groups import Choosing, Running, takes_groups


@takes_groups
def command(
    name: Annotated[str, typer.Argument()],
    running: Running,
    choosing: Choosing,
    twice: bool = False,
) -> tuple[str, Running, Choosing, bool]:
    """Do it."""
    return name, running, choosing, twice


def test_the_options_of_a_group_stand_in_its_place() -> None:
    names = list(inspect.signature(command).parameters)
    assert names[:2] == ["name", "threads"]
    assert {"draft_threads", "temperature", "seed"} < set(names)
    assert names[-1] == "twice"
    assert command.__doc__ == "Do it."


def test_a_command_gets_its_groups() -> None:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    words = ["x", "--threads", "3", "--temperature", "0.5", "--seed", "9"]
    assert app(args=words, standalone_mode=False) == (
        *("x", Running(threads=3), Choosing(temperature=0.5, seed=9), False),
    )


def test_sampling_is_what_the_flags_say() -> None:
    assert Choosing().sampling() == Sampling()
    assert Choosing(top_k=5, seed=3).sampling() == Sampling(top_k=5, seed=3)
    with pytest.raises(InvalidRequest, match="top_p expected 0 to 1"):
        Choosing(top_p=2.0).sampling()
