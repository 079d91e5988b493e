from __future__ import annotations

import pytest

from tokforge_engine import GenerateOptions, InvalidRequest, Message, RuntimeSettings, ToolCall


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: GenerateOptions(max_tokens=0), "max_tokens expected at least 1, got 0"),
        (lambda: GenerateOptions(d=-1), "d expected auto or 0 to 15, got -1"),
        (lambda: GenerateOptions(d=16), "d expected auto or 0 to 15, got 16"),
        (lambda: GenerateOptions(drafter="me"), "drafter expected any, model or lookup, got 'me'"),
        (lambda: GenerateOptions(stop=("",)), "empty"),
        (lambda: GenerateOptions(stop=("\ud800",)), "surrogate"),
        (lambda: Message("", "hi"), "role is empty"),
        (lambda: Message("user", "a\0b"), "NUL"),
        (lambda: Message("user", "\udfff"), "surrogate"),
        (lambda: Message("user", "hi", reasoning="\0"), "reasoning holds a NUL"),
        (lambda: ToolCall("f", "[1]"), "arguments expected a JSON object, got '\\[1\\]'"),
        (lambda: ToolCall("f", '{"a": "\\ud800"}'), "arguments is not valid Unicode"),
        (lambda: GenerateOptions(tools=('{"\\udfff": 1}',)), "a tool is not valid Unicode"),
        (lambda: GenerateOptions(tools=("{",)), "a tool expected a JSON object"),
        (lambda: GenerateOptions(tools=("{}",), raw=True), "expected none with raw"),
        (lambda: GenerateOptions(grammar="", ignore_stop_tokens=True), "stop tokens must count"),
        (lambda: GenerateOptions(logprobs=21), "logprobs expected 0 to 20, got 21"),
        (lambda: RuntimeSettings(threads=0), "threads expected 1 to 64, got 0"),
        (lambda: RuntimeSettings(memory="tiny"), "memory expected one of low, normal, high"),
        (lambda: RuntimeSettings(backend="gpu"), "backend expected one of cpu"),
        (lambda: RuntimeSettings(dynamic_option=10), "dynamic_option expected 0 to 9"),
    ],
)
def test_what_is_out_of_range_is_refused_with_the_range(make, says):
    with pytest.raises(InvalidRequest, match=says) as caught:
        make()
    assert caught.value.exit_code == 2


def test_the_limits_themselves_are_in_range():
    GenerateOptions(max_tokens=1, d=0)
    GenerateOptions(d=15)
    GenerateOptions(tools=('{"type": "function"}',), grammar="start: /.*/", logprobs=20)
    RuntimeSettings(threads=64, dynamic_option=0, memory="low")
