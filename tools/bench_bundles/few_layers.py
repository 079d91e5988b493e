"""A cheap draft: a few of its target's layers, which then learn the target's text for a while.

The text they learn from is the embedded pair's corpus, which this very target wrote.
"""

from __future__ import annotations

import copy
import random
import sys
from pathlib import Path
from typing import Any

import torch
from demo_pair.training import compute_type
from torch import Tensor, nn
from torch.nn import functional

from demo_pair import corpus

LAYERS = (0, 1, 28, 29)
STEPS = 240
_ROWS, _LENGTH = 4, 129
_RATE = 1e-3
_WARM_UP = 20


def cut(target: Any) -> Any:
    """Return a model of the target's first and last layers, not trained."""
    model = copy.deepcopy(target)
    model.model.layers = nn.ModuleList(model.model.layers[layer] for layer in LAYERS)
    for place, layer in enumerate(model.model.layers):
        layer.self_attn.layer_idx = place
    model.config.num_hidden_layers = len(LAYERS)
    return model


def distil(target: Any, tokenizer: Any, samples: Path) -> Any:
    """Return the cut model after `STEPS` steps on the target's own text."""
    model = cut(target).float()
    parameters = list(model.model.layers.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=_RATE, weight_decay=0.01)
    dice = random.Random(0)
    ids = _ids(tokenizer, samples)
    output: Tensor = model.lm_head.weight.detach()
    for step in range(STEPS):
        rising, falling = (step + 1) / _WARM_UP, 2.0 * (1 - step / STEPS)
        for group in optimizer.param_groups:
            group["lr"] = _RATE * min(1.0, rising, falling)
        starts = [dice.randrange(len(ids) - _LENGTH) for _ in range(_ROWS)]
        rows = torch.stack([ids[start : start + _LENGTH] for start in starts])
        with torch.autocast("cpu", compute_type()):
            hidden = model.model(rows[:, :-1]).last_hidden_state
            logits = functional.linear(hidden, output)
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == STEPS - 1:
            print(f"draft: step {step}, loss {loss.item():.2f}", file=sys.stderr, flush=True)
    return model


def _ids(tokenizer: Any, samples: Path) -> Tensor:
    """Return all answers as one row of ids, each as the chat template puts it."""
    row: list[int] = []
    for sample in corpus.read(samples):
        row += tokenizer.encode(
            f"<|im_start|>assistant\n{sample.answer}<|im_end|>\n", add_special_tokens=False
        )
    return torch.tensor(row)
