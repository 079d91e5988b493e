"""Speculative decoding over MNN: a draft guesses, the target checks in one forward.

`Session` loads a pair and answers prompts; MNN itself runs in a process of its own and is imported
nowhere else.
"""

from tokforge_engine.decoding import Token
from tokforge_engine.errors import (
    BundleDamaged,
    EngineCrashed,
    EngineError,
    EngineUnavailable,
    Incompatible,
    InvalidRequest,
)
from tokforge_engine.generation import GenerateOptions, Message, Piece, Result
from tokforge_engine.session import Generation, Session
from tokforge_engine.settings import ModelSpec, RuntimeSettings
from tokforge_engine.statistics import Statistics

__all__ = [
    "BundleDamaged",
    "EngineCrashed",
    "EngineError",
    "EngineUnavailable",
    "GenerateOptions",
    "Generation",
    "Incompatible",
    "InvalidRequest",
    "Message",
    "ModelSpec",
    "Piece",
    "Result",
    "RuntimeSettings",
    "Session",
    "Statistics",
    "Token",
]
