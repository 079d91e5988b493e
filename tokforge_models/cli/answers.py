"""What commands that answer share: what their flags ask for, and how an answer is told."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from tokforge_models.bundle import Settings
from tokforge_models.cli.pairing import as_document
from tokforge_models.errors import UsageError

if TYPE_CHECKING:
    from tokforge_engine import Result
    from tokforge_models.cli.option_groups import Running
    from tokforge_models.resolution.resolution import Overrides, Resolution


def overrides_of(running: Running, d: str | None, *, samples: bool) -> Overrides:
    """What the flags of a command ask for; `samples`: whether tokens are drawn."""
    from tokforge_models.resolution.resolution import Overrides

    length = draft_length(d) if d is not None else None
    both = Settings(threads=running.threads, memory=running.memory, precision=running.precision)
    # A draft stays on the CPU, where a small model is fastest, whatever the target runs on.
    target = Settings(backend=running.backend, sampler="mixed" if samples else None).over(both)
    draft = Settings(threads=running.draft_threads).over(both)
    return Overrides(target=target, draft=draft, d=length)


def draft_length(text: str) -> int | Literal["auto"]:
    """A draft length as a person writes it.

    Raises:
        UsageError: it is neither a number nor ``auto``.
    """
    if text == "auto":
        return "auto"
    from tokforge_engine.settings import MAX_D

    if text in map(str, range(MAX_D + 1)):
        return int(text)
    raise UsageError(
        "-d takes a number of tokens", expected=f"auto or 0 to {MAX_D}", got=repr(text[:20])
    )


def headline(resolution: Resolution) -> str:
    """Who runs with whom and why, in a line."""
    draft = resolution.draft.id if resolution.draft else "no draft"
    return f"{resolution.target.id} with {draft}: {resolution.reason}"


def figures(result: Result) -> str:
    """Counts and times of an answer, in a line."""
    stats = result.stats
    kept = "nothing drafted"
    if stats.drafted:
        kept = f"{stats.accepted} of {stats.drafted} drafted tokens accepted"
    if len(stats.drafters) > 1:
        each = (f"{who.name} {who.accepted} of {who.drafted}" for who in stats.drafters)
        kept += f" ({', '.join(each)})"
    return (
        f"{result.completion_tokens} tokens at {stats.tokens_per_second:.1f} a second, "
        f"{stats.rounds} rounds, {kept}; prefill {stats.prefill_seconds:.3f} s, "
        f"decode {stats.decode_seconds:.3f} s (draft {stats.draft_seconds:.3f}, "
        f"verify {stats.verify_seconds:.3f}, "
        f"other {stats.other_seconds + stats.rollback_seconds:.3f})"
    )


def run_document(result: Result, resolution: Resolution) -> dict[str, Any]:
    """The document of ``run --json``."""
    stats = result.stats
    return {
        "text": result.text,
        "token_ids": list(result.token_ids),
        "finish_reason": result.finish_reason,
        "usage": {
            "prompt_tokens": result.prompt_tokens,
            "completion_tokens": result.completion_tokens,
        },
        "pairing": as_document(resolution),
        "seed": result.seed,
        "stats": {
            "rounds": stats.rounds,
            "drafted": stats.drafted,
            "accepted": stats.accepted,
            "draft_forwards": stats.draft_forwards,
            "drafters": [asdict(count) for count in stats.drafters],
            "accepted_by_position": list(stats.accepted_by_position),
            "drafted_by_position": list(stats.drafted_by_position),
            "prompt_reused": stats.reused,
            "prompt_prefilled": stats.prefilled,
            "cache_forgotten": stats.forgotten,
            "tokens_per_second": stats.tokens_per_second,
            "prefill_seconds": stats.prefill_seconds,
            "decode_seconds": stats.decode_seconds,
            "draft_seconds": stats.draft_seconds,
            "verify_seconds": stats.verify_seconds,
            "other_seconds": stats.other_seconds + stats.rollback_seconds,
        },
    }
