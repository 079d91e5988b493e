"""What was measured: values, and how they are made from the texts that were decoded. Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tokforge_engine.statistics import Statistics
from tokforge_models.bundle import Settings
from tokforge_models.device import Device
from tokforge_models.measuring.plan import PLAIN, Step, Way
from tokforge_models.measuring.spread import drift, geometric_mean, median, noisy

# A prompt that the cache held but for its last tokens tells nothing of prefill.
_LEAST_READ = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """One prompt decoded once.

    Attributes:
        step: what it was.
        token_ids: the answer.
        prompt_tokens: tokens of the prompt.
        first_token_seconds: from the request to the first token.
        stats: counts and seconds.
    """

    step: Step
    token_ids: tuple[int, ...]
    prompt_tokens: int
    first_token_seconds: float
    stats: Statistics


@dataclass(frozen=True, slots=True)
class Row:
    """One workload decoded in one way; a value a repetition, in order.

    Attributes:
        workload: its name.
        way: of decoding.
        prompt_tokens: of its prompts, on average.
        speeds: tokens a second of decoding, over all its prompts.
        ratios: the same over plain decoding's in the same repetition.
        prefill_speeds: tokens of the prompt a second.
        first_token_seconds: median of its prompts, from the request to the first token.
        drafted: guesses that were verified, by place in the draft.
        accepted: how many of them were kept.
        same: texts that are, token for token, the plain text.
        of: texts.
    """

    workload: str
    way: Way
    prompt_tokens: int
    speeds: tuple[float, ...]
    ratios: tuple[float, ...]
    prefill_speeds: tuple[float, ...]
    first_token_seconds: tuple[float, ...]
    drafted: tuple[int, ...]
    accepted: tuple[int, ...]
    same: int
    of: int

    @property
    def speed(self) -> float | None:
        """Median tokens a second; None where no text had a second token."""
        return median(self.speeds)

    @property
    def ratio(self) -> float | None:
        """Median of the ratios to plain decoding."""
        return median(self.ratios)

    @property
    def noisy(self) -> bool:
        """Whether a second run may find another speed; see `tokforge_models.measuring.spread`."""
        return noisy(self.speeds)


@dataclass(frozen=True, slots=True)
class RoundCost:
    """What a round of `d` guesses costs: medians of what rounds took in these texts.

    Attributes:
        d: guesses a round.
        verify_seconds: V(d + 1), the target's forward.
        draft_seconds: D(d), the draft's forwards, its catching up included.
    """

    d: int
    verify_seconds: float
    draft_seconds: float


@dataclass(frozen=True, slots=True)
class Model:
    """A bundle that was measured.

    Attributes:
        id: in the registry or the store.
        content: its content digest; None where it is not known.
        settings: how it ran.
    """

    id: str
    content: str | None
    settings: Settings


@dataclass(frozen=True, slots=True)
class PairReport:
    """A target with one draft, or without.

    Attributes:
        draft: None without a draft model.
        lookup: whether the context could draft.
        rows: by workload and way.
        costs: by draft length, from 0.
        drift: change of speed from the first third to the last; -0.1 is a tenth slower. None of
            too few texts.
        peak_bytes: most memory of the process that both ran in; None where that is not told.
    """

    draft: Model | None
    lookup: bool
    rows: tuple[Row, ...]
    costs: tuple[RoundCost, ...]
    drift: float | None
    peak_bytes: int | None

    @property
    def ways(self) -> tuple[Way, ...]:
        """Of decoding, in order."""
        return tuple(dict.fromkeys(row.way for row in self.rows))

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(dict.fromkeys(row.workload for row in self.rows))

    def row(self, workload: str, way: Way) -> Row | None:
        """The row of that workload and way, if it was measured."""
        fitting = (row for row in self.rows if (row.workload, row.way) == (workload, way))
        return next(fitting, None)

    def overall(self, way: Way) -> float | None:
        """Geometric mean of the workloads' ratios; None where one is missing."""
        ratios = [row.ratio for row in self.rows if row.way == way]
        known = [ratio for ratio in ratios if ratio]
        return geometric_mean(known) if len(known) == len(self.workloads) else None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A workload that could not be run, and why."""

    workload: str
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """A bench.

    Attributes:
        measured_at: when it began, with a time zone.
        tokforge: version of this package.
        mnn: version of MNN.
        device: where.
        target: what was measured.
        tokens: most tokens of an answer.
        repetitions: that were asked for.
        complete: false where it was interrupted.
        pairs: the target with each draft.
        skipped: what could not be run.
    """

    measured_at: datetime
    tokforge: str
    mnn: str
    device: Device
    target: Model
    tokens: int
    repetitions: int
    complete: bool
    pairs: tuple[PairReport, ...]
    skipped: tuple[Skipped, ...] = ()


def pair_report(
    samples: Sequence[Sample], *, draft: Model | None, lookup: bool, peak_bytes: int | None
) -> PairReport:
    """What the texts of one pair tell.

    Args:
        samples: in the order in which they were decoded.
        draft: the draft model.
        lookup: whether the context could draft.
        peak_bytes: most memory of the process.
    """
    cells: defaultdict[tuple[str, Way], list[Sample]] = defaultdict(list)
    for sample in samples:
        cells[sample.step.workload, sample.step.way].append(sample)
    plain_texts = _plain_texts(samples)
    rows = []
    for (workload, way), ours in cells.items():
        plain = cells.get((workload, PLAIN), [])
        prompts = {each.step.prompt for each in samples if each.step.workload == workload}
        speeds, base = _speeds(ours, prompts), _speeds(plain, prompts)
        fresh = [each for each in ours if each.stats.prefilled >= _LEAST_READ]
        compared = [each for each in ours if _key(each) in plain_texts]
        rows.append(
            Row(
                workload,
                way,
                prompt_tokens=round(statistics.mean(each.prompt_tokens for each in ours)),
                speeds=tuple(speeds.values()),
                ratios=tuple(speeds[turn] / base[turn] for turn in speeds if turn in base),
                prefill_speeds=_by_turn(fresh, _prefill_speed),
                first_token_seconds=_by_turn(fresh, _first_token),
                drafted=added(each.stats.drafted_by_position for each in ours),
                accepted=added(each.stats.accepted_by_position for each in ours),
                same=sum(each.token_ids == plain_texts[_key(each)] for each in compared),
                of=len(compared),
            )
        )
    return PairReport(draft, lookup, tuple(rows), _costs(samples), _drift(samples), peak_bytes)


def _key(sample: Sample) -> tuple[str, int]:
    return sample.step.workload, sample.step.prompt


def _plain_texts(samples: Iterable[Sample]) -> dict[tuple[str, int], tuple[int, ...]]:
    texts: dict[tuple[str, int], tuple[int, ...]] = {}
    for sample in samples:
        if sample.step.way == PLAIN:
            texts.setdefault(_key(sample), sample.token_ids)
    return texts


def _turns(samples: Iterable[Sample]) -> dict[int, list[Sample]]:
    turns: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        turns[sample.step.repetition].append(sample)
    return dict(sorted(turns.items()))


def _speed(samples: Sequence[Sample]) -> float:
    """Tokens after the first ones a second of decoding, together; 0 where there were none."""
    seconds = sum(each.stats.decode_seconds for each in samples if each.stats.emitted > 1)
    tokens = sum(max(each.stats.emitted - 1, 0) for each in samples)
    return tokens / seconds if seconds > 0 else 0.0


def _speeds(samples: Iterable[Sample], prompts: set[int]) -> dict[int, float]:
    """Speed by repetition, of those in which every prompt was decoded."""
    whole = {
        turn: _speed(each)
        for turn, each in _turns(samples).items()
        if {sample.step.prompt for sample in each} == prompts
    }
    return {turn: speed for turn, speed in whole.items() if speed > 0}


def _by_turn(
    samples: Iterable[Sample], value: Callable[[Sequence[Sample]], float]
) -> tuple[float, ...]:
    return tuple(value(each) for each in _turns(samples).values())


def _prefill_speed(samples: Sequence[Sample]) -> float:
    seconds = sum(each.stats.prefill_seconds for each in samples)
    return sum(each.stats.prefilled for each in samples) / seconds if seconds > 0 else 0.0


def _first_token(samples: Sequence[Sample]) -> float:
    return statistics.median(each.first_token_seconds for each in samples)


def added(counts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Counts by place, of lists that may differ in length."""
    total: list[int] = []
    for each in counts:
        total += [0] * (len(each) - len(total))
        for place, count in enumerate(each):
            total[place] += count
    return tuple(total)


def _costs(samples: Iterable[Sample]) -> tuple[RoundCost, ...]:
    """From the ways of fixed length, whose rounds are all alike but for the last of a text."""
    rounds: defaultdict[int, list[Statistics]] = defaultdict(list)
    for sample in samples:
        way = sample.step.way
        if isinstance(way.d, int) and sample.stats.rounds:
            rounds[way.d].append(sample.stats)
    return tuple(
        RoundCost(
            d,
            statistics.median(each.verify_seconds / each.rounds for each in seen),
            statistics.median(each.draft_seconds / each.rounds for each in seen),
        )
        for d, seen in sorted(rounds.items())
    )


def _drift(samples: Sequence[Sample]) -> float | None:
    cells: defaultdict[tuple[str, int, Way], list[float]] = defaultdict(list)
    for sample in samples:
        if speed := _speed([sample]):
            cells[*_key(sample), sample.step.way].append(speed)
    usual = {cell: statistics.median(speeds) for cell, speeds in cells.items()}
    # A cell that was measured once is its own median, whatever the device did.
    relative = [
        speed / usual[cell]
        for sample in samples
        if (speed := _speed([sample])) and len(cells[cell := (*_key(sample), sample.step.way)]) > 1
    ]
    return drift(relative)
