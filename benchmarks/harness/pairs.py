"""A pair as a session loads it, in this process and watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.models import Forward, WatchedModel, load
from harness.pricing import Run
from harness.scripted import Quality, ScriptedDraft
from harness.texts import Text, run
from tokforge_engine.auto import AutoPolicy
from tokforge_engine.costs import Costs, measure_costs
from tokforge_engine.drafting import SCORED, DraftModel
from tokforge_engine.learned import Learned
from tokforge_engine.lookup import Lookup
from tokforge_engine.policy import FixedLength, Policy

MOST = 7
"""The largest draft length, as sessions have it by default."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of decoding, and its policy, which goes on learning from text to text."""

    name: str
    policy: Policy


@dataclass(frozen=True, slots=True)
class Pair:
    """A target with its drafters, and what their forwards cost at load.

    Attributes:
        target: watched.
        draft: a draft model, or None.
        costs: as a session measures them.
        forwards: of the run that runs.
        lookup: drafts from the context.
    """

    target: WatchedModel
    draft: DraftModel | None
    costs: Costs
    forwards: list[Forward]
    lookup: Lookup = field(default_factory=Lookup)

    @classmethod
    def load(
        cls, target: Path, draft: Path | None, threads: int, quality: Quality | None = None
    ) -> Pair:
        """Load bundles and measure them; with a quality, the draft's guesses are scripted."""
        forwards: list[Forward] = []
        big = load(target, threads, widths=MOST + 1)
        small = load(draft, threads) if draft else None
        drafter = None
        if small is not None:
            scores = small.prepare(SCORED)
            watched = WatchedModel(small, "draft", forwards)
            drafter = (
                ScriptedDraft(watched, big.vocabulary, quality)
                if quality
                else DraftModel(watched, big.vocabulary, scores=scores)
            )
        costs = measure_costs(big, small, MOST)
        return cls(WatchedModel(big, "target", forwards), drafter, costs, forwards)

    def fixed(self, drafter: DraftModel | Lookup | None, d: int) -> Policy:
        """The same length in each round."""
        return FixedLength(drafter, d)

    def auto(
        self, *, model: bool = True, lookup: bool = False, learned: Learned | None = None
    ) -> AutoPolicy:
        """The best length in each round, knowing nothing yet unless `learned` does."""
        draft = self.draft if model else None
        return AutoPolicy(self.costs, draft, self.lookup if lookup else None, learned)

    def run(self, text: Text, number: int, policy: Policy) -> Run:
        """Decode a text with a policy; `number` seeds a scripted draft."""
        if isinstance(self.draft, ScriptedDraft):
            self.draft.follow(text, number)
        return run(text, self.target, policy, self.draft, self.forwards)


def in_turn(
    pair: Pair,
    ways: list[Way],
    texts: list[Text],
    shuffle: Callable[[list[Way]], None],
) -> dict[str, list[Run]]:
    """Decode each text in each way, the ways in another order for each text."""
    runs: dict[str, list[Run]] = {way.name: [] for way in ways}
    for number, text in enumerate(texts):
        order = list(ways)
        shuffle(order)
        for way in order:
            runs[way.name].append(pair.run(text, number, way.policy))
    return runs
