from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo_pair import DRAFT, TARGET, needs_mnn
from tokforge_engine import GenerateOptions, InvalidRequest, ModelSpec, Sampling, Session
from tokforge_engine.choice import greedy
from tokforge_engine.constraint import Constraint, Vocabulary
from tokforge_engine.decoding import decode
from tokforge_engine.errors import Incompatible
from tokforge_engine.policy import FixedLength
from tokforge_engine.statistics import Tally
from toy_models import Script, ToyModel

llguidance = pytest.importorskip("llguidance")

STOP = 0
TEXTS = [b"<end>", b"a", b"b", b"ab", b"ba", b"c", b""]


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary(TEXTS, [STOP], lambda text: [TEXTS.index(c.encode()) for c in text])


def row(*liked):
    """Logits that like these ids, the first the most."""
    values = np.zeros(len(TEXTS), np.float32)
    for place, token in enumerate(liked):
        values[token] = 9.0 - place
    return values


def text_of(tokens):
    return b"".join(TEXTS[token] for token in tokens)


def test_the_likeliest_allowed_token_is_chosen(vocabulary):
    choose = Constraint(vocabulary, 'start: "abc"', greedy)
    assert choose(row(5, 2, 1)) == 1
    assert choose(row(3, 2)) == 2
    assert choose(row(STOP, 1)) == 5
    assert choose(row(1)) == STOP


def test_after_the_end_only_the_end_follows(vocabulary):
    choose = Constraint(vocabulary, 'start: "a"', greedy)
    assert [choose(row(1)) for _ in range(4)] == [1, STOP, STOP, STOP]


def test_the_text_of_a_stop_token_is_not_a_text(vocabulary):
    choose = Constraint(vocabulary, "start: /[<a-z>]{1,3}/", greedy)
    assert choose(row(STOP, 1)) == 1


def test_what_is_no_grammar_is_refused(vocabulary):
    with pytest.raises(InvalidRequest, match="the grammar cannot be used"):
        Constraint(vocabulary, "start: (", greedy)
    with pytest.raises(InvalidRequest, match="not"):
        Constraint(vocabulary, 'start: %json {"not": {}}', greedy)


def test_a_grammar_that_no_token_can_follow_is_an_error(vocabulary):
    choose = Constraint(vocabulary, 'start: "z"', greedy)
    with pytest.raises(InvalidRequest, match="no token of this vocabulary"):
        choose(row(1))


def test_an_answer_that_nothing_ends_has_no_grammar():
    with pytest.raises(Incompatible, match="no token that ends"):
        Vocabulary(TEXTS, [], lambda text: [])


@given(
    likes=st.lists(st.permutations(range(len(TEXTS))), min_size=3, max_size=3),
    drafted=st.lists(st.integers(0, len(TEXTS) - 1), max_size=12),
    d=st.integers(0, 4),
)
def test_paired_text_is_plain_text_and_follows_the_grammar(vocabulary, likes, drafted, d):
    def rule(ids):
        return row(*likes[(ids[-1] + len(ids)) % 3]).tolist()

    def run(policy):
        target = ToyModel(len(TEXTS), rule)
        choose = Constraint(vocabulary, 'start: ("ab" | "c" "a"){1,4}', greedy)
        tokens = decode(
            target,
            policy,
            [1],
            limit=12,
            is_stop=lambda token: token == STOP,
            tally=Tally(),
            choose=choose,
        )
        return [token.id for token in tokens]

    plain = run(FixedLength())
    assert run(FixedLength(Script(drafted, 1), d)) == plain
    assert plain[-1] == STOP
    text = text_of(plain[:-1]).decode()
    assert 0 < len(text) <= 8
    assert not text.replace("ab", "").replace("ca", "")


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
    "x-guidance": {"whitespace_flexible": False},
}


@needs_mnn
@pytest.mark.parametrize("d", [0, 3])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=2.0, seed=5)])
def test_a_real_tokenizer_writes_what_the_schema_wants(pair, sampling, d):
    jsonschema = pytest.importorskip("jsonschema")
    options = GenerateOptions(
        max_tokens=300, d=d, grammar=f"start: %json {json.dumps(SCHEMA)}", sampling=sampling
    )
    generation = pair.generate("Describe a cat.", options)
    text = "".join(piece.text for piece in generation)
    assert generation.result.finish_reason == "stop"
    jsonschema.validate(json.loads(text), SCHEMA)


@needs_mnn
def test_a_refused_grammar_leaves_the_session_usable(pair):
    with pytest.raises(InvalidRequest, match="grammar"):
        list(pair.generate("Hello.", GenerateOptions(grammar="nonsense")))
    assert list(pair.generate("Hello.", GenerateOptions(max_tokens=3)))


@pytest.fixture(scope="module")
def pair():
    with Session(ModelSpec(TARGET), ModelSpec(DRAFT), max_d=3) as session:
        yield session
