"""Decode what a plan says, one text after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from tokforge_engine.errors import InvalidRequest
from tokforge_engine.generation import GenerateOptions, Piece, Result
from tokforge_models.files.disk import read_small
from tokforge_models.measuring.plan import WARM_UP_TOKENS, Plan, Step
from tokforge_models.measuring.report import Sample, Skipped

_MAX_STATUS_BYTES = 1 << 16


class Answering(Iterator[Piece], Protocol):
    """A running answer, as `tokforge_engine.Generation`."""

    @property
    def result(self) -> Result:
        """The finished answer."""
        ...


Generate = Callable[[str, GenerateOptions], Answering]
"""As `tokforge_engine.Session.generate`."""


def measure(
    generate: Generate, plan: Plan, clock: Callable[[], float] = time.perf_counter
) -> Iterator[Sample | Skipped]:
    """Warm up, then decode every step of a plan.

    A workload whose prompt does not fit into the model's context is left out from then on.

    Args:
        generate: answers a prompt.
        plan: what to decode.
        clock: seconds from any fixed point, monotonic.

    Raises:
        EngineError: a model failed.
    """
    for step in plan.warm_up():
        decode(generate, step, min(WARM_UP_TOKENS, plan.tokens), clock)
    left_out: set[str] = set()
    for step in plan.steps():
        if step.workload in left_out:
            continue
        try:
            yield decode(generate, step, plan.tokens, clock)
        except InvalidRequest as error:
            left_out.add(step.workload)
            yield Skipped(step.workload, error.message)


def decode(generate: Generate, step: Step, tokens: int, clock: Callable[[], float]) -> Sample:
    """Decode one prompt once.

    Args:
        generate: answers a prompt.
        step: the prompt, and the way of decoding.
        tokens: most tokens of the answer.
        clock: seconds from any fixed point, monotonic.

    Raises:
        EngineError: the model failed.
    """
    drafter = "any" if step.way.drafter == "none" else step.way.drafter
    options = GenerateOptions(max_tokens=tokens, d=step.way.d, drafter=drafter)
    began = clock()
    answering = generate(step.text, options)
    first: float | None = None
    for piece in answering:
        if first is None and piece.tokens:
            first = clock()
    result = answering.result
    return Sample(
        step=replace(step, text=""),
        token_ids=result.token_ids,
        prompt_tokens=result.prompt_tokens,
        first_token_seconds=(clock() if first is None else first) - began,
        stats=result.stats,
    )


def peak_bytes(pid: int) -> int | None:
    """Most memory that a process has held so far; None where the system does not tell.

    Source: ``VmHWM`` of /proc on Linux and Android.
    """
    try:
        status = read_small(Path(f"/proc/{pid}/status"), _MAX_STATUS_BYTES).decode()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return None
