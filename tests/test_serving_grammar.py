from __future__ import annotations

import json

import pytest

from tokforge_models.serving import grammar
from tokforge_models.serving.asked import ChatRequest
from tokforge_models.serving.errors import BadRequest
from tokforge_models.serving.grammar import grammar_of

llguidance = pytest.importorskip("llguidance")

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("sum", "time")
]


def wants(**more):
    return ChatRequest(model="m", messages=[{"role": "user", "content": "hi"}], **more)


def schema(value):
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": value}}


class Bytes:
    """A tokenizer whose tokens are bytes."""

    eos_token_id = 256
    bos_token_id = None
    tokens = (*(bytes([value]) for value in range(256)), b"<end>")
    special_token_ids = (256,)

    def __call__(self, text):
        return list(text if isinstance(text, bytes) else text.encode())


def follows(text, rules):
    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))
    matcher = llguidance.LLMatcher(tokenizer, rules)
    assert not matcher.is_error(), matcher.get_error()
    data = list(text.encode())
    return matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting()


def wide(count):
    return {"type": "object", "properties": {f"p{place}": {} for place in range(count)}}


def patterns(count):
    return {"patternProperties": {f"^{place}:": {} for place in range(count)}}


@pytest.mark.parametrize(
    ("most", "least", "expected"),
    [
        (wide(1000), wide(1001), "at most 1,000 properties"),
        ({"anyOf": [wide(1000)] * 2}, {"anyOf": [{}, wide(1001)]}, "at most 1,000 properties"),
        (patterns(16), patterns(17), "16 patternProperties, got 17"),
        ({"enum": [*range(9_000)]}, {"enum": [*range(100_000)]}, "131,072 characters together"),
        ({"multipleOf": 10_000}, {"multipleOf": 10_007}, "least common multiple"),
        ({"multipleOf": 0.01}, {"multipleOf": 10_007.5}, "least common multiple"),
        (
            {"properties": {"a": {"multipleOf": 90}, "b": {"multipleOf": 100}}},
            {"allOf": [{"type": "integer", "multipleOf": each} for each in (97, 89, 83)]},
            "least common multiple",
        ),
        ({"const": "x" * 130_000}, {"const": "x" * 132_000}, "131,072 characters together"),
    ],
)
def test_a_schema_that_takes_long_to_check_is_refused_before(monkeypatch, most, least, expected):
    assert grammar_of(wants(response_format=schema(most)))
    monkeypatch.setattr(
        llguidance.LLMatcher, "validate_grammar_with_warnings", pytest.fail, raising=True
    )
    with pytest.raises(BadRequest, match=expected) as refused:
        grammar_of(wants(response_format=schema(least)))
    assert refused.value.param == "response_format.json_schema.schema"


def test_the_schemas_of_all_functions_count_together():
    large = {"const": "x" * 100_000}
    tools = [{"type": "function", "function": {"name": name, "parameters": large}} for name in "ab"]
    assert grammar_of(wants(tools=tools[:1], tool_choice="required"))
    # A model that may call what it likes is held to no schema.
    assert grammar_of(wants(tools=tools)) is None
    with pytest.raises(BadRequest, match="together, got 200,") as refused:
        grammar_of(wants(tools=tools, tool_choice="required"))
    assert refused.value.param == "tools[1].function.parameters"


def test_any_text_needs_no_grammar():
    assert grammar_of(wants()) is None
    assert grammar_of(wants(response_format={"type": "text"})) is None
    assert grammar_of(wants(tools=TOOLS)) is None
    assert grammar_of(wants(tools=TOOLS, tool_choice="auto")) is None


def test_json_is_an_object_without_blanks():
    rules = grammar_of(wants(response_format={"type": "json_object"}))
    assert follows('{"a":[1,{"b":null}]}', rules)
    assert not follows("[1]", rules)
    assert not follows('{"a": 1}', rules)


def test_a_schema_is_the_grammar():
    rules = grammar_of(
        wants(response_format=schema({"type": "array", "items": {"enum": ["ä", 1]}}))
    )
    assert follows('["ä",1,1]', rules)
    assert not follows('["b"]', rules)


@pytest.mark.parametrize(
    ("tried", "says"),
    [
        ({"not": {}}, "Unimplemented"),
        ({"type": "zzz"}, "zzz"),
        ({"$ref": "http://elsewhere.example/s"}, "not present"),
        ({"type": "string", "pattern": "("}, "cannot be honoured"),
        ({"type": "number", "maximum": float("nan")}, "number that is none"),
    ],
)
def test_a_schema_that_cannot_be_honoured_is_refused(tried, says):
    with pytest.raises(BadRequest, match=says) as refused:
        grammar_of(wants(response_format=schema(tried)))
    assert refused.value.param == "response_format.json_schema.schema"


def called(name="sum", arguments="{}"):
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def test_a_demanded_call_is_made():
    rules = grammar_of(wants(tools=TOOLS, tool_choice="required"))
    assert follows(called(arguments='{"of":[1]}'), rules)
    assert follows(f"{called()}\n{called('time')}", rules)
    assert not follows("no", rules)
    assert not follows(called("other"), rules)
    assert not follows(called(arguments="[]"), rules)


def test_a_named_function_is_the_one_and_one_call_may_be_all():
    choice = {"type": "function", "function": {"name": "time"}}
    rules = grammar_of(wants(tools=TOOLS, tool_choice=choice, parallel_tool_calls=False))
    assert follows(called("time"), rules)
    assert not follows(called("sum"), rules)
    assert not follows(f"{called('time')}\n{called('time')}", rules)


@pytest.mark.parametrize("more", [{}, {"tool_choice": "required"}])
def test_a_format_and_calls_exclude_each_other(more):
    with pytest.raises(BadRequest) as refused:
        grammar_of(wants(tools=TOOLS, response_format={"type": "json_object"}, **more))
    assert refused.value.param == "response_format"
    form = {"type": "json_object"}
    assert grammar_of(wants(tools=TOOLS, response_format=form, tool_choice="none"))


def test_without_llguidance_nothing_is_promised(monkeypatch):
    monkeypatch.setattr(grammar, "available", lambda: False)
    with pytest.raises(BadRequest, match="llguidance is not installed") as refused:
        grammar_of(wants(response_format={"type": "json_object"}))
    assert refused.value.param == "response_format"


def test_a_name_in_a_grammar_is_quoted():
    tool = {"type": "function", "function": {"name": "a-b_C9"}}
    rules = grammar_of(wants(tools=[tool], tool_choice="required"))
    assert follows(called("a-b_C9", '{"x":1}'), rules)
    assert json.dumps("a-b_C9")[1:-1] in rules
