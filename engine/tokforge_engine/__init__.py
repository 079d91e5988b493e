"""Speculative decoding over MNN: a draft guesses, the target checks in one forward.

`Session` loads a pair and answers prompts; MNN itself runs in a process of its own and is imported
nowhere else. The names below are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokforge_engine.costs import Costs
    from tokforge_engine.decoding import Token
    from tokforge_engine.errors import (
        BundleDamaged,
        EngineCrashed,
        EngineError,
        EngineUnavailable,
        Incompatible,
        InvalidRequest,
        TooLittleMemory,
    )
    from tokforge_engine.generation import (
        GenerateOptions,
        Likely,
        Message,
        Piece,
        Result,
        Run,
        Scored,
        TokenLogprobs,
        ToolCall,
    )
    from tokforge_engine.sampling import Sampling
    from tokforge_engine.session import Generation, Session
    from tokforge_engine.settings import ModelSpec, RuntimeSettings
    from tokforge_engine.statistics import Statistics
    from tokforge_engine.thinking import Said, ThinkSplitter

__all__ = [
    "BundleDamaged",
    "Costs",
    "EngineCrashed",
    "EngineError",
    "EngineUnavailable",
    "GenerateOptions",
    "Generation",
    "Incompatible",
    "InvalidRequest",
    "Likely",
    "Message",
    "ModelSpec",
    "Piece",
    "Result",
    "Run",
    "RuntimeSettings",
    "Said",
    "Sampling",
    "Scored",
    "Session",
    "Statistics",
    "ThinkSplitter",
    "Token",
    "TokenLogprobs",
    "TooLittleMemory",
    "ToolCall",
]

_MODULES = (
    *("errors", "settings", "sampling", "statistics", "costs", "decoding", "generation"),
    *("thinking", "session"),
)


def __getattr__(name: str) -> object:
    if name in __all__:
        for module in _MODULES:
            home = import_module(f"{__name__}.{module}")
            if hasattr(home, name):
                return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
