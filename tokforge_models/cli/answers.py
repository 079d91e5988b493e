"""What commands that answer share: what their flags ask for, and how an answer is told."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from tokforge_models.bundle import Settings
from tokforge_models.cli.pairing import as_document
from tokforge_models.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokforge_engine import Generation, Result, Said
    from tokforge_models.cli.option_groups import Running
    from tokforge_models.resolution.resolution import Overrides, Resolution


def overrides_of(running: Running, d: str | None, *, samples: bool) -> Overrides:
    """What the flags of a command ask for; `samples`: whether tokens are drawn."""
    from tokforge_models.resolution.resolution import Overrides

    length = draft_length(d) if d is not None else None
    both = Settings(
        threads=running.threads,
        precision=running.precision,
        memory=running.memory,
        dynamic_option=running.dynamic_option,
    )
    # A draft stays on the CPU, where a small model is fastest, whatever the target runs on.
    target = Settings(backend=running.backend, sampler="mixed" if samples else None).over(both)
    draft = Settings(threads=running.draft_threads).over(both)
    return Overrides(target=target, draft=draft, d=length)


def draft_length(text: str, *, most: int | None = None, word: str = "-d") -> int | Literal["auto"]:
    """A draft length as a person writes it.

    Args:
        text: what was written.
        most: the longest that may be; None means the engine's own limit.
        word: what it was written after.

    Raises:
        UsageError: it is neither ``auto`` nor a number in range.
    """
    if text == "auto":
        return "auto"
    from tokforge_engine.settings import MAX_D

    most = MAX_D if most is None else most
    if text in map(str, range(most + 1)):
        return int(text)
    raise UsageError(
        f"{word} takes a number of tokens", expected=f"auto or 0 to {most}", got=repr(text[:20])
    )


class Telling:
    """An answer as it comes: iterate for its parts, each with who guessed it.

    Thoughts are told from the answer, whose first line follows them directly.

    Attributes:
        raw: everything so far as the model said it, with the marks around thoughts.
    """

    def __init__(self, generation: Generation) -> None:
        self.raw = ""
        self._generation = generation
        self._said: list[Said] = []

    def __iter__(self) -> Iterator[tuple[Said, str | None]]:
        from tokforge_engine import ThinkSplitter

        splitter: ThinkSplitter | None = None
        for piece in self._generation:
            splitter = splitter or ThinkSplitter(thinking=self._generation.in_thought)
            for run in piece.runs:
                self.raw += run.text
                for said in splitter.add(run.text):
                    yield from self._tell(said, run.drafted_by)
        for said in splitter.finish() if splitter else ():
            yield from self._tell(said, None)

    def answer(self) -> Answer:
        """The whole, after the last part."""
        text, thoughts = (
            "".join(said.text for said in self._said if said.thought is thought)
            for thought in (False, True)
        )
        return Answer(self._generation.result, text, thoughts.strip("\n") or None)

    def _tell(self, said: Said, drafted_by: str | None) -> Iterator[tuple[Said, str | None]]:
        if not said.thought and self._said and all(before.thought for before in self._said):
            said = replace(said, text=said.text.lstrip("\n"))
        if said.text:
            self._said.append(said)
            yield said, drafted_by


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer.

    Attributes:
        result: as the engine gives it.
        text: what was said without the thoughts before it.
        reasoning: the thoughts; None where there were none.
    """

    result: Result
    text: str
    reasoning: str | None


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


def run_document(answer: Answer, resolution: Resolution) -> dict[str, Any]:
    """The document of ``run --json``."""
    result, stats = answer.result, answer.result.stats
    return {
        "text": answer.text,
        "reasoning": answer.reasoning,
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
