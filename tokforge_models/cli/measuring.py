"""Load one pair after another, decode what a plan says, and keep what there is when stopped."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

from tqdm import tqdm

from tokforge_engine import EngineError
from tokforge_models.bundle import Bundle, Role, Settings
from tokforge_models.cli import output
from tokforge_models.cli.pair import open_pair
from tokforge_models.cli.world import Resolved, World
from tokforge_models.device_probe import probe_device
from tokforge_models.errors import Refused
from tokforge_models.measuring.plan import Plan, Step, ways_for
from tokforge_models.measuring.report import (
    Model,
    PairReport,
    Report,
    Sample,
    Skipped,
    pair_report,
)
from tokforge_models.measuring.runner import measure, peak_bytes
from tokforge_models.measuring.workloads import Workload
from tokforge_models.resolution.resolution import Overrides


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be measured of each pair.

    Attributes:
        lengths: draft lengths.
        workloads: what is decoded.
        tokens: most tokens of an answer.
        repetitions: how often.
        insist: fail where a draft cannot be used; else go on without it.
        force: load models also where memory seems too small for them.
    """

    lengths: tuple[int, ...]
    workloads: tuple[Workload, ...]
    tokens: int
    repetitions: int
    insist: bool
    force: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured.

    Attributes:
        report: of all that was decoded.
        stopped: what ended it early; None where it is complete.
    """

    report: Report
    stopped: EngineError | KeyboardInterrupt | None


def pairs_of(
    world: World,
    target: str,
    drafts: Sequence[str],
    overrides: Overrides,
    *,
    measured: bool = True,
) -> list[Resolved]:
    """A target with each draft that is asked for; where none is, with all that fit.

    Args:
        world: registry and store.
        target: as the user named it.
        drafts: as `--draft` takes them.
        overrides: flags.
        measured: whether saved profiles count.

    Raises:
        TokforgeError: the target, or a draft that is asked for, is unknown or cannot work.
    """
    resolve = partial(world.resolve, overrides=overrides, measured=measured)
    if drafts:
        return [resolve(target, draft=draft) for draft in drafts]
    usual = resolve(target)
    found = {usual.resolution.draft.id: usual} if usual.resolution.draft else {}
    for id in sorted(world.store.installed()):
        entry = world.registry.bundles.get(id)
        if id in found or entry is None or entry.role is not Role.DRAFT:
            continue
        try:
            found[id] = resolve(target, draft=id)
        except Refused as refused:
            output.note(refused.message)
    # With each draft the target is measured without it too.
    return list(found.values()) or [usual]


def measure_pairs(world: World, pairs: Sequence[Resolved], asked: Asked) -> Outcome:
    """Measure pairs one after another.

    Raises:
        TokforgeError: a bundle cannot be used.
        EngineError, KeyboardInterrupt: before anything was measured.
    """
    began = datetime.now(UTC)
    found: list[PairReport] = []
    skipped: dict[str, Skipped] = {}
    stopped: EngineError | KeyboardInterrupt | None = None
    with _Progress.over(len(pairs)) as progress:
        try:
            for resolved in pairs:
                _measure_pair(world, resolved, asked, progress, found, skipped)
        except (EngineError, KeyboardInterrupt) as error:
            if not found:
                raise
            stopped = error
    first = pairs[0].resolution
    target = _model(pairs[0], first.target, first.settings.target)
    report = Report(
        measured_at=began,
        tokforge=version_of("tokforge-models"),
        mnn=version_of("MNN"),
        device=world.device or probe_device(),
        target=target,
        tokens=asked.tokens,
        repetitions=asked.repetitions,
        complete=stopped is None,
        pairs=tuple(found),
        skipped=tuple(skipped.values()),
    )
    return Outcome(report, stopped)


def _measure_pair(
    world: World,
    resolved: Resolved,
    asked: Asked,
    progress: _Progress,
    found: list[PairReport],
    skipped: dict[str, Skipped],
) -> None:
    with open_pair(world, resolved, insist=asked.insist, force=asked.force) as pair:
        resolution = pair.resolution
        draft = resolution.draft
        plan = Plan(
            ways_for(asked.lengths, draft=draft is not None, lookup=resolution.lookup),
            asked.workloads,
            asked.repetitions,
            asked.tokens,
        )
        progress.begin(f"{resolution.target.id} with {draft.id if draft else 'no draft'}", plan)
        samples: list[Sample] = []
        try:
            for each in measure(pair.session.generate, plan):
                if isinstance(each, Skipped):
                    skipped[each.workload] = each
                    progress.leave_out(each, plan)
                else:
                    samples.append(each)
                    progress.decoded(each.step)
        finally:
            if samples:
                found.append(
                    pair_report(
                        samples,
                        draft=_model(resolved, draft, resolution.settings.draft or Settings())
                        if draft
                        else None,
                        lookup=resolution.lookup,
                        peak_bytes=peak_bytes(pair.session.pid),
                    )
                )


def _model(resolved: Resolved, bundle: Bundle, settings: Settings) -> Model:
    return Model(bundle.id, resolved.contents.get(bundle.id), settings)


def version_of(package: str) -> str:
    """The installed version of a package, or ``unknown``."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


class _Progress:
    """A bar with the time left on a terminal; elsewhere a line a repetition.

    Args:
        pairs: how many will be measured, each for about as long.
    """

    def __init__(self, pairs: int) -> None:
        self._pairs = pairs
        self._pair = 0
        self._who = ""
        self._began = time.monotonic()
        self._done = self._total = self._repetition = 0
        self._bar: tqdm[NoReturn] | None = None

    @classmethod
    @contextmanager
    def over(cls, pairs: int) -> Iterator[_Progress]:
        """Progress that is taken away at the end."""
        progress = cls(pairs)
        try:
            yield progress
        finally:
            progress.close()

    def begin(self, who: str, plan: Plan) -> None:
        """The next pair."""
        self.close()
        self._pair += 1
        self._who = who + (f" ({self._pair} of {self._pairs})" if self._pairs > 1 else "")
        self._began = time.monotonic()
        self._done, self._total, self._repetition = 0, len(plan), 0
        if sys.stderr.isatty():
            self._bar = tqdm(total=self._total, desc=self._who, unit=" texts", dynamic_ncols=True)
        else:
            output.note(f"{self._who}: {self._total} texts in {plan.repetitions} repetitions")

    def decoded(self, step: Step) -> None:
        """One text more."""
        if self._bar is None and step.repetition > self._repetition:
            took = time.monotonic() - self._began
            left = took / self._done * (self._total - self._done)
            output.note(f"{self._who}: repetition {step.repetition} done, {left:.0f} s left")
        self._repetition = step.repetition
        self._done += 1
        if self._bar is not None:
            self._bar.set_postfix_str(f"{step.workload}, {step.way.name}", refresh=False)
            self._bar.update()

    def leave_out(self, skipped: Skipped, plan: Plan) -> None:
        """A workload will not be decoded."""
        prompts = sum(len(each.prompts) for each in plan.workloads if each.name == skipped.workload)
        self._total -= plan.repetitions * len(plan.ways) * prompts
        if self._bar is not None:
            self._bar.total = self._total
        output.note(f"{skipped.workload} is left out: {skipped.why}")

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
        self._bar = None
