"""Faulty requests: what is told of them, and that many faults cost no more than a few."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pydantic")

from tokforge_models.serving import checking
from tokforge_models.serving.asked import ChatRequest
from tokforge_models.serving.checking import checked
from tokforge_models.serving.errors import BadRequest


def refused(body: bytes) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        checked(ChatRequest, body)
    return caught.value


def test_several_alternatives_of_one_field_are_one_fault() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": 1}], "temperature": 3}
    fault = refused(json.dumps(body).encode())
    assert fault.message.count("messages[0].content") == 1
    assert fault.message.count("temperature") == 1


def test_what_is_missing_is_said_in_words_of_ours() -> None:
    fault = refused(b'{"messages": [{"role": "user"}]}')
    assert "model: missing, but needed" in fault.message
    assert "messages[0].content: missing, but needed" in fault.message
    assert fault.param in {"model", "messages[0].content"}


@pytest.mark.parametrize(
    ("field", "most"), [("messages", 4_096), ("content", 128), ("logit_bias", 10_000)]
)
def test_a_list_is_only_so_long(field: str, most: int) -> None:
    def body(count: int) -> bytes:
        message = {"role": "user", "content": "a"}
        messages = [message] * (count if field == "messages" else 1)
        if field == "content":
            messages = [{**message, "content": [{"type": "text", "text": "a"}] * count}]
        bias = {str(token): 1 for token in range(count)} if field == "logit_bias" else None
        return json.dumps({"model": "m", "messages": messages, "logit_bias": bias}).encode()

    assert checked(ChatRequest, body(most)).model == "m"
    fault = refused(body(most + 1))
    assert fault.param is not None
    assert field in fault.param
    assert f"at most {most} items" in fault.message


def test_many_faults_are_told_in_part_and_the_body_is_parsed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed = []

    def counting(body: bytes) -> object:
        parsed.append(body)
        return json.loads(body)

    monkeypatch.setattr(checking, "from_json", counting)
    message = {"role": "user", "content": "hello", "colour": "red"}
    fault = refused(json.dumps({"model": "m", "messages": [message] * 200}).encode())
    assert len(parsed) == 1
    assert fault.code == "unknown_parameter"
    assert fault.message.count("; ") == 9
    assert "messages[9].colour" in fault.message
