"""Everything that can go wrong outside the engine, as one tree.

Three questions sort the tree: is what we were given wrong (`RegistryError`, `IntegrityError`),
could we not get or keep it (`FetchError`, `StorageError`), or was something asked for that cannot
be (`UsageError`, `UnknownBundle`, `Refused`)?

A message answers, as far as each is known: what happened, what was expected, what came instead,
what was kept, and (the hint) which command to run next. `kind` and `exit_code` are part of the
command line's contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class TokforgeError(Exception):
    """Base of all errors of this package.

    Args:
        what: what happened, one sentence without a final full stop.
        expected: what should have been there.
        got: what was there instead.
        kept: what is safe and was not lost.
        hint: the next command or step.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(
        self, what: str, *, expected: str = "", got: str = "", kept: str = "", hint: str = ""
    ) -> None:
        self.what = what
        self.expected = expected
        self.got = got
        self.kept = kept
        self.hint = hint
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """Everything but the hint, as one line."""
        parts = [self.what]
        if self.expected:
            parts.append(f"expected {self.expected}")
        if self.got:
            parts.append(f"got {self.got}")
        if self.kept:
            parts.append(f"kept {self.kept}")
        return "; ".join(parts)


class UsageError(TokforgeError):
    """The command was given words it does not take."""

    kind = "usage"
    exit_code = 2


class UnknownBundle(TokforgeError):
    """No bundle of that name in the registry, or none where one was needed."""

    kind = "unknown"
    exit_code = 3


class FetchError(TokforgeError):
    """A source could not give us the bytes."""

    kind = "fetch"
    exit_code = 4


class IntegrityError(TokforgeError):
    """Bytes are not what was pinned, or a bundle is not whole."""

    kind = "integrity"
    exit_code = 5


class StorageError(TokforgeError):
    """The disk is full, or a file may not be read or written."""

    kind = "storage"
    exit_code = 6


class MayOnlyRead(StorageError):
    """A place may not be written, now or later; whoever only reads can go on without."""


class Refused(TokforgeError):
    """What was asked for cannot be, or would break something in use."""

    kind = "refused"
    exit_code = 7


class UnknownFormat(Refused):
    """A file has a format that this version does not read; nothing says that it is damaged.

    MNN may read it all the same: what needs no knowledge of that file still works.
    """


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault in a registry file.

    Attributes:
        file: the file as the user named it.
        line: 1-based line of the offending node.
        key: dotted path of the key, e.g. ``bundles.qwen3-4b.role``; empty for the whole file.
        expected: what the schema wants there.
        got: what stands there.
    """

    file: str
    line: int
    key: str
    expected: str
    got: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}"
        key = f" {self.key}:" if self.key else ""
        return f"{where}:{key} expected {self.expected}, got {self.got}"


class RegistryError(TokforgeError):
    """A registry, or another file that is read as strictly, is not valid.

    Carries every problem found, not only the first.

    Args:
        problems: what is wrong; not empty.
        what: what the files are, as a message calls them.
        hint: the next step.
    """

    kind = "registry"
    exit_code = 7

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        what: str = "the registry",
        hint: str = "tokforge registry lint FILE shows them again once the file is edited",
    ) -> None:
        self.problems = tuple(problems)
        noun = "problem" if len(self.problems) == 1 else "problems"
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__(f"{what} has {len(self.problems)} {noun}:{lines}", hint=hint)
