"""What to load and how: the values that a session is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from tokforge_engine.errors import InvalidRequest

MAX_D = 15

Numerics = Literal["fast", "exact", "reference"]
"""How a target computes a step.

``fast`` is as MNN would. A forward of one token then computes slightly other logits than a forward
of several, so paired and plain text part where two tokens are nearly as likely; neither is wrong.
``exact`` fills each step up to a number of tokens that all compute the same bits, so paired text is
plain text, bit for bit, in any memory setting; steps without a draft cost that of two tokens.
``reference`` is the memory setting ``normal`` for both models: activations are not rounded to 8
bits, so the difference is too small to be met in practice, at several times the cost.
"""


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """How MNN runs one model. None means: what the bundle's config.json says.

    Attributes:
        backend: ``cpu``, ``opencl``, ``vulkan``, ``metal``, ``cuda`` or ``hexagon``.
        threads: 1 to 64; where neither this nor the bundle says, and where the bundle says more,
            as many as this process may use cores.
        precision: ``low``, ``normal`` or ``high``.
        memory: ``low`` (activations in 8 bits), ``normal`` or ``high``.
        power: ``low``, ``normal`` or ``high``.
        dynamic_option: MNN's variant of quantising activations, 0 to 9.
    """

    backend: str | None = None
    threads: int | None = None
    precision: str | None = None
    memory: str | None = None
    power: str | None = None
    dynamic_option: int | None = None

    _LEVELS: ClassVar = ("low", "normal", "high")
    _BACKENDS: ClassVar = ("cpu", "opencl", "vulkan", "metal", "cuda", "hexagon")

    def __post_init__(self) -> None:
        _check_word("backend", self.backend, self._BACKENDS)
        for name in ("precision", "memory", "power"):
            _check_word(name, getattr(self, name), self._LEVELS)
        for name, value, most in (
            ("threads", self.threads, 64),
            ("dynamic_option", self.dynamic_option, 9),
        ):
            least = 1 if name == "threads" else 0
            if value is not None and not least <= value <= most:
                raise InvalidRequest(f"{name} expected {least} to {most}, got {value}")


def _check_word(name: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value is not None and value not in allowed:
        raise InvalidRequest(f"{name} expected one of {', '.join(allowed)}, got {value!r}")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model of a session.

    Attributes:
        path: directory of the bundle.
        settings: how to run it.
        name: how messages and tokens name it; the directory's name where it is empty.
        context_length: tokens it was made for, where the bundle does not say and you know.
    """

    path: Path
    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    name: str = ""
    context_length: int | None = None

    @property
    def label(self) -> str:
        """The name, or the directory's name."""
        return self.name or self.path.name
