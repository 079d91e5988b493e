"""Write text with many sequences at once.

`write` keeps a fixed number of slots busy. Every slot feeds one token a step, first its prompt and
then what it sampled, so sequences start and end on their own and no step waits for the longest one.
It runs the modules of a Llama- or Qwen3-shaped transformers model directly, because their own
`generate` pads every sequence to the longest of its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Request:
    """A prompt to continue: its key names it in the output.

    With `frames`, the text is a form to fill in: it begins with the first frame, every sampled
    `end` is followed by the next one, and the last `end` ends it.
    """

    key: str
    prompt: list[int]
    frames: tuple[list[int], ...] = ()
    end: int = -1


@dataclass(frozen=True)
class Written:
    """What was written for a request, frames included, without the stop token."""

    key: str
    tokens: list[int]
    stopped: bool


class _Slot:
    """A request on its way: `ids` is its prompt and text, of which the model has seen `fed`."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.frames = iter(request.frames)
        self.ids = [*request.prompt, *next(self.frames, [])]
        self.fed = 0

    def next_token(self) -> int:
        return self.ids[self.fed]

    def text(self) -> list[int]:
        return self.ids[len(self.request.prompt) :]

    def add(self, token: int) -> bool:
        """Add a sampled token and what the form has after it; tell whether the form is full."""
        self.ids.append(token)
        if token != self.request.end:
            return False
        frame = next(self.frames, None)
        self.ids += frame or []
        return frame is None


class _SlotModel:
    """One decoding step for all slots, each at its own position.

    Keys and values live in [slots, kv_heads, capacity, head_dim] tensors. A slot that is reused
    needs no clearing: the mask shows it only the positions that its new sequence has written.
    """

    def __init__(self, model: nn.Module, prefix: list[int], slots: int, capacity: int) -> None:
        self.model = model
        config = model.config
        self.kv_heads: int = config.num_key_value_heads
        self.heads: int = config.num_attention_heads
        self.head_dim: int = config.head_dim
        shape = (slots, self.kv_heads, len(prefix) + capacity, self.head_dim)
        dtype = next(model.parameters()).dtype
        layers = config.num_hidden_layers
        self.keys = [torch.zeros(shape, dtype=dtype) for _ in range(layers)]
        self.values = [torch.zeros(shape, dtype=dtype) for _ in range(layers)]
        self.columns = torch.arange(len(prefix) + capacity)
        self.rows = torch.arange(slots)
        self.start = len(prefix)
        if prefix:
            self._start_with(prefix)

    def _start_with(self, prefix: list[int]) -> None:
        with torch.inference_mode():
            cache = self.model(input_ids=torch.tensor([prefix]), use_cache=True).past_key_values
        for index, layer in enumerate(cache.layers):
            self.keys[index][:, :, : self.start] = layer.keys
            self.values[index][:, :, : self.start] = layer.values

    def step(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Return float32 logits [slots, vocabulary] for one token a slot."""
        inner = self.model.model
        hidden = inner.embed_tokens(tokens)[:, None]
        cosine, sine = inner.rotary_emb(hidden, positions[:, None])
        used = int(positions.max()) + 1
        mask = (self.columns[None, :used] <= positions[:, None])[:, None, None]
        for index, layer in enumerate(inner.layers):
            normed = layer.input_layernorm(hidden)
            turn = cosine[:, None], sine[:, None]
            hidden = hidden + self._attend(
                index, layer.self_attn, normed, turn=turn, positions=positions, mask=mask
            )
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
        logits: Tensor = self.model.lm_head(inner.norm(hidden[:, 0]))
        return logits.float()

    def _attend(
        self,
        index: int,
        block: nn.Module,
        hidden: Tensor,
        *,
        turn: tuple[Tensor, Tensor],
        positions: Tensor,
        mask: Tensor,
    ) -> Tensor:
        slots = hidden.shape[0]
        query = block.q_proj(hidden).view(slots, self.heads, 1, self.head_dim)
        key = block.k_proj(hidden).view(slots, self.kv_heads, 1, self.head_dim)
        value = block.v_proj(hidden).view(slots, self.kv_heads, self.head_dim)
        if hasattr(block, "q_norm"):
            query, key = block.q_norm(query), block.k_norm(key)
        query, key = _rotate(query, *turn), _rotate(key, *turn)
        self.keys[index][self.rows, :, positions] = key[:, :, 0]
        self.values[index][self.rows, :, positions] = value
        used = mask.shape[-1]
        # The query heads that share a key head stand where query positions usually do.
        grouped = query.view(slots, self.kv_heads, -1, self.head_dim)
        mixed = nn.functional.scaled_dot_product_attention(
            grouped, self.keys[index][:, :, :used], self.values[index][:, :, :used], attn_mask=mask
        )
        projected: Tensor = block.o_proj(mixed.reshape(slots, 1, -1))
        return projected


def _rotate(states: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    left, right = states.chunk(2, dim=-1)
    return states * cosine + torch.cat((-right, left), dim=-1) * sine


def write(
    model: nn.Module,
    requests: Iterable[Request],
    *,
    prefix: list[int],
    stop: int,
    max_new: int,
    max_prompt: int,
    slots: int,
    temperature: float,
    generator: torch.Generator,
    top_k: int = 40,
    progress: Callable[[int], None] = lambda _tokens: None,
) -> Iterator[Written]:
    """Yield each request's continuation as it ends, in the order of ending.

    `prefix` comes before every prompt and is computed once. Prompts longer than `max_prompt` are an
    error of the caller. Temperature 0 is greedy.
    """
    queue = iter(requests)
    busy: list[_Slot | None] = []
    for request in queue:
        busy.append(_Slot(request))
        if len(busy) == slots:
            break
    if not busy:
        return
    stepper = _SlotModel(model, prefix, len(busy), max_prompt + max_new)
    while any(slot is not None for slot in busy):
        tokens = torch.tensor([slot.next_token() if slot else stop for slot in busy])
        positions = torch.tensor([stepper.start + (slot.fed if slot else 0) for slot in busy])
        with torch.inference_mode():
            logits = stepper.step(tokens, positions)
            choices = _choose(logits, temperature, top_k, generator).tolist()
        emitted = 0
        for index, slot in enumerate(busy):
            if slot is None:
                continue
            slot.fed += 1
            if slot.fed < len(slot.ids):
                continue
            emitted += 1
            stopped = choices[index] == stop or slot.add(choices[index])
            if not stopped and len(slot.text()) < max_new:
                continue
            yield Written(slot.request.key, slot.text(), stopped)
            upcoming = next(queue, None)
            busy[index] = _Slot(upcoming) if upcoming else None
        progress(emitted)


def _choose(logits: Tensor, temperature: float, top_k: int, generator: torch.Generator) -> Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    best, indices = logits.topk(top_k)
    weights = torch.softmax(best / temperature, -1)
    drawn = torch.multinomial(weights, 1, generator=generator)
    return indices.gather(-1, drawn)[:, 0]
