"""Who may change a bundle, and who is using it.

    locks/<id>/lock            held by the one process that works on the bundle
    locks/<id>/holder.json     who that is, for the others' messages; gone when it ends
    locks/<id>/gate            held for an instant by who claims, and all along by who removes
    locks/<id>/claims/<n>.lock held by a running model; many at once
    locks/<id>/claims/<n>.json who that is

The operating system frees what a process held when it dies, however it dies: a lock or claim
file that nobody holds means nothing, and the next one who looks sweeps it away.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tokforge_models.errors import Refused, StorageError
from tokforge_models.files.disk import Disk, explained, read_small
from tokforge_models.progress import Event, Phase, Progress

_NOTE_BYTES = 64 * 1024
_GATE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a lock or a claim.

    Attributes:
        command: what the user typed, or what the program calls itself.
        pid: its process id; 0 where it is not known.
    """

    command: str
    pid: int

    def __str__(self) -> str:
        return f"`{self.command}` (process {self.pid})" if self.pid else self.command


_SOMEBODY = Holder("another process", 0)


def no_matter(holder: Holder) -> None:
    """Wait without telling for whom."""


def waiting_events(id: str, progress: Progress) -> Callable[[Holder], None]:
    """Report for whom work on bundle `id` waits."""
    return lambda holder: progress(Event(id, Phase.WAITING, note=str(holder)))


class Locks:
    """The locks of one bundle.

    Args:
        folder: locks/<id>.
        disk: how holders are written.
        what: is locked, for messages; the bundle that the folder is named after unless given.
    """

    def __init__(self, folder: Path, disk: Disk, what: str | None = None) -> None:
        self._folder = folder
        self._disk = disk
        self._what = what or f"the bundle {folder.name}"
        self._worker = folder / "holder.json"
        self._claims = folder / "claims"

    @contextmanager
    def exclusive(
        self,
        command: str,
        timeout: float,
        waiting: Callable[[Holder], None] = no_matter,
    ) -> Iterator[None]:
        """Be the one process that works on the bundle.

        Args:
            command: how others shall name us.
            timeout: seconds to wait for another one; negative means as long as it takes.
            waiting: called once with the holder, if there is one.

        Raises:
            Refused: the time is over; the message names the holder.
        """
        who = partial(_holder, self._worker)
        with self._held(self._folder / "lock", timeout, who, waiting):
            with suppress(StorageError):  # a full disk forbids no one to free it
                self._disk.write(self._worker, _note(command))
            try:
                yield
            finally:
                with suppress(StorageError):
                    self._disk.remove(self._worker)

    @contextmanager
    def claim(self, command: str) -> Iterator[None]:
        """Hold off whoever wants to remove the bundle, beside others who do the same.

        Raises:
            MayOnlyRead: nothing may be written here.
            Refused: it is being removed or mended right now.
        """
        name = f"{os.getpid()}-{os.urandom(6).hex()}"
        lock = self._claims / f"{name}.lock"
        note = self._claims / f"{name}.json"
        with ExitStack() as held:
            held.callback(self._sweep_if_possible, lock)
            with self._gate():
                held.enter_context(self._held(lock, 0, lambda: _SOMEBODY))
                with suppress(StorageError):  # a full disk forbids no one to run a model
                    self._disk.append(note, _note(command))
            yield

    @contextmanager
    def unclaimed(self) -> Iterator[None]:
        """Know that nobody uses the bundle, and that nobody begins to.

        Raises:
            Refused: it is in use; the message names by whom.
        """
        with self._gate():
            if users := self._users():
                raise Refused(
                    f"{self._what} is in use by {', '.join(map(str, users))}",
                    kept="the bundle as it is",
                    hint="end that command first, then run this one again",
                )
            yield

    def _users(self) -> tuple[Holder, ...]:
        """Who uses the bundle; only behind the gate, where no claim is half made."""
        alive = []
        for lock in sorted(self._claims.glob("*.lock")):
            try:
                with self._held(lock, 0, lambda: _SOMEBODY):
                    pass
            except Refused:
                alive.append(_holder(lock.with_suffix(".json")))
            else:
                self._sweep(lock)
        return tuple(alive)

    def _sweep(self, lock: Path) -> None:
        for path in (lock.with_suffix(".json"), lock):
            self._disk.remove(path)

    def _sweep_if_possible(self, lock: Path) -> None:
        """Leave what cannot be removed to the next one who looks: nobody holds it."""
        with suppress(StorageError):
            self._sweep(lock)

    @contextmanager
    def _gate(self) -> Iterator[None]:
        with self._held(self._folder / "gate", _GATE_SECONDS, partial(_holder, self._worker)):
            yield

    @contextmanager
    def _held(
        self,
        path: Path,
        timeout: float,
        who: Callable[[], Holder],
        waiting: Callable[[Holder], None] = no_matter,
    ) -> Iterator[None]:
        from filelock import FileLock, Timeout

        self._disk.make_folder(path.parent)
        lock = FileLock(path)
        with explained("lock", path):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                waiting(who())
                try:
                    lock.acquire(timeout=timeout)
                except Timeout as error:
                    raise Refused(
                        f"{self._what} is being worked on by {who()}",
                        hint="wait for that command to end, then run this one again",
                    ) from error
            except NotImplementedError as error:
                raise StorageError(
                    f"cannot lock {path}: this file system has no locks",
                    hint="set TOKFORGE_HOME to a folder on another disk",
                ) from error
        try:
            yield
        finally:
            lock.release()


def _note(command: str) -> bytes:
    return json.dumps({"command": command, "pid": os.getpid()}).encode()


def _holder(path: Path) -> Holder:
    with suppress(OSError, ValueError, RecursionError):
        note = json.loads(read_small(path, _NOTE_BYTES))
        if isinstance(note, dict):
            command, pid = note.get("command"), note.get("pid")
            if isinstance(command, str) and isinstance(pid, int):
                return Holder(command[:200], pid)
    return _SOMEBODY
