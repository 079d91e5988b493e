"""Everything that can go wrong while a model runs, as one tree.

`exit_code` follows the command line's contract: 2 usage, 5 a bundle is damaged, 7 refused or
incompatible, 8 the engine failed. A message says what happened, what was expected and what came.
"""

from __future__ import annotations

from typing import ClassVar


class EngineError(Exception):
    """Base of all errors of this package, and: a model could not be loaded or run.

    Args:
        message: what happened, with expected and got where they are known, on one line.
        hint: the next command or step.
    """

    kind: ClassVar[str] = "engine"
    exit_code: ClassVar[int] = 8

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)


class BundleDamaged(EngineError):
    """Files are missing, cut short or do not fit together; MNN would crash on them."""

    kind = "integrity"
    exit_code = 5


class Incompatible(EngineError):
    """Two models cannot be paired, or a request cannot be honoured by this model."""

    kind = "refused"
    exit_code = 7


class InvalidRequest(EngineError):
    """A parameter of a generation is outside its range."""

    kind = "usage"
    exit_code = 2


class TooLittleMemory(EngineError):
    """A model would need more memory than is free; the system would end it, or something else."""

    kind = "refused"
    exit_code = 7


class EngineUnavailable(EngineError):
    """MNN is not installed here, or lacks a call that the adapter needs."""


class EngineCrashed(EngineError):
    """The worker process died, hung or sent nonsense.

    Args:
        message: as in `EngineError`.
        hint: as in `EngineError`.
        log: the end of what the process printed, for people who look for the cause.
    """

    def __init__(self, message: str, *, hint: str = "", log: str = "") -> None:
        self.log = log
        super().__init__(message, hint=hint)
