from __future__ import annotations

import asyncio
import contextlib

import pytest

from serving_kit import ScriptedModel, piece, served
from tokforge_engine import GenerateOptions, InvalidRequest, Message
from tokforge_models.serving.errors import BadRequest, ClientGone
from tokforge_models.serving.metrics import Metrics
from tokforge_models.serving.queue import Queue

CHAT = (Message("user", "hi"),)


def counted(script, play):
    """What is counted of `play(metrics, ticket)`, as numbers by their names."""
    metrics = Metrics()
    pair = served(ScriptedModel(script))
    queue = Queue(lambda: contextlib.nullcontext(pair), most_waiting=1, seconds=30.0)
    metrics.watch_queue(queue)

    async def main():
        ticket = queue.ask(CHAT, GenerateOptions())
        await play(metrics, queue, ticket)
        await queue.stop()

    with queue:
        asyncio.run(main())
    lines = metrics.text().decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }


async def read(metrics, _queue, ticket):
    async for _ in metrics.watched(ticket):
        pass


def test_an_answer_is_counted_with_its_tokens_and_times():
    counts = counted([[piece("a"), piece("b")]], read)
    assert counts['tokforge_answers_total{end="stop"}'] == 1
    assert counts['tokforge_tokens_total{kind="completion"}'] == 2
    assert counts['tokforge_tokens_total{kind="prompt_cached"}'] == 2
    assert counts['tokforge_tokens_total{kind="prompt_prefilled"}'] == 5
    for name in ("first_piece", "queue", "answer"):
        assert counts[f"tokforge_{name}_seconds_count"] == 1
    assert counts["tokforge_queue_waiting"] == counts["tokforge_running"] == 0


def test_what_was_not_answered_is_counted_by_its_status():
    async def play(metrics, queue, ticket):
        with pytest.raises(BadRequest):
            await read(metrics, queue, ticket)

    counts = counted([[InvalidRequest("too long")]], play)
    assert counts['tokforge_answers_total{end="400"}'] == 1
    assert counts["tokforge_answer_seconds_count"] == 0


def test_who_went_away_is_counted():
    async def play(metrics, queue, ticket):
        queue.cancel(ticket, ClientGone())
        with pytest.raises(ClientGone):
            await read(metrics, queue, ticket)

    counts = counted([], play)
    assert counts['tokforge_answers_total{end="cancelled"}'] == 1


def test_restarts_and_responses_are_counted():
    metrics = Metrics()
    metrics.restarted()
    metrics.responded("/v1/models", 200)
    text = metrics.text().decode()
    assert "tokforge_engine_restarts_total 1.0" in text
    assert 'tokforge_responses_total{path="/v1/models",status="200"} 1.0' in text
