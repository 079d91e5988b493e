"""Which draft a target runs with, with which settings, and why.

`resolve` is pure: registry, device and what is installed go in, a `Resolution` comes out. It
follows one policy. ``auto`` never fails: it goes through the rules, the first that applies
decides, and where none does the target runs without a draft. A draft that a user names is used
or refused, never silently exchanged.

A rule applies where it names the target, all its conditions hold, the device meets its draft's
needs, and, once both are installed, target and draft have one vocabulary and no measurement here
shows that the draft makes the target slower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tokforge_models.bundle import Bundle, Role, Settings
from tokforge_models.device import GIB, Device
from tokforge_models.errors import Refused, UnknownBundle
from tokforge_models.installed import Installed
from tokforge_models.model_files.fingerprint import Fingerprint
from tokforge_models.registry.pairing import Conditions, Rule, Statement
from tokforge_models.registry.registry import Registry, unlisted
from tokforge_models.resolution.compatibility import compatible, differences, rollback_fault
from tokforge_models.resolution.measurement import Measurement
from tokforge_models.resolution.profiles import Profiles

DraftLength = int | Literal["auto"]


@dataclass(frozen=True, slots=True)
class PairSettings:
    """Runtime settings of a run.

    Attributes:
        target: settings of the target.
        draft: settings of the draft; None where there is none.
        d: draft length: a number, ``auto``, or 0 where nothing is guessed.
        d_recommended: what the draft's publisher recommends, for people; None where nobody said.
    """

    target: Settings
    draft: Settings | None
    d: DraftLength
    d_recommended: int | None = None


@dataclass(frozen=True, slots=True)
class Overrides:
    """What was asked for; the strongest settings.

    Attributes:
        target: settings of the target.
        draft: settings of the draft.
        d: draft length.
        lookup: whether drafts from the context are allowed, where no rule forbids them; None
            leaves it to what was measured.
    """

    target: Settings = field(default_factory=Settings)
    draft: Settings = field(default_factory=Settings)
    d: DraftLength | None = None
    lookup: bool | None = None


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One rule: whether it decided, and why or why not."""

    rule: str
    applied: bool
    why: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """The answer.

    Attributes:
        target: the target.
        draft: its draft, or None.
        lookup: whether drafts from n-grams of the context are allowed.
        reason: why, in one sentence.
        rule: id of the rule that decided, or None.
        statement: what that rule rests on, or None.
        settings: settings of both models.
        trace: every rule of the registry in order.
        notes: what else is worth knowing: statements that disagree, a draft that is not installed,
            special tokens that differ.
    """

    target: Bundle
    draft: Bundle | None
    lookup: bool
    reason: str
    rule: str | None
    statement: Statement | None
    settings: PairSettings
    trace: tuple[TraceLine, ...]
    notes: tuple[str, ...] = ()


def resolve(
    target: str | Bundle,
    *,
    registry: Registry,
    device: Device,
    installed: Mapping[str, Installed] | None = None,
    fingerprints: Mapping[str, Fingerprint] | None = None,
    measurements: Sequence[Measurement] = (),
    mnn: str | None = None,
    draft: str = "auto",
    overrides: Overrides | None = None,
) -> Resolution:
    """Find the draft of a target.

    Args:
        target: any name of a bundle, or a bundle (`registry.registry.unlisted` makes one of a
            folder that no registry knows).
        registry: entries and rules.
        device: the device to resolve for.
        installed: id -> bundle in state ready.
        fingerprints: id -> what the files of an installed bundle say.
        measurements: results on this and other devices.
        mnn: version of MNN that will run them; a measurement with another does not count. None
            where it is not known, and then all count.
        draft: ``auto``, ``none`` (plain decoding), ``lookup``, or any name of a bundle.
        overrides: flags.

    Raises:
        UnknownBundle: target or draft is neither in the registry nor installed.
        Refused: the target is a draft, or the draft that was asked for cannot work.
    """
    case = _Case(
        registry=registry,
        device=device,
        installed=installed or {},
        fingerprints=fingerprints or {},
        profiles=Profiles(
            tuple(measurements),
            device,
            mnn,
            {id: bundle.content for id, bundle in (installed or {}).items()},
        ),
        overrides=overrides or Overrides(),
    )
    bundle = case.find(target) if isinstance(target, str) else target
    if bundle.role is Role.DRAFT:
        raise Refused(
            f"{bundle.name} is a draft: it proposes tokens to a target and answers nobody itself",
            expected="a chat model as target",
            got=f"the draft {bundle.id}",
            hint=_targets_hint(registry, bundle),
        )
    match draft:
        case "auto":
            return case.by_rules(bundle)
        case "none":
            return case.plain(bundle)
        case "lookup":
            return case.with_lookup(bundle)
        case _:
            return case.with_draft(bundle, case.find(draft))


@dataclass(frozen=True, slots=True)
class _Choice:
    """What was decided, before it is dressed as a `Resolution`."""

    target: Bundle
    draft: Bundle | None = None
    lookup: bool = True
    reason: str = ""
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """One question, with everything that the answer may depend on."""

    registry: Registry
    device: Device
    installed: Mapping[str, Installed]
    fingerprints: Mapping[str, Fingerprint]
    profiles: Profiles
    overrides: Overrides

    def find(self, name: str) -> Bundle:
        try:
            return self.registry.find(name)
        except UnknownBundle:
            if name in self.installed:
                return unlisted(name)
            raise

    def by_rules(self, target: Bundle) -> Resolution:
        winner: Rule | None = None
        trace: list[TraceLine] = []
        obstacles: list[str] = []
        for rule in self.registry.rules:
            if not rule.names(target):
                named = f"the family {rule.family}" if rule.family else ", ".join(rule.targets)
                trace.append(TraceLine(rule.id, False, f"it is about {named}"))
            elif winner is not None:
                trace.append(TraceLine(rule.id, False, f"{winner.id} decided before"))
            elif obstacle := self._obstacle(rule, target):
                trace.append(TraceLine(rule.id, False, obstacle))
                obstacles.append(obstacle)
            else:
                winner = rule
                trace.append(TraceLine(rule.id, True, rule.reason))
        if winner is None:
            why = "; ".join(dict.fromkeys(obstacles))
            reason = f"no rule applies: {why}" if why else f"no rule names {target.name}"
            return self._answer(_Choice(target, reason=reason), trace)
        draft = self.registry.bundles[winner.draft] if winner.draft else None
        return self._answer(_Choice(target, draft, winner.lookup, winner.reason, winner), trace)

    def plain(self, target: Bundle) -> Resolution:
        choice = _Choice(target, lookup=False, reason="plain decoding was asked for")
        return self._answer(choice, self._bypassed("--draft none"))

    def with_lookup(self, target: Bundle) -> Resolution:
        fingerprint = self.fingerprints.get(target.id)
        if fingerprint and (fault := rollback_fault(fingerprint)):
            raise Refused(
                f"lookup cannot work with {target.name}: the target {fault}",
                hint="leave out --draft lookup to run it with plain decoding",
            )
        choice = _Choice(target, reason="drafts from the context alone were asked for")
        asked = replace(self, overrides=replace(self.overrides, lookup=True))
        return asked._answer(choice, self._bypassed("--draft lookup"))

    def with_draft(self, target: Bundle, draft: Bundle) -> Resolution:
        fault = self._needs_fault(draft) or self._content_fault(target, draft)
        if fault:
            raise Refused(
                f"{draft.id} cannot be the draft of {target.id}: {fault}",
                hint="leave out --draft to let the rules decide",
            )
        choice = _Choice(target, draft, reason=f"{draft.name} was asked for as draft")
        return self._answer(choice, self._bypassed(f"--draft {draft.id}"))

    def _bypassed(self, flag: str) -> tuple[TraceLine, ...]:
        why = f"{flag} decided before any rule"
        return tuple(TraceLine(rule.id, False, why) for rule in self.registry.rules)

    def _obstacle(self, rule: Rule, target: Bundle) -> str | None:
        """Why a rule about this target does not apply, or None where it does."""
        draft = self.registry.bundles[rule.draft] if rule.draft else None
        return (
            (self._needs_fault(draft) if draft else None)
            or self._condition_fault(rule.when)
            or (self._content_fault(target, draft) if draft else None)
            or (self._speed_fault(rule, target, draft) if draft else None)
        )

    def _condition_fault(self, when: Conditions) -> str | None:
        if missing := [name for name in when.if_installed if name not in self.installed]:
            return f"{', '.join(missing)} is not installed"
        if when.platforms is not None and self.device.platform not in when.platforms:
            return f"it is for {', '.join(when.platforms)}, not for {self.device.platform}"
        if when.chips is not None and not any(map(self.device.has_chip, when.chips)):
            chip = self.device.chip or "this device's chip"
            return f"{chip} is not among the listed chips ({', '.join(when.chips) or 'none yet'})"
        return None

    def _needs_fault(self, bundle: Bundle) -> str | None:
        needs = bundle.needs
        if needs.platforms is not None and self.device.platform not in needs.platforms:
            return (
                f"{bundle.name} is not for {self.device.platform} "
                f"(it runs on {', '.join(needs.platforms)})"
            )
        if needs.min_ram_gb is not None and not self.device.has_ram_gb(needs.min_ram_gb):
            has = (self.device.ram_bytes or 0) / GIB
            return (
                f"{bundle.name} needs a device with {needs.min_ram_gb:g} GB of RAM or more, "
                f"and this one reports {has:.2f} GiB"
            )
        return None

    def _speed_fault(self, rule: Rule, target: Bundle, draft: Bundle) -> str | None:
        judge = self.profiles.no_gain if rule.when.if_measured_faster else self.profiles.loss
        return judge(target, draft)

    def _content_fault(self, target: Bundle, draft: Bundle) -> str | None:
        ours, theirs = self.fingerprints.get(target.id), self.fingerprints.get(draft.id)
        return compatible(ours, theirs) if ours and theirs else None

    def _answer(self, choice: _Choice, trace: Sequence[TraceLine]) -> Resolution:
        rule, draft = choice.rule, choice.draft
        if not self._lookup_is_worth_it(choice):
            choice = replace(choice, lookup=False)
        return Resolution(
            target=choice.target,
            draft=draft,
            lookup=choice.lookup,
            reason=choice.reason + (self._whose_word(draft) if draft else ""),
            rule=rule.id if rule else None,
            statement=self.registry.statements[rule.statement] if rule and rule.statement else None,
            settings=self._settings(choice),
            trace=tuple(trace),
            notes=(
                *self._target_notes(choice.target),
                *(self._disagreements(rule) if rule else ()),
                *(self._draft_notes(choice.target, draft) if draft else ()),
                *self.profiles.notes(choice.target, draft),
            ),
        )

    def _lookup_is_worth_it(self, choice: _Choice) -> bool:
        """Unless the target cannot do it, or it was measured to be no gain."""
        ours = self.fingerprints.get(choice.target.id)
        if ours and rollback_fault(ours):
            return False
        profile = self.profiles.of(choice.target, choice.draft)
        wishes = (self.overrides.lookup, profile.lookup if profile else None)
        return next((wish for wish in wishes if wish is not None), True)

    def _published_here(self, draft: Bundle) -> bool:
        return draft.published_for is None or self.device.platform in draft.published_for

    def _whose_word(self, draft: Bundle) -> str:
        if self._published_here(draft):
            return ""
        return (
            f" (it is published for {', '.join(draft.published_for or ())}: running it on "
            f"{self.device.platform} is this project's choice, not its publisher's)"
        )

    def _disagreements(self, rule: Rule) -> tuple[str, ...]:
        titles = self.registry.statements
        return tuple(
            f"{titles[other.statement].title} says otherwise: {other.says}"
            for other in rule.disagrees
        )

    def _target_notes(self, target: Bundle) -> tuple[str, ...]:
        """A target that its device may be too small for is told, not refused: it was named."""
        fault = self._needs_fault(target)
        return (fault,) if fault else self._unknown_ram(target)

    def _unknown_ram(self, bundle: Bundle) -> tuple[str, ...]:
        if bundle.needs.min_ram_gb is None or self.device.ram_bytes is not None:
            return ()
        return (
            f"{bundle.id} needs {bundle.needs.min_ram_gb:g} GB of RAM; how much this device "
            "has is not known",
        )

    def _draft_notes(self, target: Bundle, draft: Bundle) -> tuple[str, ...]:
        notes = []
        if draft.id not in self.installed:
            how = f"tokforge pull {draft.id}" if draft.sources else "tokforge import"
            notes.append(f"{draft.id} is not installed: {how} brings it")
        notes += self._unknown_ram(draft)
        ours, theirs = self.fingerprints.get(target.id), self.fingerprints.get(draft.id)
        return (*notes, *(differences(ours, theirs) if ours and theirs else ()))

    def _settings(self, choice: _Choice) -> PairSettings:
        target, draft, rule = choice.target, choice.draft, choice.rule
        measured = self.profiles.of(target, draft)
        advised = rule.target_settings if rule and draft and self._published_here(draft) else None
        ours = _layered(
            self.overrides.target,
            measured.target_settings if measured else None,
            advised,
            target.settings,
            self._own(target),
        )
        lengths = (self.overrides.d, measured.d if measured else None)
        d: DraftLength = next((length for length in lengths if length is not None), "auto")
        if draft is None:
            return PairSettings(ours, None, d if choice.lookup else 0)
        theirs = _layered(
            self.overrides.draft,
            measured.draft_settings if measured else None,
            draft.settings,
            self._own(draft),
        )
        return PairSettings(ours, theirs, d, draft.d)

    def _own(self, bundle: Bundle) -> Settings:
        """What the bundle's config.json says, but for its sampler, which no run asks."""
        own = self.installed.get(bundle.id)
        return replace(own.settings, sampler=None) if own else Settings()


def _layered(*strongest_first: Settings | None) -> Settings:
    settings = Settings()
    for weaker in (*strongest_first, Settings(sampler="greedy")):
        settings = settings.over(weaker or Settings())
    return settings


def _targets_hint(registry: Registry, draft: Bundle) -> str:
    targets = [name for rule in registry.rules if rule.draft == draft.id for name in rule.targets]
    return f"it goes with {', '.join(dict.fromkeys(targets))}" if targets else ""
