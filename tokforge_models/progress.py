"""How long work is reported, as plain events that a bar, a log or a test can take."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """What is going on."""

    WAITING = "waiting"
    HASHING = "hashing"
    FETCHING = "fetching"
    EXPORTING = "exporting"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Event:
    """One step of work on one bundle.

    Attributes:
        bundle: its id.
        phase: what is going on.
        path: the file at work, or empty.
        done: bytes of this phase that are behind; never falls within a phase.
        total: bytes of this phase.
        note: for `WAITING`, who holds the lock; for `NOTE`, a sentence for people.
    """

    bundle: str
    phase: Phase
    path: str = ""
    done: int = 0
    total: int = 0
    note: str = ""


Progress = Callable[[Event], None]


def silent(event: Event) -> None:
    """Take no notice of `event`."""


class Meter:
    """Adds up the bytes of one phase and reports them, from any thread, one event at a time."""

    def __init__(
        self, progress: Progress, bundle: str, phase: Phase, total: int, done: int = 0
    ) -> None:
        self._progress = progress
        self._bundle = bundle
        self._phase = phase
        self._total = total
        self._done = done
        self._lock = threading.Lock()

    def add(self, path: str, count: int) -> None:
        """Say that `count` more bytes of the file `path` are behind."""
        with self._lock:
            self._done = min(self._done + count, self._total)
            self._progress(Event(self._bundle, self._phase, path, self._done, self._total))
