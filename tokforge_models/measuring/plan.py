"""What a bench runs, and in which order; nothing here runs anything.

Ways of decoding are compared with each other, so they take turns: each of a group of prompts is
decoded in every way before the next group, and each repetition begins with another way. A device
that slows down then slows all of them. Two prompts in a row always differ, else the second would
find the first in the cache and no prefill could be measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tokforge_models.measuring.workloads import Workload

Drafter = Literal["none", "model", "lookup", "any"]

WARM_UP_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Way:
    """A way of decoding.

    Attributes:
        drafter: who may guess.
        d: draft length, or ``auto``; 0 is plain decoding.
    """

    drafter: Drafter
    d: int | Literal["auto"]

    @property
    def name(self) -> str:
        """As tables call it: ``plain``, ``d 3``, ``lookup``, ``auto``; ``auto of the draft`` where
        the context may not guess.
        """
        if self.drafter == "none":
            return "plain"
        if self.drafter == "lookup":
            return "lookup"
        if self.d == "auto":
            return "auto" if self.drafter == "any" else "auto of the draft"
        return f"d {self.d}"


PLAIN = Way("none", 0)
LOOKUP = Way("lookup", "auto")
AUTO = Way("any", "auto")


def ways_for(lengths: Sequence[int], *, draft: bool, lookup: bool) -> tuple[Way, ...]:
    """Every way that a pair can be decoded in.

    Args:
        lengths: draft lengths of the fixed ways.
        draft: whether there is a draft model.
        lookup: whether the context may draft.
    """
    ways = [PLAIN]
    if draft:
        ways += [Way("model", d) for d in lengths]
    if lookup:
        ways.append(LOOKUP)
    if draft:
        ways.append(AUTO)
    return tuple(ways)


@dataclass(frozen=True, slots=True)
class Step:
    """One prompt to decode once.

    Attributes:
        repetition: counted from 0.
        workload: its name.
        prompt: its place in the workload.
        text: the prompt itself.
        way: of decoding.
    """

    repetition: int
    workload: str
    prompt: int
    text: str
    way: Way


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured of one pair.

    Attributes:
        ways: of decoding, plain among them.
        workloads: what is decoded.
        repetitions: how often.
        tokens: most tokens of each answer.
    """

    ways: tuple[Way, ...]
    workloads: tuple[Workload, ...]
    repetitions: int
    tokens: int

    def __len__(self) -> int:
        prompts = sum(len(workload.prompts) for workload in self.workloads)
        return self.repetitions * len(self.ways) * prompts

    def warm_up(self) -> Iterator[Step]:
        """Each way once, on a prompt that is short; nothing of it counts."""
        text = min((text for each in self.workloads for text in each.prompts), key=len)
        for way in self.ways:
            yield Step(0, "warm-up", 0, text, way)

    def steps(self) -> Iterator[Step]:
        """Everything that counts, in the order in which it is to run."""
        groups = self._groups()
        for repetition in range(self.repetitions):
            first = repetition % len(self.ways)
            turn = (*self.ways[first:], *self.ways[:first])
            for group in groups:
                for way in turn:
                    for workload, number, text in group:
                        yield Step(repetition, workload, number, text, way)

    def _groups(self) -> list[list[tuple[str, int, str]]]:
        """The first prompts of all workloads, then their second ones, and so on."""
        most = max(len(workload.prompts) for workload in self.workloads)
        groups = [
            [
                (workload.name, number, workload.prompts[number])
                for workload in self.workloads
                if number < len(workload.prompts)
            ]
            for number in range(most)
        ]
        if any(len(group) == 1 for group in groups):
            # Alone in its group a prompt would follow itself.
            return [[text for group in groups for text in group]]
        return groups
