"""What the two models look like, and how a run's sizes differ between full and quick."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

CONTEXT = 1024
_HEAD = 64


@dataclass(frozen=True)
class Shape:
    """A Qwen3 shape. Each width must be a multiple of the quantisation block, 128."""

    layers: int
    width: int
    inner: int
    heads: int
    kv_heads: int

    def build(self, vocabulary: int, stop: int, pad: int, seed: int) -> Qwen3ForCausalLM:
        """Return the model with random weights in float32."""
        config = Qwen3Config(
            vocab_size=vocabulary,
            hidden_size=self.width,
            intermediate_size=self.inner,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=_HEAD,
            max_position_embeddings=CONTEXT,
            rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=stop,
            pad_token_id=pad,
            attn_implementation="eager",
        )
        torch.manual_seed(seed)
        model: Qwen3ForCausalLM = Qwen3ForCausalLM(config)
        return model
