"""What a draft's sureness tells of whether its guess is right, and what it takes to know it.

    python benchmarks/draft_sureness.py --bundles build/bench

SmolLM2 at 8 bits samples texts, and a draft guesses each of their tokens. Two measures of how sure
it is, in eight degrees each: the likeliest token's probability, and the engine's own, how few
tokens have a logit that is nearly the largest. Of each: bits of information about whether the guess
is the text's token, and the median time. Beside them, for each of the engine's degrees, how often a
guess is right and how often the draft believes that it is.
"""

from __future__ import annotations

import argparse
import statistics
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING

from engine_auto import texts_of
from harness.models import quiet
from harness.pairs import Pair
from harness.texts import Text

from tokforge_engine.choice import greedy
from tokforge_engine.drafting import DraftModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BORDERS = (0.15, 0.3, 0.45, 0.6, 0.75, 0.88, 0.96)
DRAFTS = {"4-bit": "smollm2-4bit", "few-layers": "smollm2-draft"}


@dataclass(frozen=True, slots=True)
class Guess:
    """One guess, how sure the draft was by both measures, and the seconds that either took."""

    right: bool
    probability: float
    degree: int
    probability_seconds: float
    degree_seconds: float


class Probability:
    """The likeliest token's probability, as fast as it can be had with one scratch for all."""

    def __init__(self, vocabulary: int) -> None:
        import numpy as np

        self._scratch = np.empty(vocabulary, np.float32)

    def __call__(self, row: NDArray[np.float32]) -> float:
        """From logits of shape [vocabulary]."""
        import numpy as np

        np.subtract(row, row.max(), out=self._scratch)
        return 1.0 / float(np.exp(self._scratch, out=self._scratch).sum())


def guesses(draft: DraftModel, text: Text, probability: Probability) -> list[Guess]:
    """A guess for each token of a text, after all before it; the measures in turn go first."""
    rows: list[NDArray[np.float32]] = []

    def choose(row: NDArray[np.float32], _ahead: int) -> int:
        rows[:] = [row]
        return greedy(row)

    draft.choose = choose
    draft.keep(0)
    found = []
    context = list(text.prompt)
    for token in text.answer:
        guess = next(draft.guesses(context))
        times = [time.perf_counter()]
        if len(found) % 2:
            believed = probability(rows[0])
            times.append(time.perf_counter())
            degree = draft.sure()
        else:
            degree = draft.sure()
            times.append(time.perf_counter())
            believed = probability(rows[0])
        times.append(time.perf_counter())
        first, second = times[1] - times[0], times[2] - times[1]
        spent = (first, second) if len(found) % 2 else (second, first)
        found.append(Guess(guess == token, believed, degree, *spent))
        context.append(token)
        draft.keep(len(context) - 1)
    return found


def entropy(rights: Sequence[bool]) -> float:
    """Bits that it takes to tell whether one of these is right."""
    share = sum(rights) / len(rights)
    return -sum(part * log2(part) for part in (share, 1 - share) if part)


def information(degrees: Sequence[int], rights: Sequence[bool]) -> float:
    """Bits that a degree tells of whether a guess is right."""
    by_degree: defaultdict[int, list[bool]] = defaultdict(list)
    for degree, right in zip(degrees, rights, strict=True):
        by_degree[degree].append(right)
    rest = sum(len(some) * entropy(some) for some in by_degree.values()) / len(rights)
    return entropy(rights) - rest


def show(name: str, found: Sequence[Guess]) -> None:
    """Print what the guesses of one draft tell."""
    rights = [each.right for each in found]
    by_probability = [bisect_right(BORDERS, each.probability) for each in found]
    by_degree = [each.degree for each in found]
    print(f"{name}: {len(found)} guesses, {sum(rights) / len(rights):.2f} right")
    for measure, degrees, seconds in (
        ("probability", by_probability, [each.probability_seconds for each in found]),
        ("engine's", by_degree, [each.degree_seconds for each in found]),
    ):
        print(
            f"    {measure:12} {information(degrees, rights):.3f} bits, "
            f"{statistics.median(seconds) * 1e6:.0f} us"
        )
    for degree in range(8):
        some = [each for each in found if each.degree == degree]
        if some:
            right = statistics.fmean(each.right for each in some)
            believed = statistics.fmean(each.probability for each in some)
            print(
                f"    degree {degree}: {len(some) / len(found):.2f} of all, "
                f"{right:.2f} right, believed {believed:.2f}"
            )


def main() -> None:
    """Measure both drafts and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundles", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=3, help="of each workload")
    parser.add_argument("--tokens", type=int, default=128, help="of each text")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    quiet()

    for name, bundle in DRAFTS.items():
        pair = Pair.load(asked.bundles / "smollm2-8bit", asked.bundles / bundle, asked.threads)
        assert pair.draft is not None
        texts = texts_of(pair, asked.texts, asked.tokens)
        probability = Probability(pair.target.vocabulary)
        show(
            name,
            [
                guess
                for part in texts.values()
                for text in part
                for guess in guesses(pair.draft, text, probability)
            ],
        )


if __name__ == "__main__":
    main()
