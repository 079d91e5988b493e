"""What a run costs at the prices of the whole benchmark, since one clock reading says little.

On a shared machine the same code takes 0.7 to 1.3 times its usual time. So the forwards of a run
are counted, and each kind costs the median of what that kind took in all runs; the time outside
forwards is added as it was.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from harness.models import Forward


@dataclass(frozen=True, slots=True)
class Run:
    """One text decoded once, after the prompt's forward of the target.

    Attributes:
        emitted: tokens after the first.
        forwards: of target and draft.
        seconds: by the clock, everything.
        drafted: guesses that were verified.
        accepted: how many of them were kept.
    """

    emitted: int
    forwards: tuple[Forward, ...]
    seconds: float
    drafted: int
    accepted: int

    @property
    def lengths(self) -> list[int]:
        """How many guesses each round verified."""
        return [each.tokens - 1 for each in self.forwards if each.role == "target"]

    @property
    def outside(self) -> float:
        """Seconds in no forward."""
        return self.seconds - sum(forward.seconds for forward in self.forwards)


class Prices:
    """Median seconds of each kind of forward.

    A target's kinds are its widths. A draft's are one token, two (after full acceptance), and
    more (catching up), which cost one token's price and so much for each token more.

    Args:
        runs: all of one benchmark, of one pair.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        seen: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
        for run in runs:
            for forward in run.forwards:
                seen[forward.role, forward.tokens].append(forward.seconds)
        median = {kind: statistics.median(seconds) for kind, seconds in seen.items()}
        self.verify = {n: seconds for (role, n), seconds in median.items() if role == "target"}
        self._draft = {n: median["draft", n] for n in (1, 2) if ("draft", n) in median}
        one = self._draft.get(1, 0.0)
        more = [
            (second - one) / (n - 1)
            for (role, n), seconds in seen.items()
            if role == "draft" and n > 2
            for second in seconds
        ]
        self._more = statistics.median(more) if more else 0.0

    def draft(self, tokens: int) -> float:
        """Seconds of a forward of the draft."""
        return self._draft.get(tokens, self._draft.get(1, 0.0) + (tokens - 1) * self._more)

    def seconds(self, run: Run) -> float:
        """Seconds of a run."""
        forwards = sum(
            self.verify[forward.tokens] if forward.role == "target" else self.draft(forward.tokens)
            for forward in run.forwards
        )
        return forwards + run.outside

    def total(self, runs: Iterable[Run]) -> float:
        """Seconds of several runs."""
        return sum(self.seconds(run) for run in runs)

    def __str__(self) -> str:
        one = self.verify[1]
        curve = ", ".join(f"{self.verify[n] / one:.2f}" for n in sorted(self.verify))
        widths = ", ".join(str(n) for n in sorted(self.verify))
        text = f"V(1) {one * 1e3:.2f} ms; V({widths}) / V(1): {curve}"
        if self._draft:
            draft = ", ".join(f"{self.draft(n) / one:.3f}" for n in (1, 2))
            text += f"; D(1, 2) / V(1): {draft}; {self._more / one:.4f} for each token missed"
        return text
