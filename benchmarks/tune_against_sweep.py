"""Is what `tokforge tune` chooses as fast as the best of an exhaustive sweep, in a quarter of its
time?

    python benchmarks/tune_against_sweep.py TARGET DRAFT --state DIR [--budget 120] [--piece 220]

TARGET and DRAFT are bundles' directories. Three parts, each kept in DIR, so that the command may be
given again until it prints the table; it ends by itself after `--piece` seconds:

1. the search of `tokforge tune`, with its own budget;
2. the sweep: every thread count of target and draft, every number format that the search may choose
   and that is not half as slow again (a sweep would need as much time again for those), every
   draft length, auto, lookup and plain, `--repetitions` times;
3. the choice of the search, the pair as shipped and the three best of the sweep, in turn, nine
   times. The last column is the median, over those, of the choice's speed over that of the best
   of the sweep; the best is the one that is fastest there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tokforge_engine import ModelSpec, RuntimeSettings, Session
from tokforge_models.bundle import Settings
from tokforge_models.device_probe import probe_device
from tokforge_models.measuring.plan import LOOKUP, PLAIN
from tokforge_models.measuring.searching import formats, is_slow, next_trial
from tokforge_models.measuring.space import formats_of, reference_of, threads_of
from tokforge_models.measuring.spread import median
from tokforge_models.measuring.standing import Standings
from tokforge_models.measuring.trials import (
    Candidate,
    Decode,
    Failed,
    Known,
    Load,
    Question,
    Setup,
    Trial,
    describe,
    describe_trial,
)
from tokforge_models.measuring.trying import Trier
from tokforge_models.measuring.tuning_file import Conditions, Search, read_search, write_search
from tokforge_models.measuring.verdict import decide
from tokforge_models.measuring.workloads import chosen
from tokforge_models.model_files.completeness import CONFIG, parse_config, settings_of

WORKLOADS = ("prose", "code", "questions", "copy and edit", "German")
BEST, FINALS = 3, 9


@dataclass(frozen=True, slots=True)
class Bundles:
    """The pair that is measured."""

    target: Path
    draft: Path

    @contextmanager
    def load(self, setup: Setup) -> Iterator[Session]:
        """A session of a setup."""
        draft = _spec(self.draft, setup.draft) if setup.draft else None
        with Session(_spec(self.target, setup.target), draft, lookup=True) as session:
            yield session


class Out(Exception):
    """The time of this piece is over."""


class Part:
    """One of the three parts, with its trials on disk."""

    def __init__(self, state: Path, name: str, conditions: Conditions, ends: float) -> None:
        self._path = state / f"{name}.json"
        self._conditions = conditions
        self._ends = ends
        search = read_search(self._path) if self._path.exists() else None
        self.known = search.known if search else Known([])

    def make(self, trier: Trier, trial: Trial, shipped: Setup) -> None:
        """Make a trial and keep it."""
        if time.monotonic() > self._ends:
            raise Out
        print(describe_trial(trial, shipped), flush=True)
        self.known = Known((*self.known.tried, trier.try_it(trial)))
        write_search(self._path, Search(self._conditions, self.known))


def _spec(path: Path, settings: Settings) -> ModelSpec:
    known = {name: value for name, value in settings.given().items() if name != "sampler"}
    return ModelSpec(path, RuntimeSettings(**known))  # type: ignore[arg-type]


def _shipped(path: Path) -> Settings:
    config = parse_config(CONFIG, (path / CONFIG).read_bytes())
    assert not isinstance(config, str)
    return replace(settings_of(config)[0], sampler=None)


def everything(question: Question, known: Known) -> list[Candidate]:
    """Every candidate of the sweep, by setup."""
    targets = [
        replace(each, threads=threads)
        for each in formats(question, known)
        if not is_slow(each, question, known)
        for threads in question.threads
    ]
    assert question.shipped.draft is not None
    drafts = [replace(question.shipped.draft, threads=threads) for threads in question.threads]
    found: list[Candidate] = []
    for target in targets:
        for draft in drafts:
            found += [Candidate(Setup(target, draft), way) for way in question.ways]
        found += [Candidate(Setup(target), way) for way in (PLAIN, LOOKUP)]
    return found


def turns(candidates: Sequence[Candidate], repetitions: int) -> Iterator[Decode]:
    """All candidates in turn; each repetition begins with another one."""
    for repetition in range(repetitions):
        first = repetition * len(candidates) // repetitions
        for candidate in (*candidates[first:], *candidates[:first]):
            yield Decode(candidate, repetition)


def main() -> None:
    """Go on with the three parts, and print the table at their end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("draft", type=Path)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--piece", type=float, default=220.0)
    asked = parser.parse_args()
    try:
        _measure(asked)
    except Out:
        print("to be continued: the same command again")


def _measure(asked: argparse.Namespace) -> None:
    ends = time.monotonic() + asked.piece
    device = probe_device()
    shipped = Setup(_shipped(asked.target), _shipped(asked.draft))
    question = Question(
        shipped=shipped,
        lookup=True,
        reference=reference_of(shipped.target),
        formats=formats_of(shipped.target, {}),
        threads=threads_of(device.cores),
        limit=None,
        budget=asked.budget,
    )
    conditions = Conditions(device, "0" * 64, None, "any", "any", "any", True, shipped)
    bundles, workloads = Bundles(asked.target, asked.draft), chosen(WORKLOADS)

    tune = Part(asked.state, "tune", conditions, ends)
    with Trier(question, bundles.load, workloads, tune.known) as trier:
        while (trial := next_trial(question, tune.known)) is not None:
            tune.make(trier, trial, shipped)
    verdict = decide(question, tune.known)
    if verdict.chosen is None:
        print(verdict.words)
        return

    sweep = Part(asked.state, "sweep", conditions, ends)
    candidates = everything(question, tune.known)
    _all(sweep, question, bundles, (Load(shipped), *turns(candidates, asked.repetitions)))
    able = [
        each
        for each in candidates
        if not any(
            isinstance(tried.outcome, Failed)
            for tried in sweep.known.tried
            if isinstance(tried.trial, Decode) and tried.trial.candidate == each
        )
    ]
    order = Standings(replace(question, shipped=shipped), sweep.known).order(able)

    finals = Part(asked.state, "finals", conditions, ends)
    choice = verdict.chosen.candidate
    rivals = list(dict.fromkeys((choice, question.base, *order[:BEST])))
    _all(finals, question, bundles, (Load(shipped), *turns(rivals, FINALS)))
    standings = Standings(question, finals.known)
    best, *_ = standings.order(order[:BEST])
    share = median(standings.ratios(choice, best))
    gain = median(standings.ratios(choice, question.base))

    print(
        "| pair | tune's choice | times shipped | the sweep's best | candidates | tune, s "
        "| sweep, s | of its time | choice over best |"
    )
    print("| --- " * 9 + "|")
    print(
        f"| {asked.target.name} with {asked.draft.name} | {describe(choice, shipped)} "
        f"| {gain:.2f} | {describe(best, shipped)} | {len(candidates)} | {tune.known.spent:.0f} "
        f"| {sweep.known.spent:.0f} | {tune.known.spent / sweep.known.spent:.2f} | {share:.2f} |"
    )


def _all(part: Part, question: Question, bundles: Bundles, trials: Sequence[Trial]) -> None:
    """Make what is not made yet."""
    with Trier(question, bundles.load, chosen(WORKLOADS), part.known) as trier:
        for trial in trials:
            if trial not in part.known:
                part.make(trier, trial, question.shipped)


if __name__ == "__main__":
    main()
