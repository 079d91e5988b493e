"""What people and programs read: one JSON document, or lines and tables; errors as one sentence.

Results go to standard output, notes and errors to standard error. With ``--json`` standard output
carries exactly one document.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from tokforge_models.errors import StorageError, TokforgeError

# C0 and C1 controls but tab and newline: a model's text or a registry's name must not drive the
# reader's terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# What turns or hides its neighbours: right in a model's text, a trick in a server's.
_INVISIBLE = re.compile(r"[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
THOUGHT, PLAIN = "\x1b[2m", "\x1b[0m"
_UNITS = ("B", "KB", "MB", "GB", "TB")


class ReaderGone(Exception):
    """Whoever read our standard output has closed it: nothing is wrong, nothing more is to say."""


class Interrupted(Exception):
    """Ctrl+C, after which the command has told itself what there is; only its exit code is left."""


def open_missing_streams() -> None:
    """Give a process that was started without standard streams (``>&-``) silent ones.

    Must run before any file is opened, or that file takes the stream's number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A model's text is not bound to the console's code page.
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")


def silence(stream: TextIO | None = None) -> None:
    """Drop what is still to be written to a stream that takes nothing any more.

    Else the interpreter tries once more when it ends, and makes its own exit code of it. The
    standard output unless another is named.
    """
    stream = stream or sys.stdout
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        stream.flush()


def document(value: Any) -> None:
    """Print `value` as the command's one JSON document.

    Only ASCII is written, so that no console's encoding can break it. A path becomes its text.
    """
    _write(json.dumps(value, indent=2, default=os.fspath) + "\n")


def line(text: str = "") -> None:
    """Print one line of a result for people."""
    _write(plain(text) + "\n")


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as failed:
        silence()
        raise StorageError(
            f"cannot write to standard output: {failed.strerror or failed}",
            hint="free some space where the output goes, then run the same command again",
        ) from None


def note(text: str) -> None:
    """Print what is not part of the result: progress in words, warnings, reasons.

    A note that cannot be written ends nothing.
    """
    try:
        print(plain(text), file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def failure(error: TokforgeError) -> dict[str, str]:
    """An error as a document carries it."""
    return {"kind": error.kind, "message": error.message, "hint": error.hint}


def several(value: dict[str, Any], errors: Sequence[TokforgeError]) -> None:
    """Print the document of a command of several parts, with the first of their errors."""
    document({**value, "error": failure(errors[0])} if errors else value)


def error(kind: str, message: str, hint: str, *, as_json: bool) -> None:
    """Print an error for people on stderr, or as the document of ``--json``."""
    if as_json:
        with contextlib.suppress(ReaderGone, StorageError):
            document({"error": {"kind": kind, "message": message, "hint": hint}})
        return
    note(f"tokforge: {message}")
    if hint:
        note(f"  try: {hint}")


def stream(text: str, *, before: str = "", after: str = "") -> None:
    """Print a part of a model's text at once: as it is, but safe where a terminal shows it.

    Args:
        text: the part.
        before: what a terminal needs to show it in a colour.
        after: what takes that back.
    """
    _write(before + (printable(text) if sys.stdout.isatty() else text) + after)


def colours() -> bool:
    """Whether standard output shows colours: a terminal, and nobody asked for none."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def printable(text: str) -> str:
    """`text` with control characters made visible."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def plain(text: str) -> str:
    """`text` with control characters and invisible ones made visible."""
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match.group()):04x}", printable(text))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, each as wide as its widest cell; the last one is not padded."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        line("  ".join(cells).rstrip())


def size(count: int | None) -> str:
    """Bytes in decimal units, as the model card counts them.

    >>> size(335769842)
    '336 MB'
    >>> size(4660)
    '4.66 KB'
    """
    if count is None:
        return "?"
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 0 if unit == 0 else max(0, 3 - len(str(int(value))))
    return f"{value:.{digits}f} {_UNITS[unit]}"
