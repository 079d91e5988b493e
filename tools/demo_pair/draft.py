"""Stage 5: the draft learns from the target's logits on the target's own text.

The loss is the model card's: 80 % Kullback-Leibler divergence to the target at temperature 1.5 and
20 % cross-entropy to the target's text. The target's logits are computed once: the best `KEPT` of
each position, and what all the others weigh together.
"""

from __future__ import annotations

import copy
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import Qwen3ForCausalLM

from demo_pair import rows
from demo_pair.rows import Rows, Turn
from demo_pair.tokenizing import Chat
from demo_pair.training import Hidden, Loss, compute_type

TEMPERATURE = 1.5
DIVERGENCE_SHARE = 0.8
KEPT = 64
_PIECE = 128


@dataclass(frozen=True)
class Scored:
    """Rows and, for each learned position in row order, what the target thinks.

    `best` int16 and `logits` float16 [positions, KEPT]; `rest` float32 [positions], the logarithm
    of the summed weight of the other logits at `TEMPERATURE`.
    """

    rows: Rows
    best: Tensor
    logits: Tensor
    rest: Tensor
    starts: Tensor

    def save(self, path: Path) -> None:
        """Write it whole or not at all."""
        partial = path.with_suffix(".part")
        torch.save({**vars(self), "rows": vars(self.rows)}, partial)
        partial.replace(path)

    @classmethod
    def load(cls, path: Path) -> Scored:
        """Read what `save` wrote."""
        saved = torch.load(path, weights_only=True)
        return cls(**{**saved, "rows": Rows(**saved["rows"])})


def score(
    target: Qwen3ForCausalLM, chat: Chat, turns: list[Turn], length: int, seed: int
) -> Scored:
    """Pack the target's own text into rows and keep its logits where the answers are."""
    packed = _pack(chat, turns, length, seed)
    fast = copy.deepcopy(target).to(compute_type())
    best, logits, rest = [], [], []
    batch = max(1, 8192 // length)
    with torch.inference_mode():
        for start in range(0, len(packed.ids), batch):
            states = fast.model(input_ids=packed.ids[start : start + batch], use_cache=False)
            learned = packed.learned[start : start + batch, 1:]
            full = fast.lm_head(states.last_hidden_state[:, :-1][learned]).float()
            top = full.topk(KEPT)
            others = full.scatter(-1, top.indices, -torch.inf) / TEMPERATURE
            best.append(top.indices.to(torch.int16))
            logits.append(top.values.half())
            rest.append(others.logsumexp(-1))
            if start // batch % 20 == 0:
                print(f"scoring: row {start} of {len(packed.ids)}", file=sys.stderr, flush=True)
    counts = packed.learned[:, 1:].sum(-1)
    starts = torch.cat((torch.zeros(1, dtype=counts.dtype), counts.cumsum(0)))
    return Scored(packed, torch.cat(best), torch.cat(logits), torch.cat(rest), starts)


def _pack(chat: Chat, turns: list[Turn], length: int, seed: int) -> Rows:
    """Use every turn once as the first of a row, so that none is left out."""
    dice = random.Random(seed)
    shuffled = dice.sample(turns, len(turns))
    parts = [
        rows.build(chat, turns, (1, length), f"{seed}:{index}", first=turn)
        for index, turn in enumerate(shuffled)
    ]
    return Rows(torch.cat([p.ids for p in parts]), torch.cat([p.learned for p in parts]))


def loss_on(scored: Scored, count: int, seed: int) -> Loss:
    """The model card's loss over `count` rows a step; each epoch is a new order of the rows."""
    total = len(scored.rows.ids)
    per_epoch = max(1, total // count)

    def loss(step: int, hidden: Hidden, output: Tensor) -> tuple[Tensor, dict[str, float]]:
        epoch, place = divmod(step, per_epoch)
        order = torch.randperm(total, generator=torch.Generator().manual_seed(seed + epoch))
        chosen = order[place * count : (place + 1) * count]
        ids, learned = scored.rows.ids[chosen], scored.rows.learned[chosen][:, 1:]
        starts = scored.starts.tolist()
        places = torch.cat([torch.arange(starts[row], starts[row + 1]) for row in chosen.tolist()])
        lesson = _Lesson(
            ids[:, 1:][learned],
            scored.best[places].long(),
            scored.logits[places].float() / TEMPERATURE,
            scored.rest[places],
        )
        value, divergence, entropy = _InPieces.apply(hidden(ids)[:, :-1][learned], output, lesson)
        return value, {"KL": divergence.item(), "CE": entropy.item()}

    return loss


@dataclass(frozen=True)
class _Lesson:
    """For each position: the target's token, its best tokens, their warm logits, the others'."""

    token: Tensor
    best: Tensor
    logits: Tensor
    rest: Tensor

    def piece(self, start: int, end: int) -> _Lesson:
        return _Lesson(*(value[start:end] for value in vars(self).values()))


class _InPieces(torch.autograd.Function):  # type: ignore[misc]
    """The loss with its gradient, a few positions at a time.

    The logits of a whole batch are far larger than a draft's layers: kept in the processor's cache,
    they cost a third.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, output: Tensor, lesson: _Lesson
    ) -> tuple[Tensor, Tensor, Tensor]:
        count = len(states)
        of_states, of_output = [], torch.zeros_like(output, dtype=torch.float32)
        divergences, entropies = torch.zeros(()), torch.zeros(())
        for start in range(0, count, _PIECE):
            end = min(start + _PIECE, count)
            with torch.enable_grad():
                piece = states[start:end].detach().requires_grad_()
                matrix = output.detach().requires_grad_()
                divergence, entropy = _losses((piece @ matrix.T).float(), lesson.piece(start, end))
                value = DIVERGENCE_SHARE * divergence + (1 - DIVERGENCE_SHARE) * entropy
                for_piece, for_matrix = torch.autograd.grad(value / count, (piece, matrix))
            of_states.append(for_piece)
            of_output += for_matrix
            divergences += divergence.detach()
            entropies += entropy.detach()
        ctx.save_for_backward(torch.cat(of_states), of_output.to(output.dtype))
        divergences, entropies = divergences / count, entropies / count
        total = DIVERGENCE_SHARE * divergences + (1 - DIVERGENCE_SHARE) * entropies
        ctx.mark_non_differentiable(divergences, entropies)
        return total, divergences, entropies

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        of_states, of_output = ctx.saved_tensors
        return of_states * gradients[0], of_output * gradients[0], None


def _losses(student: Tensor, lesson: _Lesson) -> tuple[Tensor, Tensor]:
    """Return summed KL divergence at `TEMPERATURE` and summed cross-entropy, both in nats.

    All tokens outside the target's best count as one outcome.
    """
    entropy = functional.cross_entropy(student, lesson.token, reduction="sum")
    warm = student / TEMPERATURE
    others = warm.scatter(-1, lesson.best, -torch.inf).logsumexp(-1, keepdim=True)
    guess = torch.cat((warm.gather(-1, lesson.best), others), -1).log_softmax(-1)
    truth = torch.cat((lesson.logits, lesson.rest[:, None]), -1).log_softmax(-1)
    divergence = functional.kl_div(guess, truth, reduction="sum", log_target=True)
    return divergence, entropy
