"""What tests of the server share: a scripted model behind the session's seam, real processes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from command import COMMAND
from tokforge_engine import (
    EngineCrashed,
    EngineError,
    GenerateOptions,
    Message,
    Piece,
    Result,
    Run,
    Statistics,
    Token,
)
from tokforge_models.serving import app, listening
from tokforge_models.serving.metrics import Metrics
from tokforge_models.serving.queue import Queue
from tokforge_models.serving.security import Access
from tokforge_models.serving.served import Served


def statistics(emitted: int = 1, drafted: int = 0, accepted: int = 0) -> Statistics:
    return Statistics(
        rounds=1,
        drafted=drafted,
        accepted=accepted,
        draft_forwards=drafted,
        drafters=(),
        accepted_by_position=(),
        drafted_by_position=(),
        reused=2,
        prefilled=5,
        forgotten=0,
        emitted=emitted,
        prefill_seconds=0.5,
        draft_seconds=0.1,
        verify_seconds=0.3,
        rollback_seconds=0.0,
        other_seconds=0.1,
    )


def piece(text: str, by: str | None = None, token: int = 7) -> Piece:
    return Piece((Run(text, by),) if text else (), (Token(token, by),))


class ScriptedAnswer:
    """Says what it was told to, piece by piece, until it is cancelled."""

    def __init__(
        self,
        pieces: Sequence[Piece | Exception],
        gate: threading.Event | None,
        on_fault: Callable[[Exception], None],
        in_thought: bool,
    ) -> None:
        self._in_thought = in_thought
        self._pieces = pieces
        self._gate = gate
        self._on_fault = on_fault
        self.cancelled = threading.Event()
        self._read = False

    def __iter__(self) -> Iterator[Piece]:
        for each in self._pieces:
            if self._gate is not None:
                self._gate.wait()
            if self.cancelled.is_set():
                return
            if isinstance(each, Exception):
                self._on_fault(each)
                raise each
            yield each
        self._read = True

    @property
    def in_thought(self) -> bool:
        return self._in_thought

    def cancel(self) -> None:
        self.cancelled.set()
        if self._gate is not None:
            self._gate.set()

    @property
    def result(self) -> Result:
        if not self._read:
            raise EngineError("not read to its end")
        pieces = [each for each in self._pieces if isinstance(each, Piece)]
        return Result(
            text="".join(each.text for each in pieces),
            token_ids=tuple(token.id for each in pieces for token in each.tokens),
            finish_reason="stop",
            prompt_tokens=7,
            completion_tokens=len(pieces),
            stats=statistics(len(pieces)),
        )


@dataclass
class ScriptedModel:
    """A model that answers from a script, and remembers what it was asked."""

    script: list[Sequence[Piece | Exception]] = field(default_factory=list)
    gate: threading.Event | None = None
    max_d: int = 7
    alive: bool = True
    in_thought: bool = False
    asked: list[tuple[tuple[Message, ...], GenerateOptions]] = field(default_factory=list)
    answers: list[ScriptedAnswer] = field(default_factory=list)

    def close(self) -> None:
        self.alive = False

    def generate(self, prompt: Sequence[Message], options: GenerateOptions) -> ScriptedAnswer:
        self.asked.append((tuple(prompt), options))
        pieces = self.script.pop(0) if self.script else [piece("Hi.")]
        answer = ScriptedAnswer(pieces, self.gate, self._note, self.in_thought)
        self.answers.append(answer)
        return answer

    def _note(self, fault: Exception) -> None:
        self.alive = self.alive and not isinstance(fault, EngineCrashed)


def served(model: ScriptedModel | None = None, **more: object) -> Served:
    values = {
        "model": model or ScriptedModel(),
        "name": "talker",
        "draft": "helper",
        "lookup": True,
        "reason": "they belong together",
        "rule": "a-rule",
        "notes": (),
        "d": 3,
        **more,
    }
    return Served(**values)  # type: ignore[arg-type]


def crash() -> EngineCrashed:
    return EngineCrashed("the engine died of SIGKILL while generating")


@contextlib.contextmanager
def listening_server(
    model: ScriptedModel,
    *,
    access: Access | None = None,
    most_waiting: int = 4,
    seconds: float = 30.0,
    max_tokens: int = 64,
    **more: object,
) -> Iterator[str]:
    """Serve a scripted model over real HTTP, in a thread of this process; yields the URL."""
    metrics = Metrics()
    what = served(model, **more)
    with (
        listening.listen("127.0.0.1", 0) as sock,
        Queue(
            lambda: contextlib.nullcontext(what),
            most_waiting=most_waiting,
            seconds=seconds,
            on_restart=metrics.restarted,
        ) as queue,
    ):
        application = app.build(queue, metrics, access or Access(), max_tokens)
        server = listening.server(application, queue)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        try:
            yield listening.address(sock)
        finally:
            server.should_exit = True
            thread.join(20)
        assert not thread.is_alive()


@dataclass(frozen=True, slots=True)
class Running:
    """A server process that listens."""

    process: subprocess.Popen[str]
    url: str
    said: list[str]

    def worker(self) -> int:
        """Process id of the engine's worker."""
        import psutil

        (worker,) = psutil.Process(self.process.pid).children()
        return int(worker.pid)


@contextlib.contextmanager
def serving(*words: str, env: dict[str, str] | None = None) -> Iterator[Running]:
    """Run `tokforge serve` on the demo pair, at a free port, until the block ends."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "demo-chat", "--port", "0", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    assert process.stderr is not None
    said: list[str] = []
    url = None
    try:
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"serving \S+ at (\S+)", line):
                url = found[1]
                break
        assert url is not None, "".join(said)
        threading.Thread(target=said.extend, args=(process.stderr,), daemon=True).start()
        yield Running(process, url, said)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
