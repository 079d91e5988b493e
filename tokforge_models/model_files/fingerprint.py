"""What a bundle's content says about whether two models can work together.

`fingerprint_of` reads a bundle's files without MNN, so that resolution can tell before anything
is loaded, on every platform.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tokforge_models.errors import IntegrityError
from tokforge_models.files.disk import open_plain, read_small, real_path
from tokforge_models.model_files.completeness import (
    CONFIG,
    MAX_CONFIG_BYTES,
    Config,
    merged,
    named_file,
    parse_config,
)
from tokforge_models.model_files.tokenizer_file import FRESH_COPY, read_tokenizer
from tokforge_models.names import inside

Attention = Literal["full", "linear", "mixed", "unknown"]

_MAX_GRAPH_BYTES = 1 << 30
_CHUNK_BYTES = 1 << 20
# MNN's exporter names layers after these operators (transformers/llm/export/utils/custom_op.py).
_FULL_LAYER = b"/FusedAttention"
_LINEAR_LAYER = b"/FusedLinearAttention"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Compatibility facts of one bundle, read from its files.

    Attributes:
        tokens: the bytes of every real token, by id; padding beyond the tokenizer is not here.
        special_ids: ids that are never text.
        stop_ids: ids that end an answer.
        attention: what its layers have. Those with linear attention keep a running state that
            cannot be rolled back to an earlier token.
        context_length: tokens, or None where the bundle does not say.
    """

    tokens: tuple[bytes, ...]
    special_ids: frozenset[int]
    stop_ids: frozenset[int]
    attention: Attention
    context_length: int | None = None


def fingerprint_of(directory: Path) -> Fingerprint:
    """Read a bundle's fingerprint from its config.json, llm_config.json, tokenizer and graph.

    Raises:
        IntegrityError: one of these files is missing or damaged.
        UnknownFormat: its tokenizer is of a type that nothing here reads.
    """
    config = _read_config(directory, CONFIG)
    second = _read_config(directory, _named(config, "llm_config", "llm_config.json"))
    config = merged(config, second)
    tokenizer = read_tokenizer(
        inside(directory, _named(config, "tokenizer_file", "tokenizer.txt")),
    )
    length = config.get("max_position_embeddings")
    return Fingerprint(
        tokens=_without_padding(tokenizer.tokens),
        special_ids=tokenizer.special_ids,
        stop_ids=tokenizer.stop_ids,
        attention=_attention(inside(directory, _named(config, "llm_model", "llm.mnn"))),
        context_length=length if type(length) is int and length > 0 else None,
    )


def _without_padding(tokens: tuple[bytes, ...]) -> tuple[bytes, ...]:
    end = len(tokens)
    while end and not tokens[end - 1]:
        end -= 1
    return tokens[:end]


def _attention(graph: Path) -> Attention:
    """The kinds of attention in a model's graph.

    llm_config.json has a key ``attention_type``, but its "full" only says that no layer needs a
    sliding window: models with linear layers are called full there too.
    """
    wanted = {_FULL_LAYER, _LINEAR_LAYER}
    overlap = max(map(len, wanted)) - 1
    found: set[bytes] = set()
    try:
        with open_plain(real_path(graph)) as stream:
            if os.fstat(stream.fileno()).st_size > _MAX_GRAPH_BYTES:
                raise OSError(errno.EFBIG, f"larger than {_MAX_GRAPH_BYTES} bytes")
            tail = b""
            while found != wanted and (chunk := stream.read(_CHUNK_BYTES)):
                window = tail + chunk
                found |= {name for name in wanted if name in window}
                tail = window[-overlap:]
    except OSError as error:
        raise _unreadable(graph, error) from error
    if _LINEAR_LAYER in found:
        return "mixed" if _FULL_LAYER in found else "linear"
    return "full" if _FULL_LAYER in found else "unknown"


def _named(config: Config, key: str, default: str) -> str:
    try:
        return named_file(config, key, default)
    except ValueError as problem:
        raise IntegrityError(f"{CONFIG}: {problem}", hint=FRESH_COPY) from problem


def _read_config(directory: Path, name: str) -> Config:
    path = inside(directory, name)
    try:
        config = parse_config(name, read_small(real_path(path), MAX_CONFIG_BYTES))
    except OSError as error:
        raise _unreadable(path, error) from error
    if isinstance(config, str):
        raise IntegrityError(f"{directory}: {config}", hint=FRESH_COPY)
    return config


def _unreadable(path: Path, error: OSError) -> IntegrityError:
    return IntegrityError(
        f"cannot read {path}: {error.strerror or type(error).__name__}", hint=FRESH_COPY
    )
