"""Pairing rules: which draft a target gets, under which conditions, and on whose word."""

from __future__ import annotations

from dataclasses import dataclass

from tokforge_models.bundle import Bundle, Settings


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that somebody published and that rules or pins rest on.

    Attributes:
        id: short name used in `from`.
        title: what it is.
        where: where it can be read.
        date: when it was published or read, as written there.
    """

    id: str
    title: str
    where: str
    date: str | None = None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """What another statement says about the same pairing."""

    statement: str
    says: str


@dataclass(frozen=True, slots=True)
class Conditions:
    """When a rule applies; all must hold. None means: does not matter.

    Attributes:
        if_installed: ids of bundles that must be in state ready.
        chips: names of chips; an empty tuple means that none is listed yet, so none matches.
        platforms: operating systems.
        if_measured_faster: a measurement on this device must show a gain.
    """

    if_installed: tuple[str, ...] = ()
    chips: tuple[str, ...] | None = None
    platforms: tuple[str, ...] | None = None
    if_measured_faster: bool = False

    def imply(self, other: Conditions) -> bool:
        """Whether `other` holds wherever these hold."""
        return (
            set(other.if_installed) <= set(self.if_installed)
            and _narrower(self.chips, other.chips)
            and _narrower(self.platforms, other.platforms)
            and (self.if_measured_faster or not other.if_measured_faster)
        )


def _narrower(these: tuple[str, ...] | None, others: tuple[str, ...] | None) -> bool:
    return others is None or (these is not None and set(these) <= set(others))


@dataclass(frozen=True, slots=True)
class Rule:
    """One pairing rule. The first that applies decides.

    Attributes:
        id: unique name, shown in traces.
        targets: ids of chat bundles; empty where `family` names them.
        family: all chat bundles of this family; None where `targets` names them.
        draft: id of the draft bundle, or None for no draft.
        lookup: whether drafts from n-grams of the context are allowed.
        when: the conditions.
        target_settings: what the draft's publisher recommends for the target; used on the
            platforms that the draft is published for.
        reason: one sentence for people.
        statement: id of the statement that the rule rests on.
        disagrees: what other statements say.
        defined_in: the registry file.
        line: 1-based line there.
    """

    id: str
    targets: tuple[str, ...]
    family: str | None
    draft: str | None
    lookup: bool
    when: Conditions
    target_settings: Settings
    reason: str
    statement: str | None
    disagrees: tuple[Disagreement, ...]
    defined_in: str
    line: int

    def names(self, target: Bundle) -> bool:
        """Whether the rule is about this target."""
        return target.id in self.targets or (
            self.family is not None and target.family == self.family
        )
