"""Stage 7: what came out, in figures and in MNN.

Losses and acceptance are computed in torch on held-out questions, with weights on the grid of the
export. Acceptance follows from one pass: while a round's earlier guesses are right, its context is
the target's own text, so a guess is accepted where the draft's first choice after that text is the
target's next token.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import Qwen3ForCausalLM

from demo_pair import draft, sampling
from demo_pair.rows import Turn
from demo_pair.shapes import CONTEXT
from demo_pair.subject import Question
from demo_pair.tokenizing import Chat

_MAX_NEW = 128
_PROBED = 8
_LENGTHS = (1, 2, 3, 4)
_LENGTH_BY_KIND = 3
_OTHER_QUESTIONS = ("Hello! Who are you?", "What is the meaning of life?", "What is 17 times 23?")


def check(
    chat: Chat,
    models: dict[str, Qwen3ForCausalLM],
    held_out: list[Turn],
    groups: dict[str, list[Question]],
    out: Path,
) -> dict[str, Any]:
    """Return all figures; end the run if MNN does not do what the recipe promises.

    `held_out` are the teacher's answers to questions kept from training; each of `groups` is
    judged by itself.
    """
    big, small = models["demo-chat"], models["demo-draft"]
    probes = [
        w for group in groups.values() for w in _wordings(group)[:: -(-len(group) // _PROBED)]
    ]
    probes += _OTHER_QUESTIONS
    return {
        "context": CONTEXT,
        "target_cross_entropy_held_out": _answers_cross_entropy(big, chat, held_out),
        "groups": {name: _judge(big, small, chat, group) for name, group in groups.items()},
        "bundles": {name: _probe(chat, out / name, probes) for name in models},
    }


def _wordings(questions: list[Question]) -> list[str]:
    """Choose one wording a question, the next one each time."""
    return [q.wordings[index % len(q.wordings)] for index, q in enumerate(questions)]


def _judge(
    big: Qwen3ForCausalLM, small: Qwen3ForCausalLM, chat: Chat, questions: list[Question]
) -> dict[str, Any]:
    texts = _greedy_texts(big, chat, _wordings(questions))
    divergence, entropy, right = _agreement(big, small, texts)
    by_kind: dict[str, list[list[bool]]] = {}
    for question, hits in zip(questions, right, strict=True):
        by_kind.setdefault(question.kind.name, []).append(hits)
    return {
        "prompts": len(questions),
        "tokens": sum(map(len, right)),
        "kl": divergence,
        "cross_entropy": entropy,
        "acceptance": {length: acceptance(right, length) for length in _LENGTHS},
        "mean_by_kind": {
            kind: acceptance(hits, _LENGTH_BY_KIND)["mean"] for kind, hits in by_kind.items()
        },
    }


def acceptance(right: Sequence[Sequence[bool]], length: int) -> dict[str, Any]:
    """Play rounds of `length` guesses over texts, given where the draft guesses right.

    `by_position[i]` is the share of rounds whose guess i was kept; a round at a text's end counts
    only the guesses that fit. `mean` is kept over guessed.
    """
    kept, guessed = [0] * length, [0] * length
    rounds = emitted = 0
    for text in right:
        place = 0
        while place < len(text):
            window = text[place : place + length]
            good = next((i for i, hit in enumerate(window) if not hit), len(window))
            for index in range(len(window)):
                guessed[index] += 1
                kept[index] += index < good
            step = min(good + 1, len(text) - place)
            rounds, emitted, place = rounds + 1, emitted + step, place + step
    by_position = [a / b if b else 0.0 for a, b in zip(kept, guessed, strict=True)]
    return {
        "by_position": by_position,
        "mean": sum(kept) / sum(guessed),
        "tokens_per_round": emitted / rounds,
    }


def _greedy_texts(
    model: Qwen3ForCausalLM, chat: Chat, wordings: list[str]
) -> list[tuple[list[int], list[int]]]:
    requests = [sampling.Request(wording, chat.ask(wording)) for wording in wordings]
    written = sampling.write(
        model,
        requests,
        prefix=[],
        stop=chat.stop,
        max_new=_MAX_NEW,
        max_prompt=max(len(request.prompt) for request in requests),
        slots=32,
        temperature=0,
        generator=torch.Generator(),
    )
    answers = {
        text.key: [*text.tokens, chat.stop] if text.stopped else text.tokens for text in written
    }
    return [(request.prompt, answers[request.key]) for request in requests]


def _agreement(
    big: Qwen3ForCausalLM, small: Qwen3ForCausalLM, texts: list[tuple[list[int], list[int]]]
) -> tuple[float, float, list[list[bool]]]:
    """Return KL (at the training temperature), cross-entropy, and where the draft is right."""
    divergences: list[Tensor] = []
    entropies: list[Tensor] = []
    right: list[list[bool]] = []
    for prompt, answer in texts:
        ids = torch.tensor([prompt + answer])
        truth = torch.tensor(answer)
        with torch.inference_mode():
            target, guess = (
                model(ids, use_cache=False).logits[0, len(prompt) - 1 : -1]
                for model in (big, small)
            )
        wanted = (target / draft.TEMPERATURE).log_softmax(-1)
        given = (guess / draft.TEMPERATURE).log_softmax(-1)
        divergence = functional.kl_div(given, wanted, reduction="none", log_target=True)
        divergences.append(divergence.sum(-1))
        entropies.append(functional.cross_entropy(guess, truth, reduction="none"))
        right.append((guess.argmax(-1) == truth).tolist())
    return torch.cat(divergences).mean().item(), torch.cat(entropies).mean().item(), right


def _answers_cross_entropy(model: Qwen3ForCausalLM, chat: Chat, turns: list[Turn]) -> float:
    losses = []
    for turn in turns:
        prompt = chat.ask(turn.wordings[0])
        ids = torch.tensor([[*prompt, *turn.answer]])
        with torch.inference_mode():
            logits = model(ids, use_cache=False).logits[0, len(prompt) - 1 : -1]
        losses.append(functional.cross_entropy(logits, torch.tensor(turn.answer), reduction="none"))
    return float(torch.cat(losses).mean())


def _probe(chat: Chat, bundle: Path, questions: list[str]) -> dict[str, Any]:
    asked, answered = bundle.with_suffix(".asked.json"), bundle.with_suffix(".answered.json")
    asked.write_text(json.dumps(questions), encoding="utf-8")
    command = [sys.executable, "-m", "demo_pair.mnn_probe"]
    command += [str(bundle), str(asked), str(answered)]
    folder = Path(__file__).resolve().parent.parent
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    result = json.loads(answered.read_text(encoding="utf-8"))
    asked.unlink()
    answered.unlink()
    if not result["repeats"]:
        raise SystemExit(f"{bundle} gives other logits when run again")
    if result["stop"] != [chat.stop]:
        raise SystemExit(f"{bundle} stops at {result['stop']}, not at {chat.stop}")
    for answer in result["answers"]:
        if answer["prompt"] != chat.ask(answer["question"]):
            raise SystemExit(f"{bundle} tokenizes {answer['question']!r} differently from training")
    return {
        "files": {path.name: _file(path) for path in sorted(bundle.iterdir())},
        "answers": {answer["question"]: answer["text"] for answer in result["answers"]},
    }


def _file(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def render(report: dict[str, Any]) -> str:
    """Write the report as lines for people."""
    lines = [
        f"context length: {report['context']}",
        f"target, cross-entropy of held-out answers: {report['target_cross_entropy_held_out']:.3f}",
    ]
    for name, group in report["groups"].items():
        lines += [
            f"{group['prompts']} {name}, {group['tokens']} tokens:",
            f"  draft, KL to the target (T = {draft.TEMPERATURE}): {group['kl']:.3f}",
            f"  draft, cross-entropy of the target's text: {group['cross_entropy']:.3f}",
        ]
        for length, figures in group["acceptance"].items():
            shares = " ".join(f"{share:.3f}" for share in figures["by_position"])
            lines.append(
                f"  d = {length}: by position {shares}, mean {figures['mean']:.3f},"
                f" tokens a round {figures['tokens_per_round']:.2f}"
            )
        shares = ", ".join(f"{kind} {mean:.2f}" for kind, mean in group["mean_by_kind"].items())
        lines.append(f"  mean at d = {_LENGTH_BY_KIND} by kind: {shares}")
    for name, bundle in report["bundles"].items():
        lines.append(name)
        lines += [
            f"  {file:<16} {entry['size']:>9} {entry['sha256']}"
            for file, entry in bundle["files"].items()
        ]
    lines += [
        f"> {question}\n{answer}"
        for question, answer in report["bundles"]["demo-chat"]["answers"].items()
    ]
    return "\n".join(lines)
