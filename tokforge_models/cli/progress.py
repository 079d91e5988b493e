"""Progress of long work on standard error: a bar for people, nothing for pipes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from tokforge_models.cli import output
from tokforge_models.progress import Event, Phase, Progress, silent

if TYPE_CHECKING:
    from tqdm import tqdm


@contextmanager
def bar() -> Iterator[Progress]:
    """A callback that draws one bar a bundle and phase; silent where stderr is no terminal.

    Notes and whom a command waits for are printed in either case.
    """
    bars = _Bars() if sys.stderr.isatty() else None
    try:
        yield bars.show if bars else _words
    finally:
        if bars:
            bars.close()


class PromptProgress:
    """A bar for the tokens of a long prompt, gone before the answer comes; none for pipes."""

    _LONG = 512

    def __init__(self) -> None:
        self._bar: tqdm[NoReturn] | None = None

    def __call__(self, done: int, total: int) -> None:
        """So many tokens have been read, of so many."""
        from tokforge_engine.model import PREFILL_CHUNK

        if total < self._LONG or not sys.stderr.isatty():
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                desc="reading the prompt",
                unit=" tokens",
                leave=False,
                dynamic_ncols=True,
            )
        self._bar.update(done - self._bar.n)
        if total - done <= PREFILL_CHUNK:
            # Nothing is told of the last chunk: the first token comes with it.
            self.close()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
        self._bar = None


def _words(event: Event) -> None:
    if event.phase is Phase.WAITING:
        output.note(f"{event.bundle}: waiting for {event.note}")
    elif event.phase is Phase.NOTE:
        output.note(f"{event.bundle}: {event.note}")
    else:
        silent(event)


class _Bars:
    def __init__(self) -> None:
        self._now: tuple[str, Phase] | None = None
        self._bar: tqdm[NoReturn] | None = None

    def show(self, event: Event) -> None:
        if event.phase in {Phase.WAITING, Phase.NOTE}:
            self.close()
            _words(event)
            return
        if self._now != (event.bundle, event.phase):
            self._open(event)
        assert self._bar is not None
        self._bar.set_postfix_str(event.path, refresh=False)
        self._bar.update(event.done - self._bar.n)

    def close(self) -> None:
        if self._bar:
            self._bar.close()
        self._bar = self._now = None

    def _open(self, event: Event) -> None:
        from tqdm import tqdm

        self.close()
        self._now = (event.bundle, event.phase)
        self._bar = tqdm(
            total=event.total,
            initial=event.done,
            desc=f"{event.bundle} {event.phase}",
            unit="B",
            unit_scale=True,
            dynamic_ncols=True,
        )
