"""A loaded pair: claims on its bundles, their integrity, the session, and what to do without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from tokforge_engine import (
    BundleDamaged,
    EngineError,
    EngineUnavailable,
    InvalidRequest,
    ModelSpec,
    RuntimeSettings,
    Session,
)
from tokforge_engine.bundle_check import check_bundle
from tokforge_engine.settings import Numerics
from tokforge_models.bundle import Bundle, Settings
from tokforge_models.cli import output
from tokforge_models.cli.progress import bar
from tokforge_models.cli.world import Resolved, World, claimed
from tokforge_models.errors import IntegrityError, Refused, StorageError, UnknownBundle
from tokforge_models.files.digests import pair_key
from tokforge_models.resolution.resolution import Resolution
from tokforge_models.upkeep.integrity import verify

# Auto may pick up to this; each length costs a forward at load.
_LONGEST_AUTO = 7


@dataclass(frozen=True, slots=True)
class Pair:
    """What runs.

    Attributes:
        session: the loaded models.
        resolution: what was resolved, corrected where the draft could not be used.
        d: draft length of its requests; 0 without a draft.
    """

    session: Session
    resolution: Resolution
    d: int | Literal["auto"]


@contextmanager
def open_pair(
    world: World,
    resolved: Resolved,
    *,
    insist: bool,
    numerics: Numerics = "fast",
    force: bool = False,
) -> Iterator[Pair]:
    """Claim, check and load a target with its draft.

    Args:
        world: registry and store.
        resolved: what to load.
        insist: fail where the draft cannot be used; else run without it and say why.
        numerics: how the target computes its steps; see `tokforge_engine.settings.Numerics`.
        force: load it also where memory seems too small for it.

    Raises:
        UnknownBundle: not installed.
        IntegrityError: installed and damaged.
        EngineError: it cannot be loaded.
    """
    with ExitStack() as stack:
        wanted = resolved.resolution
        target = _spec(world, stack, wanted.target, wanted.settings.target, folder=resolved)
        draft, resolution = _draft_spec(world, stack, wanted, insist=insist)
        start = partial(
            Session,
            target,
            learned=_learned_file(world, resolved),
            numerics=numerics,
            force=force,
        )
        session, resolution = _load(start, target.path, draft, resolution, insist=insist)
        stack.enter_context(session)
        yield Pair(session, resolution, resolution.settings.d)


def _draft_spec(
    world: World, stack: ExitStack, resolution: Resolution, *, insist: bool
) -> tuple[ModelSpec | None, Resolution]:
    """The draft, claimed and checked; and the resolution, without it where it cannot be used."""
    if resolution.draft is None or resolution.settings.draft is None:
        return None, resolution
    try:
        return _spec(world, stack, resolution.draft, resolution.settings.draft), resolution
    except (UnknownBundle, IntegrityError, Refused, StorageError) as error:
        if insist:
            raise
        return None, _without_draft(resolution, error.message, error.hint)


def _load(
    start: Callable[..., Session],
    target: Path,
    draft: ModelSpec | None,
    resolution: Resolution,
    *,
    insist: bool,
) -> tuple[Session, Resolution]:
    """The models, loaded; and the resolution, without what the engine cannot use."""
    while True:
        try:
            session = start(draft, lookup=resolution.lookup, max_d=_longest(resolution))
        except EngineError as error:
            guesses = draft is not None or resolution.lookup
            hopeless = isinstance(error, InvalidRequest | EngineUnavailable)
            if insist or not guesses or hopeless:
                raise
            if isinstance(error, BundleDamaged):
                # Without the draft it is no better where the target is the damaged one.
                check_bundle(target)
            # First without the draft, then without drafts from the context too: the target
            # itself may be unable to verify.
            lookup = resolution.lookup and draft is not None
            draft, resolution = None, replace(resolution, lookup=lookup)
            resolution = _without_draft(resolution, error.message, error.hint)
        else:
            return session, resolution


def _longest(resolution: Resolution) -> int:
    d = resolution.settings.d
    return _LONGEST_AUTO if d == "auto" else d


def _learned_file(world: World, resolved: Resolved) -> Path | None:
    """Where what auto learns of a pair is kept, by the contents of both, if both are here."""
    resolution = resolved.resolution
    models = filter(None, (resolution.target, resolution.draft))
    contents = [resolved.contents.get(model.id) for model in models]
    known = [content for content in contents if content is not None]
    if len(known) < len(contents):
        return None
    return world.store.home / "learned" / f"{pair_key(*known)}.json"


def _spec(
    world: World,
    stack: ExitStack,
    bundle: Bundle,
    settings: Settings,
    folder: Resolved | None = None,
) -> ModelSpec:
    if folder and folder.folder:
        path = folder.folder
    else:
        _check(world, bundle)
        path = stack.enter_context(claimed(world.store, bundle.id)).path
    runtime = RuntimeSettings(
        backend=settings.backend,
        threads=settings.threads,
        precision=settings.precision,
        memory=settings.memory,
        power=settings.power,
        dynamic_option=settings.dynamic_option,
    )
    return ModelSpec(path, runtime, bundle.id, bundle.context_length)


def _check(world: World, bundle: Bundle) -> None:
    """Nothing unverified is used: a file whose stamp changed is hashed before it is loaded."""
    with bar() as progress:
        (report,) = verify(
            world.store, [bundle.id], bundles=world.registry.bundles, progress=progress
        )
    if report.ok or report.state in {"absent", "partial"}:
        # What is not whole is named, with the next step, by the claim on it.
        return
    faults = [*(f"{file.path} is not what was verified" for file in report.files if not file.ok)]
    raise IntegrityError(
        f"{bundle.id} is damaged: {'; '.join([*faults, *report.problems])}",
        kept="all files that are good",
        hint=f"tokforge verify --repair {bundle.id}",
    )


def _without_draft(resolution: Resolution, why: str, hint: str) -> Resolution:
    reason = f"{resolution.draft.id} is its draft, but {why}" if resolution.draft else why
    output.note(f"running without a draft: {why}" + (f" (try: {hint})" if hint else ""))
    d = resolution.settings.d if resolution.lookup else 0
    settings = replace(resolution.settings, draft=None, d=d)
    return replace(resolution, draft=None, reason=reason, settings=settings)
