from __future__ import annotations

import json

import pytest

from serving_kit import served
from tokforge_engine import Message, ToolCall
from tokforge_models.serving.asked import ChatRequest, CompletionRequest
from tokforge_models.serving.checking import checked
from tokforge_models.serving.errors import ApiError, BadRequest, NotFound
from tokforge_models.serving.orders import chat_order, completion_order

HI = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "sum"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "sum", "arguments": '{"of": []}'}}


def order(*, pair=None, **more):
    body = json.dumps({"model": "talker", "messages": [HI], **more}).encode()
    return chat_order(checked(ChatRequest, body), pair or served(), 100)


def complete(**more):
    body = json.dumps({"model": "talker", "prompt": "Once", **more}).encode()
    return completion_order(checked(CompletionRequest, body), served(), 100)


def test_what_is_not_said_is_as_served():
    options = order().options
    assert (options.max_tokens, options.d, options.drafter) == (100, 3, "any")
    assert options.sampling.is_plain_greedy
    assert options.enable_thinking is None
    assert options.logprobs is options.grammar is None


@pytest.mark.parametrize(
    ("more", "field", "value"),
    [
        ({"max_tokens": 7}, "max_tokens", 7),
        ({"max_completion_tokens": 7}, "max_tokens", 7),
        ({"max_completion_tokens": 7, "max_tokens": 7}, "max_tokens", 7),
        ({"stop": "x"}, "stop", ("x",)),
        ({"stop": ["x", "y"]}, "stop", ("x", "y")),
        ({"draft": "none"}, "d", 0),
        ({"draft": "none", "d": 0}, "d", 0),
        ({"draft": "lookup"}, "drafter", "lookup"),
        ({"draft": "model"}, "drafter", "model"),
        ({"draft": "helper", "d": 5}, "drafter", "model"),
        ({"d": "auto"}, "d", "auto"),
        ({"logprobs": True}, "logprobs", 0),
        ({"logprobs": True, "top_logprobs": 4}, "logprobs", 4),
        ({"logprobs": False}, "logprobs", None),
        ({"chat_template_kwargs": {"enable_thinking": False}}, "enable_thinking", False),
        ({"response_format": {"type": "json_object"}}, "enable_thinking", False),
        ({"tools": [TOOL], "parallel_tool_calls": False}, "stop", ("</tool_call>",)),
        ({"tools": [TOOL], "tool_choice": "none"}, "tools", ()),
        ({"temperature": None, "n": 1, "frequency_penalty": 0, "store": None}, None, None),
    ],
)
def test_what_is_said_is_honoured(more, field, value):
    if field is None:
        with pytest.raises(BadRequest, match="store: unknown"):
            order(**more)
        return
    assert getattr(order(**more).options, field) == value


def test_every_knob_of_the_sampler_arrives():
    more = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 4,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "presence_penalty": -1,
        "seed": 3,
        "logit_bias": {"7": -100, "8": 2.5},
    }
    sampling = order(**more).options.sampling
    bias = more.pop("logit_bias")
    assert {name: getattr(sampling, name) for name in more} == more
    assert sampling.logit_bias == tuple((int(token), value) for token, value in bias.items())


def test_messages_arrive_as_the_template_takes_them():
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "reasoning_content": "hm\n", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "0"},
        {"role": "assistant", "content": "Zero.", "refusal": None, "annotations": None},
    ]
    assert order(messages=messages).chat == (
        Message("system", "Be brief."),
        Message("user", "ab"),
        Message("assistant", "", "hm", (ToolCall("sum", '{"of": []}'),)),
        Message("tool", "0"),
        Message("assistant", "Zero."),
    )


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"foo": 1}, "foo"),
        ({"user": "me"}, "user"),
        ({"n": 2}, "n"),
        ({"n": True}, "n"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"frequency_penalty": 0.1}, "frequency_penalty"),
        ({"max_tokens": 101}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "max_tokens"),
        ({"max_completion_tokens": 101}, "max_completion_tokens"),
        ({"seed": -1}, "seed"),
        ({"stop": []}, "stop"),
        ({"stop": ["a", ""]}, "stop"),
        ({"stop": ["\0"]}, None),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logit_bias": {"x": 1}}, "logit_bias.x"),
        ({"logit_bias": {"1": 101}}, "logit_bias.1"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"foo": 1}}, "stream_options.foo"),
        ({"timings_per_token": True}, "timings_per_token"),
        ({"d": 8}, "d"),
        ({"d": "many"}, "d"),
        ({"draft": "other"}, "draft"),
        ({"draft": "none", "d": 2}, "d"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "json", "content": "{}"}]}, "messages[0]"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{**HI, "name": "bob"}]}, "messages[0].name"),
        ({"messages": [HI, {"role": "assistant"}]}, "messages[1]"),
        ({"messages": [{"role": "user", "content": "a\0"}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content",
        ),
        (
            {"messages": [{"role": "tool", "tool_call_id": "c9", "content": "0"}]},
            "messages[0].tool_call_id",
        ),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "["}}],
                    }
                ]
            },
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"tools": []}, "tools"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]},
            "tools[0].function.strict",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"parallel_tool_calls": False}, "parallel_tool_calls"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
            "tool_choice.function.name",
        ),
        ({"response_format": {"type": "xml"}}, "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
        ),
        (
            {
                "response_format": {"type": "json_object"},
                "chat_template_kwargs": {"enable_thinking": True},
            },
            "chat_template_kwargs.enable_thinking",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_name(more, param):
    with pytest.raises(BadRequest) as refused:
        order(**more)
    assert (refused.value.status, refused.value.param) == (400, param)


def test_what_a_pair_lacks_is_refused():
    lonely = served(draft=None, lookup=False)
    for who in ("lookup", "model", "helper"):
        with pytest.raises(BadRequest, match="expected one of auto, none"):
            order(pair=lonely, draft=who)
    assert order(pair=lonely, draft="auto").options.d == 3


def test_another_model_is_not_found():
    for wrong in (lambda: order(model="gpt"), lambda: complete(model="gpt")):
        with pytest.raises(NotFound) as missing:
            wrong()
        assert (missing.value.param, missing.value.code) == ("model", "model_not_found")


def test_all_faults_are_told_at_once_and_nothing_that_was_said():
    with pytest.raises(BadRequest) as refused:
        order(foo=1, seed="secret", messages=[{"role": "user", "content": 5, "secret": 1}])
    for part in ("seed: ", "foo: unknown", "messages[0].content: "):
        assert part in refused.value.message
    assert refused.value.message.count("secret") == 1


def test_of_a_thousand_faults_only_their_number_is_told():
    body = json.dumps({"model": "m", "messages": [{}] * 4000}).encode()
    with pytest.raises(BadRequest, match="4,000 faults") as refused:
        checked(ChatRequest, body)
    assert refused.value.code == "invalid_value"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'"\\ud800"', b"NaN", b"1"])
def test_what_is_no_request_is_refused(body):
    with pytest.raises(ApiError) as refused:
        checked(ChatRequest, body)
    assert refused.value.status == 400


def test_a_text_goes_on_raw():
    told = complete(logprobs=2, stop="x", stream=True)
    assert told.chat == (Message("user", "Once"),)
    assert (told.options.raw, told.options.logprobs, told.options.stop) == (True, 2, ("x",))
    assert told.stream
    assert complete(prompt=["Once"], n=1, best_of=1).options.raw


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": "\0"}, "prompt"),
        ({"echo": False}, "echo"),
        ({"best_of": 2}, "best_of"),
        ({"best_of": True}, "best_of"),
        ({"suffix": "x"}, "suffix"),
        ({"logprobs": 6}, "logprobs"),
        ({"messages": [HI]}, "messages"),
        ({"tools": [TOOL]}, "tools"),
    ],
)
def test_what_a_text_cannot_have_is_refused(more, param):
    with pytest.raises(BadRequest) as refused:
        complete(**more)
    assert refused.value.param.startswith(param)
