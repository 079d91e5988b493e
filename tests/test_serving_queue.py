from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from serving_kit import ScriptedModel, crash, piece, served
from tokforge_engine import EngineError, GenerateOptions, InvalidRequest, Message
from tokforge_models.errors import StorageError
from tokforge_models.serving.errors import (
    BadRequest,
    ClientGone,
    Failed,
    QueueFull,
    ShuttingDown,
    TookTooLong,
)
from tokforge_models.serving.queue import Queue
from tokforge_models.serving.served import Ended

CHAT = (Message("user", "hi"),)
OPTIONS = GenerateOptions()


def with_queue(play, model=None, *, most_waiting=2, seconds=30.0, open_pair=None, restarts=None):
    """Run `play(queue)` in a loop of its own."""
    what = served(model or ScriptedModel())
    restarts = [] if restarts is None else restarts
    queue = Queue(
        open_pair or (lambda: contextlib.nullcontext(what)),
        most_waiting=most_waiting,
        seconds=seconds,
        on_restart=lambda: restarts.append(1),
    )

    async def main():
        try:
            return await asyncio.wait_for(play(queue), 30)
        finally:
            await queue.stop()

    with queue:
        return asyncio.run(main())


async def read(ticket):
    return [event async for event in ticket.events()]


async def until(condition):
    while not condition():
        await asyncio.sleep(0)


def test_an_answer_comes_piece_by_piece_and_then_how_it_ended():
    async def play(queue):
        return await read(queue.ask(CHAT, OPTIONS))

    model = ScriptedModel([[piece("a"), piece("b")]])
    first, second, ended = with_queue(play, model)
    assert (first.text, second.text) == ("a", "b")
    assert isinstance(ended, Ended)
    assert ended.result.text == "ab"
    assert ended.waited >= 0
    assert model.asked == [(CHAT, OPTIONS)]


def test_one_runs_and_the_others_come_in_their_order():
    gate = threading.Event()

    async def play(queue):
        tickets = [queue.ask(CHAT, GenerateOptions(max_tokens=n)) for n in (1, 2, 3)]
        await until(lambda: queue.running)
        assert queue.waiting == 2
        gate.set()
        await asyncio.gather(*map(read, tickets))
        await until(lambda: not queue.running)
        assert queue.waiting == 0

    model = ScriptedModel(gate=gate)
    with_queue(play, model)
    assert [options.max_tokens for _, options in model.asked] == [1, 2, 3]


@pytest.mark.parametrize("most_waiting", [0, 2])
def test_a_full_line_is_said_with_when_to_come_again(most_waiting):
    gate = threading.Event()

    async def play(queue):
        tickets = [queue.ask(CHAT, OPTIONS) for _ in range(1 + most_waiting)]
        with pytest.raises(QueueFull) as full:
            queue.ask(CHAT, OPTIONS)
        assert 1 <= int(full.value.headers["retry-after"]) <= 60
        await until(lambda: queue.running)
        with pytest.raises(QueueFull):
            queue.ask(CHAT, OPTIONS)
        gate.set()
        await asyncio.gather(*map(read, tickets))
        # There is room again.
        await read(queue.ask(CHAT, OPTIONS))

    with_queue(play, ScriptedModel(gate=gate), most_waiting=most_waiting)


def test_who_goes_away_while_waiting_leaves_a_place_and_never_runs():
    gate = threading.Event()

    async def play(queue):
        first, second = queue.ask(CHAT, OPTIONS), queue.ask(CHAT, OPTIONS)
        await until(lambda: queue.running)
        queue.cancel(second, ClientGone())
        assert queue.waiting == 0
        gate.set()
        await read(first)
        with pytest.raises(ClientGone):
            await read(second)

    model = ScriptedModel(gate=gate)
    with_queue(play, model)
    assert len(model.asked) == 1


def test_who_goes_away_while_running_frees_the_model_at_once():
    gate = threading.Event()

    async def play(queue):
        first = queue.ask(CHAT, OPTIONS)
        await until(lambda: model.answers)
        queue.cancel(first, ClientGone())
        assert model.answers[0].cancelled.is_set()
        with pytest.raises(ClientGone):
            await read(first)
        await read(queue.ask(CHAT, OPTIONS))

    model = ScriptedModel([[piece("a")] * 1000], gate=gate)
    with_queue(play, model)


def test_a_request_has_its_time_and_no_more():
    gate = threading.Event()

    async def play(queue):
        running, waiting = queue.ask(CHAT, OPTIONS), queue.ask(CHAT, OPTIONS)
        for ticket in (running, waiting):
            with pytest.raises(TookTooLong, match=r"within 0\.05 s"):
                await read(ticket)
        await until(lambda: not queue.running)

    with_queue(play, ScriptedModel(gate=gate), seconds=0.05)


def test_what_the_engine_refuses_is_the_requests_fault(caplog):
    async def play(queue):
        with pytest.raises(BadRequest, match="the prompt is too long"):
            await read(queue.ask(CHAT, OPTIONS))
        with pytest.raises(Failed, match="not numbers") as failed:
            await read(queue.ask(CHAT, OPTIONS))
        assert failed.value.code == "engine_failed"
        with pytest.raises(Failed, match="a fault of its own"):
            await read(queue.ask(CHAT, OPTIONS))
        assert "KeyError at " in caplog.text
        assert "secret" not in caplog.text
        assert queue.state == "ok"

    script = [
        [InvalidRequest("the prompt is too long")],
        [EngineError("logits that are not numbers")],
        [KeyError("secret")],
    ]
    with_queue(play, ScriptedModel(script))


def test_after_a_crash_the_pair_is_loaded_again():
    loads, restarts = [], []

    @contextlib.contextmanager
    def open_pair():
        loads.append(1)
        script = [[piece("a"), crash()]] if len(loads) == 1 else []
        yield served(ScriptedModel(script))
        loads.append(-1)

    async def play(queue):
        events = []
        with pytest.raises(Failed, match="SIGKILL") as failed:
            events += [event async for event in queue.ask(CHAT, OPTIONS).events()]
        assert failed.value.code == "engine_crashed"
        *_, ended = await read(queue.ask(CHAT, OPTIONS))
        assert ended.result.text == "Hi."

    with_queue(play, open_pair=open_pair, restarts=restarts)
    assert loads == [1, -1, 1, -1]
    assert restarts == [1]


def test_a_model_that_died_while_nobody_asked_costs_no_answer():
    models = [ScriptedModel(alive=False), ScriptedModel()]
    restarts = []

    async def play(queue):
        *_, ended = await read(queue.ask(CHAT, OPTIONS))
        assert ended.result.text == "Hi."

    open_pair = iter([contextlib.nullcontext(served(model)) for model in models]).__next__
    with_queue(play, open_pair=open_pair, restarts=restarts)
    assert restarts == [1]


@pytest.mark.parametrize(("crashes", "answered"), [(1, True), (2, False)])
def test_an_answer_of_which_nothing_was_told_is_tried_once_more(crashes, answered):
    models = [ScriptedModel([[crash()]]) for _ in range(crashes)] + [ScriptedModel()]
    restarts = []

    async def play(queue):
        ticket = queue.ask(CHAT, OPTIONS)
        if answered:
            assert (await read(ticket))[-1].result.text == "Hi."
        else:
            with pytest.raises(Failed, match="SIGKILL"):
                await read(ticket)
        assert (await read(queue.ask(CHAT, OPTIONS)))[-1].result.text == "Hi."

    open_pair = iter([contextlib.nullcontext(served(model)) for model in models]).__next__
    with_queue(play, open_pair=open_pair, restarts=restarts)
    assert len(restarts) == crashes


def test_a_pair_that_cannot_be_loaded_again_is_tried_with_each_request():
    tries = []

    def open_pair():
        tries.append(1)
        if len(tries) == 2:
            raise StorageError("the disk is gone")
        alive = len(tries) > 1
        return contextlib.nullcontext(served(ScriptedModel(alive=alive)))

    async def play(queue):
        with pytest.raises(ShuttingDown, match="the disk is gone"):
            await read(queue.ask(CHAT, OPTIONS))
        assert queue.state != "ok"
        assert queue.served.name == "talker"
        await read(queue.ask(CHAT, OPTIONS))
        assert queue.state == "ok"

    with_queue(play, open_pair=open_pair)


@pytest.mark.parametrize(
    "fault", [StorageError("the disk is gone"), OSError("secret"), KeyError("secret")]
)
def test_whatever_keeps_the_pair_from_being_loaded_again_leaves_nobody_waiting(fault, caplog):
    tries = []

    def open_pair():
        tries.append(1)
        if len(tries) in {2, 3}:
            raise fault
        return contextlib.nullcontext(served(ScriptedModel([[piece("a"), crash()]])))

    async def play(queue):
        first, second, third = (queue.ask(CHAT, OPTIONS) for _ in range(3))
        with pytest.raises(Failed, match="SIGKILL"):
            await read(first)
        with pytest.raises(ShuttingDown, match="cannot be loaded"):
            await read(second)
        assert queue.state == "failed"
        with pytest.raises(Failed, match="SIGKILL"):
            await read(third)
        await until(lambda: not queue.running)
        assert queue.state == "ok"

    with_queue(play, open_pair=open_pair)
    assert "the models cannot be loaded" in caplog.text
    assert "secret" not in caplog.text


def test_a_pair_that_is_loaded_while_the_queue_ends_is_closed_too():
    loading, go_on, closed = threading.Event(), threading.Event(), []

    @contextlib.contextmanager
    def open_pair():
        alive = loading.is_set()
        if closed:
            loading.set()
            assert go_on.wait(20)
        yield served(ScriptedModel(alive=alive))
        closed.append(1)

    async def play():
        with Queue(open_pair, most_waiting=2, seconds=30.0) as queue:
            queue.ask(CHAT, OPTIONS)
            await until(loading.is_set)
            assert queue.state == "loading"
            await queue.stop()
            assert queue.state == "stopping"
            go_on.set()

    asyncio.run(play())
    assert closed == [1, 1]


def test_the_end_is_told_to_all_who_are_here():
    gate = threading.Event()

    async def play(queue):
        running, waiting = queue.ask(CHAT, OPTIONS), queue.ask(CHAT, OPTIONS)
        await until(lambda: model.answers)
        await queue.stop()
        for ticket in (running, waiting):
            with pytest.raises(ShuttingDown):
                await read(ticket)
        with pytest.raises(ShuttingDown):
            queue.ask(CHAT, OPTIONS)
        assert queue.state != "ok"

    model = ScriptedModel(gate=gate)
    with_queue(play, model)
    assert len(model.asked) == 1


class Stubborn(ScriptedModel):
    """Its first answer takes no notice of a cancel, and ends when its process does."""

    def __init__(self):
        super().__init__([[piece("next")]])
        self.ended = threading.Event()

    def generate(self, prompt, options):
        return super().generate(prompt, options) if self.ended.is_set() else self

    def __iter__(self):
        assert self.ended.wait(20)
        raise crash()
        yield

    def cancel(self):
        pass

    def close(self):
        self.ended.set()


def test_an_answer_that_does_not_end_when_it_is_cancelled_ends_with_its_process():
    model, restarts = Stubborn(), []

    async def play():
        queue = Queue(
            lambda: contextlib.nullcontext(served(model)),
            most_waiting=2,
            seconds=30.0,
            grace=0.0,
            on_restart=lambda: restarts.append(1),
        )
        with queue:
            stuck = queue.ask(CHAT, OPTIONS)
            await until(lambda: queue.running)
            queue.cancel(stuck, ClientGone())
            after = await asyncio.wait_for(read(queue.ask(CHAT, OPTIONS)), 20)
            await queue.stop()
        return after

    *pieces, ended = asyncio.run(play())
    assert [each.text for each in pieces] == ["next"]
    assert isinstance(ended, Ended)
    assert restarts == [1]
