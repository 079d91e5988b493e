"""The loop that both models are trained by: seeded, resumable, at 4 bits towards its end.

Weights are kept in float32 and used as bfloat16 where the CPU has such instructions. From
`Schedule.quantised_from` on, every matrix is rounded to the 4-bit grid of the export before it is
used (the gradient passes as if it were not), so that the export changes nothing. What comes out is
a moving average of the weights, rounded to that grid.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.func import functional_call
from transformers import Qwen3ForCausalLM

from demo_pair.exporting import BITS, BLOCK

_AVERAGE = 0.98
_SAVE_SECONDS = 60.0


@dataclass(frozen=True)
class Schedule:
    """Steps and learning rates; in each cycle the rate warms up, stays, and falls to nothing.

    From `quantised_from` of the first cycle on, training is at 4 bits.
    """

    cycles: tuple[int, ...]
    matrix_rate: float
    other_rate: float
    warm_up: int = 20
    falls_from: float = 0.4
    quantised_from: float = 0.5

    @property
    def steps(self) -> int:
        """The steps of all cycles."""
        return sum(self.cycles)

    def rate_factor(self, step: int) -> float:
        """Return what to multiply both rates with at a step."""
        length = self.cycles[-1]
        for length in self.cycles:
            if step < length:
                break
            step -= length
        rising = min(1.0, (step + 1) / self.warm_up)
        left = (length - step) / (length * (1 - self.falls_from))
        return rising * min(1.0, left)


def compute_type() -> torch.dtype:
    """Return bfloat16 where this CPU computes in it, else float32."""
    return torch.bfloat16 if torch.cpu._is_avx512_bf16_supported() else torch.float32


def to_grid(weight: Tensor) -> Tensor:
    """Round a matrix as the export does: 16 evenly spaced values a block, from its least up."""
    blocks = weight.reshape(weight.shape[0], -1, BLOCK)
    least = blocks.amin(-1, keepdim=True)
    step = (blocks.amax(-1, keepdim=True) - least) / (2**BITS - 1)
    step = step.clamp(min=1e-12)
    return (((blocks - least) / step).round() * step + least).view_as(weight)


Hidden = Callable[[Tensor], Tensor]
"""Final hidden states [rows, length, width] for ids [rows, length]."""

Loss = Callable[[int, Hidden, Tensor], tuple[Tensor, dict[str, float]]]
"""The loss of a step, and figures to print, from the hidden states and the output matrix."""


def train(
    model: Qwen3ForCausalLM, schedule: Schedule, loss_of: Loss, checkpoint: Path, name: str
) -> None:
    """Train in place, beginning from the checkpoint if there is one, and leave the average."""
    inner = model.model
    parameters = dict(inner.named_parameters())
    matrices = [p for key, p in parameters.items() if p.ndim == 2 and "embed" not in key]
    others = [p for key, p in parameters.items() if p.ndim != 2 or "embed" in key]
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.Muon(
            matrices,
            lr=schedule.matrix_rate,
            weight_decay=0.05,
            adjust_lr_fn="match_rms_adamw",
        ),
        torch.optim.AdamW(others, lr=schedule.other_rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    base_rates = (schedule.matrix_rate, schedule.other_rate)
    average = {key: value.detach().clone() for key, value in parameters.items()}
    done = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        done = saved["done"]
        inner.load_state_dict(saved["weights"])
        average = saved["average"]
        for optimizer, state in zip(optimizers, saved["optimizers"], strict=True):
            optimizer.load_state_dict(state)
    kind = compute_type()
    saved_at = time.monotonic()
    for step in range(done, schedule.steps):
        began = time.monotonic()
        factor = schedule.rate_factor(step)
        for optimizer, rate in zip(optimizers, base_rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
        rounded = step >= schedule.quantised_from * schedule.cycles[0]
        used = {key: _used(value, rounded, kind) for key, value in parameters.items()}
        loss, figures = loss_of(step, _hidden_of(inner, used), used["embed_tokens.weight"])
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        keep = min(_AVERAGE, (step + 1) / (step + 10))
        for key, value in parameters.items():
            average[key].lerp_(value.detach(), 1 - keep)
        last = step + 1 == schedule.steps
        if step % 10 == 0 or last:
            shown = " ".join(f"{key} {value:.3f}" for key, value in figures.items())
            seconds = time.monotonic() - began
            note = f"{name} {step + 1}/{schedule.steps} {shown} {seconds:.2f} s"
            print(note, file=sys.stderr, flush=True)
        if last or time.monotonic() - saved_at > _SAVE_SECONDS:
            states = [optimizer.state_dict() for optimizer in optimizers]
            state = {"done": step + 1, "average": average, "optimizers": states}
            _save({**state, "weights": inner.state_dict()}, checkpoint)
            saved_at = time.monotonic()
    finish(model, average)


def finish(model: Qwen3ForCausalLM, average: dict[str, Tensor]) -> None:
    """Give the model the averaged weights, its matrices rounded to the grid of the export."""
    rounded = {key: to_grid(value) if value.ndim == 2 else value for key, value in average.items()}
    model.model.load_state_dict(rounded)
    model.eval()


def _used(parameter: Tensor, rounded: bool, kind: torch.dtype) -> Tensor:
    if rounded and parameter.ndim == 2:
        parameter = parameter + (to_grid(parameter.detach()) - parameter.detach())
    return parameter.to(kind)


def _hidden_of(inner: nn.Module, weights: dict[str, Tensor]) -> Hidden:
    def hidden(ids: Tensor) -> Tensor:
        arguments = {"input_ids": ids, "use_cache": False}
        states: Tensor = functional_call(inner, weights, (), arguments).last_hidden_state
        return states

    return hidden


def _save(state: dict[str, object], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    torch.save(state, partial)
    partial.replace(path)
