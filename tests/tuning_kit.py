"""Devices whose costs are known, on a clock that nobody waits for, and searches on them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tokforge_engine.costs import Costs
from tokforge_models.bundle import Settings
from tokforge_models.measuring.plan import PLAIN, Way
from tokforge_models.measuring.searching import next_trial
from tokforge_models.measuring.trials import (
    LENGTHS,
    Candidate,
    Cell,
    Decode,
    Decoded,
    Failed,
    Judge,
    Judged,
    Known,
    Load,
    Loaded,
    Outcome,
    Question,
    Setup,
    Trial,
    Tried,
)
from virtual_pair import FLAT, STEEP

WORKLOADS = ("prose", "code")
SHIPPED = Settings(backend="cpu", threads=1, precision="low", memory="low")
DRAFT = Settings(backend="cpu", threads=1, precision="low", memory="low")
REFERENCE = replace(SHIPPED, precision="high", memory="normal")


@dataclass
class Device:
    """A device that answers trials.

    Attributes:
        costs: V and D of the pair as shipped, in any unit of seconds.
        chance: of a guess to be kept, where those before it were.
        target_speed: times as fast as shipped, by the target's settings.
        draft_speed: the same of the draft.
        divergence: of the target's number formats; others compute as shipped does.
        lookup: speed of lookup over plain decoding.
        auto: speed of auto over the best that it may choose among.
        slowing: by how much each second slows what follows, to at most twice the time.
        noise: standard deviation of what anything takes, as a share.
        broken: what fails, and why.
    """

    costs: Costs = STEEP
    chance: float = 0.7
    target_speed: Callable[[Settings], float] = lambda settings: 1.0
    draft_speed: Callable[[Settings], float] = lambda settings: 1.0
    divergence: Callable[[Settings], float] = lambda settings: (
        0.0 if settings.memory == "normal" else 0.02
    )
    lookup: float = 0.9
    auto: float = 0.95
    slowing: float = 0.0
    noise: float = 0.0
    broken: Callable[[Trial], str | None] = lambda trial: None
    unit: float = 0.01
    seed: int = 0
    now: float = 0.0
    made: list[Trial] = field(default_factory=list)

    def truth(self, candidate: Candidate) -> float:
        """Tokens a second of a cool device."""
        setup, way = candidate.setup, candidate.way
        if way == PLAIN:
            return self._fixed(setup, 0)
        if way.drafter == "lookup":
            return self.lookup * self._fixed(setup, 0)
        if way.d != "auto":
            return self._fixed(setup, way.d)
        best = max(self._fixed(setup, d) for d in (0, *LENGTHS))
        if way.drafter == "any":
            best = max(best, self.lookup * self._fixed(setup, 0))
        return self.auto * best

    def best_length(self, setup: Setup) -> int:
        """The analytic optimum of d."""
        return max((0, *LENGTHS), key=lambda d: self._fixed(setup, d))

    def try_it(self, trial: Trial) -> Tried:
        """Make a trial; the clock moves by what it takes."""
        self.made.append(trial)
        began = self.now
        why = self.broken(trial)
        outcome = Failed(why) if why else self._outcome(trial)
        self.now += 0.5
        return Tried(trial, outcome, self.now - began)

    def _outcome(self, trial: Trial) -> Outcome:
        match trial:
            case Judge(target):
                # The more its numbers are worth, the longer they take; all texts are read twice.
                self.now += 60 * self._verify(target)[0]
                kl = self.divergence(target)
                digest = hashlib.sha256(repr(kl).encode()).hexdigest()[:16]
                return Judged(kl, digest, self._taken(self._verify(target)))
            case Load(setup, _):
                draft = (0.0, 0.0)
                if setup.draft is not None:
                    draft = self._taken(self._draft(setup.draft))
                return Loaded(Costs(self._taken(self._verify(setup.target)), *draft))
            case Decode(candidate, _):
                return Decoded(tuple(self._decode(candidate, name) for name in WORKLOADS))

    def _decode(self, candidate: Candidate, workload: str) -> Cell:
        tokens = 50
        seconds = tokens / self.truth(candidate)
        (seconds,) = self._taken((seconds,))
        self.now += seconds
        way = candidate.way
        d = LENGTHS[-1] if way == Way("model", LENGTHS[-1]) else 0
        tried = tuple(1000 for _ in range(d))
        kept = tuple(round(1000 * self.chance ** (place + 1)) for place in range(d))
        return Cell(workload, tokens, seconds, tried, kept)

    def _fixed(self, setup: Setup, d: int) -> float:
        kept = [self.chance**place for place in range(d + 1)]
        draft = late = 0.0
        if d and setup.draft is not None:
            draft, catch_up = self._draft(setup.draft)
            late = kept[-1] * catch_up
        return sum(kept) / (self._verify(setup.target)[d] + d * draft + late)

    def _verify(self, target: Settings) -> tuple[float, ...]:
        return tuple(self.unit * each / self.target_speed(target) for each in self.costs.verify)

    def _draft(self, draft: Settings) -> tuple[float, float]:
        speed = self.draft_speed(draft) / self.unit
        return self.costs.draft / speed, self.costs.catch_up / speed

    def _taken(self, seconds: tuple[float, ...]) -> tuple[float, ...]:
        dice = random.Random(f"{self.seed} {self.now} {seconds}")
        heat = min(1 + self.slowing * self.now, 2.0)
        return tuple(each * heat * max(0.3, dice.gauss(1.0, self.noise)) for each in seconds)


def question(**changes: object) -> Question:
    """A pair as shipped on a device with two cores, and two minutes."""
    usual = Question(
        shipped=Setup(SHIPPED, DRAFT),
        lookup=True,
        reference=REFERENCE,
        formats=(replace(SHIPPED, dynamic_option=2),),
        threads=(1, 2),
        limit=None,
        budget=120.0,
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


def search(
    asked: Question, device: Device, before: Iterable[Tried] = (), most: int = 10_000
) -> Known:
    """Try what there is to try, at most so many trials more."""
    tried = list(before)
    for _ in range(most):
        trial = next_trial(asked, Known(tried))
        if trial is None:
            break
        tried.append(device.try_it(trial))
    return Known(tried)


__all__ = ["DRAFT", "FLAT", "REFERENCE", "SHIPPED", "STEEP", "Device", "Way", "question", "search"]
