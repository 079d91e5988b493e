"""How much memory a pair will need, told before it is loaded.

Each constant was fitted to the worker's resident memory (docs/engine.md, "Memory", has the
measurements and how far the estimate is off). What MNN holds of a model: its weights, as they are
in the file or as 32-bit numbers; objects for each operation, once more for each width of a
forward; the tokenizer; the KV cache; and while it loads, one matrix unpacked.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokforge_engine.drafting import SCORED

if TYPE_CHECKING:
    from tokforge_engine.messages import Load, LoadModel

MIB = 2**20

EXPECTED_TOKENS = 2048
"""Prompt and answer together that room is asked for, where a context is not shorter."""

# Python, numpy and MNN themselves.
_PROCESS = 32 * MIB
_LAYER = 0.7 * MIB
_LAYER_A_WIDTH = 0.16 * MIB
# Scales are widened, and rows sorted for the kernels.
_AS_IN_THE_FILE = 1.05
_UNROUNDED = 1.1
_TOKENIZER = 8
_LOGITS = 2.0
# The cache grows in steps of 64 tokens, each of them a copy; what was freed serves the next ones
# in part.
_KV_GROWTH = 2.2
_KV_STEP = 64
_ACTIVATIONS = 4 * MIB


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a bundle decides how much memory it takes.

    Attributes:
        weight_bytes: size of the weight file.
        tokenizer_bytes: size of the tokenizer's file.
        layers: transformer blocks.
        parameters: numbers in its matrices.
        largest: numbers in the largest matrix.
        cached: numbers in the KV cache for each token.
    """

    weight_bytes: int
    tokenizer_bytes: int
    layers: int
    parameters: int
    largest: int
    cached: int


@dataclass(frozen=True, slots=True)
class ModelLoad:
    """A model and how it will be run.

    Attributes:
        shape: the model's.
        vocabulary: columns of its logits.
        widths: how many tokens its prepared forwards take.
        tokens: prompt and answer together.
        unrounded: whether weights are unpacked to numbers of `number_bytes`, as the memory
            settings ``normal`` and ``high`` do.
        number_bytes: of a number in the KV cache; 4, or 2 where the processor computes in 16 bits.
    """

    shape: Shape
    vocabulary: int
    widths: tuple[int, ...]
    tokens: int
    unrounded: bool = False
    number_bytes: int = 4


def needed_by(load: Load) -> int:
    """Bytes of memory that a worker will hold at its peak once it was told to load this."""
    verified = range(1, load.max_d + 2) if load.draft or load.lookup else (1,)
    models = [_planned(load.target, tuple(verified))]
    if load.draft:
        models.append(_planned(load.draft, (1, SCORED)))
    return needed_bytes(*models)


def _planned(model: LoadModel, widths: tuple[int, ...]) -> ModelLoad:
    bundle, settings = model.bundle, model.settings
    context_length = bundle.context_length or model.context_length or EXPECTED_TOKENS
    precision = settings.precision or bundle.precision
    in_16_bits = platform.machine().lower() in {"arm64", "aarch64"} and precision == "low"
    return ModelLoad(
        shape=bundle.shape,
        vocabulary=bundle.embedding_rows,
        widths=widths,
        tokens=min(context_length, EXPECTED_TOKENS),
        unrounded=(settings.memory or bundle.memory or "low") != "low",
        number_bytes=2 if in_16_bits else 4,
    )


def needed_bytes(*models: ModelLoad) -> int:
    """Bytes of memory that a worker with these models will hold at its peak."""
    loaded = sum(map(_loaded, models))
    texts = sum(map(_text, models))
    # Models are loaded one after the other, and texts come when all are.
    unpacking = max((_unpacking(model) for model in models), default=0.0)
    return int(_PROCESS + loaded + max(texts, unpacking))


def _loaded(model: ModelLoad) -> float:
    shape = model.shape
    weights = shape.weight_bytes * _AS_IN_THE_FILE
    if model.unrounded:
        weights = max(shape.parameters * model.number_bytes * _UNROUNDED, weights)
    return (
        weights
        + shape.layers * (_LAYER + _LAYER_A_WIDTH * (len(model.widths) - 1))
        + shape.tokenizer_bytes * _TOKENIZER
        + sum(model.widths) * model.vocabulary * 4 * _LOGITS
    )


def _text(model: ModelLoad) -> float:
    numbers = (model.tokens + _KV_STEP) * model.shape.cached
    return numbers * model.number_bytes * _KV_GROWTH + _ACTIVATIONS


def _unpacking(model: ModelLoad) -> float:
    return model.shape.largest * (model.number_bytes if model.unrounded else 1)
