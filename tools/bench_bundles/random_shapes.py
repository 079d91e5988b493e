"""Models of Qwen3's shapes with random weights: they cost what the real ones cost, and say nothing.

What a forward costs depends on shapes alone, so these stand for models that cannot be had offline.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

_VOCABULARY = 151_936
_HEAD = 128


@dataclass(frozen=True)
class Shape:
    """A Qwen3 shape with the family's vocabulary; output and embedding are one matrix."""

    layers: int
    width: int
    inner: int
    heads: int
    kv_heads: int


SHAPES = {
    "qwen3-0.6b-shape": Shape(layers=28, width=1024, inner=3072, heads=16, kv_heads=8),
    "qwen3-4b-shape": Shape(layers=36, width=2560, inner=9728, heads=32, kv_heads=8),
    # No model of the family is so small: a draft for the 0.6B shape at a twelfth of its cost.
    "qwen3-tiny-shape": Shape(layers=4, width=256, inner=768, heads=4, kv_heads=2),
}


def build(shape: Shape) -> Qwen3ForCausalLM:
    """Return the model, in bfloat16 so that 4B parameters take 8 GB."""
    config = Qwen3Config(
        vocab_size=_VOCABULARY,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=_HEAD,
        max_position_embeddings=40_960,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=2,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        model: Qwen3ForCausalLM = Qwen3ForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return model
