from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tokforge_engine import process
from tokforge_engine.errors import EngineCrashed, InvalidRequest
from tokforge_engine.generation import GenerateOptions, Message
from tokforge_engine.messages import Cancel, Generate, Phase, Ready
from tokforge_engine.process import WorkerProcess

SAY = """
import os, signal, sys, threading
from tokforge_engine import messages
from tokforge_engine.messages import *
out = sys.stdout.buffer
messages.write(out, Phase("pretending"))
"""
HANG = "threading.Event().wait()"
posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture
def worker():
    workers = []

    def start(code):
        workers.append(WorkerProcess(SAY + code))
        return workers[-1]

    yield start
    for one in workers:
        one.end(0)


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_phases_are_kept_and_reports_come_through(worker):
    assert worker("messages.write(out, Ready()); messages.read(sys.stdin.buffer)").receive() == (
        Ready()
    )


@posix
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL", "SIGTERM", "SIGILL"])
def test_death_by_a_signal_is_one_error_with_signal_and_phase(worker, name):
    dying = worker(
        f"print('last words', file=sys.stderr, flush=True); os.kill(os.getpid(), signal.{name})"
    )
    with pytest.raises(EngineCrashed, match=f"died of {name} while pretending") as caught:
        dying.receive()
    assert caught.value.exit_code == 8
    assert "last words" in caught.value.log
    assert gone(dying.pid)


def test_an_early_end_is_an_error(worker):
    with pytest.raises(EngineCrashed, match="ended with code 3 while pretending"):
        worker("os._exit(3)").receive()


def test_a_hang_is_killed(worker):
    hanging = worker(HANG)
    with pytest.raises(EngineCrashed, match="was not ready after 1 s; it was pretending"):
        hanging.receive(1)
    assert gone(hanging.pid)


def test_each_phase_is_a_sign_of_life(worker):
    slow = worker(
        "for n in range(30):\n"
        "    threading.Event().wait(0.1)\n"
        "    messages.write(out, Phase(f'step {n}'))\n"
        f"{HANG}"
    )
    with pytest.raises(EngineCrashed, match="said nothing for 2 s while step 29"):
        slow.receive(2, of_silence=True)
    assert gone(slow.pid)


@posix
def test_what_the_log_says_of_memory_is_said(worker):
    starved = worker("print('std::bad_alloc', file=sys.stderr, flush=True); os.abort()")
    with pytest.raises(EngineCrashed, match=r"died of SIGABRT .*: it ran out of memory") as caught:
        starved.receive()
    assert "smaller model" in caught.value.hint


def test_nothing_beside_the_package_stands_in_for_the_standard_library(tmp_path, monkeypatch):
    package = shutil.copytree(Path(process.__file__).parent, tmp_path / "tokforge_engine")
    for name in ("queue", "pickle", "json", "numpy", "MNN"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(77)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(process, "_PACKAGE", package)
    # The end of its orders ends a worker that got as far as to listen.
    worker = WorkerProcess()
    worker.end(60)
    assert worker._process.returncode == 0


@pytest.mark.parametrize("answer", [b"The device supports: all\n" * 9, b"\0\0\0\x03abc"])
def test_nonsense_is_killed(worker, answer):
    babbling = worker(f"out.write({answer!r}); out.flush(); {HANG}")
    with pytest.raises(EngineCrashed, match="not a report while pretending"):
        babbling.receive()
    assert gone(babbling.pid)


def test_an_order_to_the_dead_is_the_same_error(worker):
    dead = worker("os._exit(3)")
    with pytest.raises(EngineCrashed, match="ended with code 3"):
        dead.receive()
    with pytest.raises(EngineCrashed, match="ended with code 3"):
        dead.send(Cancel(1))
    assert not dead.open


def test_ending_leaves_nothing_behind(worker):
    ended = worker(
        "open('left', 'w'); messages.write(out, Phase(os.getcwd())); "
        f"messages.write(out, Ready()); {HANG}"
    )
    ended.receive()
    ended.end(0)
    ended.end(0)
    assert gone(ended.pid)
    with pytest.raises(EngineCrashed, match=r"while .*tokforge-") as caught:
        ended.send(Phase("x"))
    scratch = str(caught.value).split("while ")[1]
    assert not Path(scratch).exists()


class Mine(str):
    __slots__ = ()


def test_an_order_with_a_value_of_the_callers_own_is_refused_before_it_is_sent(worker):
    process = worker("sys.stdin.buffer.read()")
    order = Generate(1, (Message("user", Mine("hi")),), GenerateOptions())
    with pytest.raises(InvalidRequest, match="not part of the protocol"):
        process.send(order)
    assert process.open
