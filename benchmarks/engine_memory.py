"""The memory estimate beside what a worker really takes at its peak.

    python benchmarks/engine_memory.py TARGET [DRAFT] [--memory low] [--words 330]

TARGET and DRAFT are bundles' directories; the words make a prompt, which is answered with d = 3 and
with auto. Linux only, since the peak is read from /proc.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tokforge_engine import GenerateOptions, ModelSpec, RuntimeSettings, Session
from tokforge_models.measuring.runner import peak_bytes

WORDS = "sea cat tree house river blue "


def main() -> None:
    """Load, answer twice, print a row of the table in docs/engine.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("draft", type=Path, nargs="?")
    parser.add_argument("--memory", default="low")
    parser.add_argument("--words", type=int, default=330, help="times six words; about 6 tokens")
    asked = parser.parse_args()
    settings = RuntimeSettings(memory=asked.memory, threads=1)
    tokens = 6 * asked.words + 60
    specs = [
        ModelSpec(path, settings, context_length=tokens)
        for path in (asked.target, asked.draft)
        if path
    ]
    with Session(*specs, lookup=True, load_timeout=600, force=True) as session:
        for d in (3, "auto"):
            options = GenerateOptions(max_tokens=24, d=d, ignore_stop_tokens=True)
            generation = session.generate(WORDS * asked.words, options)
            for _ in generation:
                pass
        peak, needed = peak_bytes(session.pid), session.needed_bytes
    if peak is None:
        raise SystemExit("this system does not tell a process's peak of memory")
    names = " with ".join(spec.label for spec in specs)
    read = generation.result.prompt_tokens
    print(
        f"| {names} | {asked.memory} | {read:,} | {peak / 1e6:,.0f} MB | {needed / 1e6:,.0f} MB | "
        f"{needed / peak - 1:+.0%} |"
    )


if __name__ == "__main__":
    main()
