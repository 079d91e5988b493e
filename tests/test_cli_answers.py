"""What flags ask for, and what of an answer is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tokforge_engine import Piece, Run, Said
from tokforge_models.bundle import Settings
from tokforge_models.cli.answers import Telling, draft_length, overrides_of
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
    running = Running(threads=4, draft_threads=1, backend="opencl", memory="low", dynamic_option=2)
    asked = overrides_of(running, "3", samples=True)
    assert asked.target == Settings(
        backend="opencl", threads=4, memory="low", sampler="mixed", dynamic_option=2
    )
    assert asked.draft == Settings(threads=1, memory="low", dynamic_option=2)
    assert asked.d == 3
    same = overrides_of(Running(threads=2), None, samples=False)
    assert same.target == same.draft == Settings(threads=2)
    assert same.d is None


class Generation:
    """Says what it is told to."""

    result: Any = "the result"

    def __init__(self, *texts: str, in_thought: bool = False) -> None:
        self._texts = texts
        self.in_thought = in_thought

    def __iter__(self) -> Iterator[Piece]:
        for text in self._texts:
            yield Piece((Run(text, "draft"),), ())


@pytest.mark.parametrize(
    ("texts", "in_thought", "text", "reasoning"),
    [
        (["Yes."], False, "Yes.", None),
        ([], False, "", None),
        (["\n", "Yes."], False, "\nYes.", None),
        (["<think>\nHm", "m.\n</th", "ink>\n\nYes", ".\n"], False, "Yes.\n", "Hmm."),
        (["Hmm.\n</think>\n\nYes."], True, "Yes.", "Hmm."),
        (["<think>\n\n</think>\n\n", "Yes."], False, "Yes.", None),
        (["Hmm, 1 <"], True, "", "Hmm, 1 <"),
        (["No. <think>Hm.</think>\nYes."], False, "No. \nYes.", "Hm."),
    ],
)
def test_thoughts_are_told_from_the_answer(
    texts: list[str], in_thought: bool, text: str, reasoning: str | None
) -> None:
    generation: Any = Generation(*texts, in_thought=in_thought)
    telling = Telling(generation)
    parts = list(telling)
    assert telling.raw == "".join(texts)
    answer = telling.answer()
    assert (answer.result, answer.text, answer.reasoning) == ("the result", text, reasoning)
    assert "".join(said.text for said, _ in parts if not said.thought) == text


def test_each_part_has_who_guessed_it() -> None:
    generation: Any = Generation("Yes", ", a <th")
    assert list(Telling(generation)) == [
        (Said("Yes", False), "draft"),
        (Said(", a ", False), "draft"),
        (Said("<th", False), None),
    ]
