"""A worker process seen from its parent: start it, talk to it, know how it ended."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

from tokforge_engine import messages
from tokforge_engine.errors import EngineCrashed, InvalidRequest
from tokforge_engine.messages import BadMessage, Order, Phase
from tokforge_engine.regular_file import read_tail

_LOG_TAIL_BYTES = 4096
_END_SECONDS = 0.5
# How long one wait for a report lasts: on Windows, Ctrl+C is noticed between two waits only.
_WAIT_SECONDS = 0.2
LESS_MEMORY = "end other programs, or take a smaller model, shorter text or memory: low"
# What MNN, its libraries and Python print when they get no more.
_OUT_OF_MEMORY = re.compile(
    r"bad_alloc|memory not enough|not enought? memory|memory allocation|memoryerror"
    r"|alloc \w+ error",
    re.IGNORECASE,
)
_PACKAGE = Path(__file__).parent
# Imports this very package by its place. On the module path, where it would come first, its
# neighbours could stand in for modules of the standard library.
_START = """\
import importlib.util, sys
spec = importlib.util.spec_from_file_location("tokforge_engine", sys.argv[1])
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
from tokforge_engine import worker
worker.main()
"""


class WorkerProcess:
    """A running worker, with a private directory for its log and for what MNN writes.

    Args:
        code: what to run in Python; the worker, unless a test has another idea.

    Raises:
        EngineCrashed: it could not be started.
    """

    def __init__(self, code: str = _START) -> None:
        self._phase = "starting"
        self._tail = ""
        self._scratch = Path(tempfile.mkdtemp(prefix="tokforge-"))
        self._log = self._scratch / "worker.log"
        # -P: its directory, where MNN writes, is no place for modules.
        command = [sys.executable, "-P", "-c", code, str(_PACKAGE / "__init__.py")]
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=self._scratch,
                )
        except OSError as error:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise EngineCrashed(f"the engine's process could not be started ({error})") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders = self._process.stdin
        self._reports: queue.SimpleQueue[object | None] = queue.SimpleQueue()
        reader = threading.Thread(
            target=_forward, args=(self._process.stdout, self._reports), daemon=True
        )
        try:
            reader.start()
        except RuntimeError as error:
            self._process.stdout.close()
            self.end(0)
            raise EngineCrashed(f"the engine's process cannot be listened to ({error})") from None

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def open(self) -> bool:
        """Whether it can be sent orders: nobody has ended it, nor was its end noticed."""
        return not self._orders.closed

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def send(self, order: Order) -> None:
        """Send an order.

        Raises:
            InvalidRequest: it holds what cannot be sent.
            EngineCrashed: the process is gone.
        """
        try:
            messages.check(order)
        except BadMessage as error:
            raise InvalidRequest(f"the request cannot be sent to the engine: {error}") from None
        try:
            messages.write(self._orders, order)
        except (OSError, ValueError):
            raise self._crash() from None

    def receive(self, seconds: float | None = None, *, of_silence: bool = False) -> object:
        """Wait for the next report other than a `Phase`.

        Args:
            seconds: how long it may take, or None: as long as the process lives.
            of_silence: count anew from each `Phase`.

        Raises:
            EngineCrashed: the process ended, sent what is not a report, or was too slow; then it
                is killed.
        """
        limit = float("inf") if seconds is None else seconds
        began = time.monotonic()
        while True:
            left = began + limit - time.monotonic()
            if left <= 0:
                self.end(0)
                raise self._error(
                    f"the engine said nothing for {seconds:.0f} s while {self._phase}"
                    if of_silence
                    else f"the engine was not ready after {seconds:.0f} s; it was {self._phase}"
                )
            wait = min(_WAIT_SECONDS, left)
            try:
                report = self._reports.get(timeout=wait)
            except queue.Empty:
                continue
            if isinstance(report, Phase):
                self._phase = report.doing
                if of_silence:
                    began = time.monotonic()
            elif isinstance(report, BadMessage):
                self.end(0)
                raise self._error(
                    f"the engine sent what is not a report while {self._phase} ({report})"
                )
            elif report is None:
                raise self._crash()
            else:
                return report

    def end(self, seconds: float = _END_SECONDS) -> None:
        """End the process, at the latest after `seconds`, and remove its directory."""
        # It may have died with orders unread.
        with contextlib.suppress(OSError):
            self._orders.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            self._tail = self.log_tail() or self._tail
            shutil.rmtree(self._scratch, ignore_errors=True)

    def log_tail(self) -> str:
        """The last few kilobytes that MNN and the worker printed."""
        try:
            return read_tail(self._log, _LOG_TAIL_BYTES).decode(errors="replace")
        except OSError:
            return ""

    def _crash(self) -> EngineCrashed:
        self.end()
        return self._error(f"the engine {_ending(self._process.returncode)} while {self._phase}")

    def _error(self, message: str) -> EngineCrashed:
        if _OUT_OF_MEMORY.search(self._tail):
            return EngineCrashed(
                f"{message}: it ran out of memory", hint=LESS_MEMORY, log=self._tail
            )
        return EngineCrashed(
            message,
            hint="tokforge verify --full hashes the bundle's files; with less memory in use, "
            "or memory: low, a large model may fit",
            log=self._tail,
        )


def _forward(stream: IO[bytes], reports: queue.SimpleQueue[object | None]) -> None:
    with stream:
        while True:
            try:
                report = messages.read(stream)
            except BadMessage as error:
                reports.put(error)
                return
            reports.put(report)
            if report is None:
                return


def _ending(code: int) -> str:
    if code < 0:
        try:
            return f"died of {signal.Signals(-code).name}"
        except ValueError:
            return f"died of signal {-code}"
    if os.name == "nt" and code > 255:
        return f"died of exception 0x{code:08X}"
    return f"ended with code {code}"
