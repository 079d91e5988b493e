"""How far settings are apart: made-up readings, and the embedded pair in three number formats."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo_pair import TARGET, needs_mnn
from tokforge_engine import GenerateOptions, ModelSpec, RuntimeSettings, Session
from tokforge_engine.generation import Scored
from tokforge_models.measuring.quality import PROMPTS, answer, distance, read_texts


def reader(*shares: float):
    """Scores every place with the same two chances."""

    def score(prompt, token_ids, among=None):
        logprobs = tuple(map(math.log, shares))
        return tuple(Scored(token, "", (0, 1), logprobs) for token in token_ids)

    return score


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_the_distance_is_the_divergence_of_the_chances(p: float, q: float) -> None:
    texts = read_texts(reader(p, 1 - p), [("a", (5, 6)), ("b", ()), ("c", (7,))])
    assert [text.prompt for text in texts] == ["a", "c"]
    found = distance(reader(q, 1 - q), texts)
    analytic = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert found.divergence == pytest.approx(max(0.0, analytic), abs=1e-9)
    same = distance(reader(p, 1 - p), texts).digest
    assert (found.digest == same) == (p == q)


def test_texts_that_are_all_empty_have_no_distance() -> None:
    assert distance(reader(1.0), read_texts(reader(1.0), [("a", ())])).divergence == 0.0


@needs_mnn
def test_a_format_is_near_itself_and_rounding_shows() -> None:
    def load(memory: str) -> Session:
        return Session(ModelSpec(TARGET, RuntimeSettings(memory=memory)))

    with load("normal") as reference, load("low") as shipped:
        options = GenerateOptions(max_tokens=12, d=0)
        answers = [(text, answer(shipped.generate, text, options).token_ids) for text in PROMPTS]
        texts = read_texts(reference.score, answers)
        itself, other = distance(reference.score, texts), distance(shipped.score, texts)
        again = distance(shipped.score, texts)
    assert itself.divergence == pytest.approx(0.0, abs=1e-9)
    assert 1e-7 < other.divergence < 1.0
    assert again == other
    assert again.digest != itself.digest
