"""A search on a pair of this machine: what is asked, the trials one after another, what is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tokforge_engine import Session
from tokforge_engine.backends import backends
from tokforge_models.bundle import Bundle
from tokforge_models.cli import output
from tokforge_models.cli.measuring import pairs_of, version_of
from tokforge_models.cli.pair import open_pair
from tokforge_models.cli.saving import save_profiles
from tokforge_models.cli.world import Resolved, World, claimed, this_command
from tokforge_models.device_probe import probe_device
from tokforge_models.files.digests import pair_key
from tokforge_models.files.locks import Locks
from tokforge_models.measuring.quality import PROMPTS
from tokforge_models.measuring.searching import next_trial
from tokforge_models.measuring.space import formats_of, reference_of, threads_of
from tokforge_models.measuring.trials import Known, Question, Setup, Trial, describe_trial
from tokforge_models.measuring.trying import Trier
from tokforge_models.measuring.tuned import Tuned
from tokforge_models.measuring.tuning_file import Conditions, Search, read_search, write_search
from tokforge_models.measuring.verdict import Identity, decide, profiles
from tokforge_models.measuring.workloads import Workload, all_workloads, chosen
from tokforge_models.resolution.resolution import Overrides, PairSettings

_LONG = "long prompt"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the flags ask for.

    Attributes:
        budget: seconds.
        draft: as `--draft`; None for the one that is paired or fits.
        limit: largest divergence from the reference; None for no worse than shipped.
        workloads: names; all but the long prompts where there are none.
        fresh: forget earlier trials.
        force: load models also where memory seems too small for them.
    """

    budget: float
    draft: str | None
    limit: float | None
    workloads: tuple[str, ...]
    fresh: bool
    force: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """A search that has ended.

    Attributes:
        tuned: what was found.
        files: profiles that were saved.
        changes: what the target runs with otherwise from now on.
        stopped: whether Ctrl+C ended it; then nothing is saved but the trials.
    """

    tuned: Tuned
    files: tuple[Path, ...]
    changes: tuple[str, ...]
    stopped: bool


def tune_pair(world: World, target: str, wanted: Wanted) -> Ended:
    """Search, keep each trial as it is made, and in the end save what was found.

    Raises:
        TokforgeError: a bundle is unknown, not installed or damaged, the file of earlier trials
            cannot be read, or another process tunes this pair.
        EngineUnavailable: MNN does not run here.
    """
    resolved = _resolved(world, target, wanted.draft)
    resolution = resolved.resolution
    workloads = chosen(wanted.workloads or _SHORT)
    with ExitStack() as stack:
        for bundle in _stored(resolved):
            stack.enter_context(claimed(world.store, bundle.id))
        conditions = _conditions(world, resolved, workloads)
        question = _question(conditions, wanted)
        path = _path(world, conditions)
        # Two would share the cores, and each would leave out what the other has tried.
        locks = Locks(
            path.with_suffix(".lock"), world.store.disk, f"the tuning of {resolution.target.id}"
        )
        stack.enter_context(locks.exclusive(this_command(), timeout=0))
        search = Search(conditions, _earlier(path, conditions, fresh=wanted.fresh))
        stopped = False
        loader = _Loader(world, resolved, force=wanted.force)
        with Trier(question, loader.load, workloads, search.known) as trier:
            try:
                while (trial := next_trial(question, search.known)) is not None:
                    search = _with(trial, question, search, trier)
                    write_search(path, search, world.store.disk)
            except KeyboardInterrupt:
                stopped = True
    verdict = decide(question, search.known)
    draft = resolution.draft.id if resolution.draft else None
    tuned = Tuned(resolution.target.id, draft, question, conditions, search.known, verdict)
    if stopped:
        return Ended(tuned, (), (), stopped)
    identity = Identity(conditions.device, conditions.target, conditions.draft, conditions.mnn)
    found = profiles(verdict, question, search.known, identity, datetime.now(UTC))
    files, changes = save_profiles(world, target, found)
    return Ended(tuned, files, changes, stopped)


_SHORT = tuple(each.name for each in all_workloads() if each.name != _LONG)


def _resolved(world: World, target: str, draft: str | None) -> Resolved:
    """The pair as it runs without a profile, for that is what others are held against."""
    resolve = partial(pairs_of, world, target, overrides=Overrides(lookup=True), measured=False)
    resolved, *_ = resolve(drafts=(draft,) if draft else ())
    usual = resolved.resolution.draft
    if draft is not None or usual is None or usual.id in resolved.contents:
        return resolved
    output.note(f"{usual.id} is not installed: this tunes {resolved.resolution.target.id} alone")
    (alone,) = resolve(drafts=("lookup",))
    return alone


def _stored(resolved: Resolved) -> tuple[Bundle, ...]:
    """The bundles that are in the store."""
    resolution = resolved.resolution
    target = () if resolved.folder else (resolution.target,)
    return (*target, resolution.draft) if resolution.draft else target


def _conditions(world: World, resolved: Resolved, workloads: tuple[Workload, ...]) -> Conditions:
    resolution = resolved.resolution
    draft = resolution.draft
    said = repr([PROMPTS, *workloads]).encode()
    return Conditions(
        device=world.device or probe_device(),
        target=resolved.contents[resolution.target.id],
        draft=resolved.contents[draft.id] if draft else None,
        mnn=version_of("MNN"),
        tokforge=version_of("tokforge-models"),
        texts=hashlib.sha256(said).hexdigest()[:16],
        lookup=resolution.lookup,
        shipped=Setup(resolution.settings.target, resolution.settings.draft),
    )


def _question(conditions: Conditions, wanted: Wanted) -> Question:
    shipped = conditions.shipped.target
    return Question(
        shipped=conditions.shipped,
        lookup=conditions.lookup,
        reference=reference_of(shipped),
        formats=formats_of(shipped, backends()),
        threads=threads_of(conditions.device.cores),
        limit=wanted.limit,
        budget=wanted.budget,
    )


def _path(world: World, conditions: Conditions) -> Path:
    contents = filter(None, (conditions.target, conditions.draft))
    return world.store.home / "tuning" / f"{pair_key(*contents)}.json"


def _earlier(path: Path, conditions: Conditions, *, fresh: bool) -> Known:
    """Trials that were made before and still count."""
    if fresh or not path.exists():
        return Known([])
    search = read_search(path)
    if (name := search.conditions.difference(conditions)) is not None:
        output.note(f"earlier trials do not count any more: another {name}")
        return Known([])
    if search.known.tried:
        output.note(
            f"{len(search.known.tried)} earlier trials count, {search.known.spent:.0f} s of the "
            "budget; --fresh forgets them"
        )
    return search.known


def _with(trial: Trial, question: Question, search: Search, trier: Trier) -> Search:
    """A search with one trial more, which is made and told."""
    left = max(question.budget - search.known.spent, 0.0)
    output.note(f"[{_clock(left)} left] {describe_trial(trial, question.shipped)}")
    tried = trier.try_it(trial)
    known = Known((*search.known.tried, tried))
    if (why := known.failure(trial)) is not None:
        output.note(f"           failed: {why}")
    return replace(search, known=known)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


class _Loader:
    """Loads setups of one pair.

    Args:
        world: registry and store.
        resolved: the pair.
        force: load it also where memory seems too small.
    """

    def __init__(self, world: World, resolved: Resolved, *, force: bool) -> None:
        self._world = world
        self._resolved = resolved
        self._force = force

    @contextmanager
    def load(self, setup: Setup) -> Iterator[Session]:
        """A session of these models, which may guess as far and from wherever there is."""
        usual = self._resolved.resolution
        resolution = replace(
            usual,
            draft=usual.draft if setup.draft else None,
            lookup=True,
            settings=PairSettings(setup.target, setup.draft, "auto"),
        )
        resolved = replace(self._resolved, resolution=resolution)
        with open_pair(self._world, resolved, insist=True, force=self._force) as pair:
            yield pair.session
