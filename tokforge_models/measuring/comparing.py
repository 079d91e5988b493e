"""Two benches side by side: what became faster, what slower, and what cannot be told. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tokforge_models.measuring.plan import Way
from tokforge_models.measuring.report import PairReport, Report, Row
from tokforge_models.measuring.spread import TOLERANCE

Verdict = Literal["faster", "slower", "same", "noisy"]


@dataclass(frozen=True, slots=True)
class Change:
    """One workload in one way, in both benches.

    Attributes:
        draft: id of the draft; None without one.
        workload: its name.
        way: of decoding.
        before: median tokens a second in the first bench.
        after: in the second.
        verdict: ``noisy`` where either median is; ``same`` within 5 %.
    """

    draft: str | None
    workload: str
    way: Way
    before: float
    after: float
    verdict: Verdict

    @property
    def change(self) -> float:
        """0.1 for a second bench that is a tenth faster."""
        return self.after / self.before - 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two benches.

    Attributes:
        changes: of what both measured.
        differences: conditions that are not the same, in words.
        missing: rows that one of them lacks.
    """

    changes: tuple[Change, ...]
    differences: tuple[str, ...]
    missing: int


def compare(before: Report, after: Report) -> Comparison:
    """Put a bench beside another, row by row."""
    ours, theirs = _rows(before), _rows(after)
    changes = []
    for key, one in ours.items():
        other = theirs.get(key)
        if other is None or not one.speed or not other.speed:
            continue
        draft, workload, way = key
        verdict = _verdict(one, other, one.speed, other.speed)
        changes.append(Change(draft, workload, way, one.speed, other.speed, verdict))
    missing = len(ours.keys() | theirs.keys()) - len(changes)
    return Comparison(tuple(changes), _differences(before, after), missing)


def _verdict(one: Row, other: Row, before: float, after: float) -> Verdict:
    if one.noisy or other.noisy:
        return "noisy"
    # As a share of the faster one, so that the order of the two does not matter.
    if abs(after - before) <= TOLERANCE * max(before, after):
        return "same"
    return "faster" if after > before else "slower"


def _rows(report: Report) -> dict[tuple[str | None, str, Way], Row]:
    return {
        (pair.draft.id if pair.draft else None, row.workload, row.way): row
        for pair in report.pairs
        for row in pair.rows
    }


def _differences(before: Report, after: Report) -> tuple[str, ...]:
    facts: list[tuple[str, object, object]] = [
        ("device", _device(before), _device(after)),
        ("MNN", before.mnn, after.mnn),
        ("tokforge", before.tokforge, after.tokforge),
        ("target", before.target.id, after.target.id),
        ("tokens of an answer", before.tokens, after.tokens),
    ]
    if before.target.id == after.target.id:
        facts += [
            ("content of the target", before.target.content, after.target.content),
            ("settings of the target", before.target.settings, after.target.settings),
        ]
    theirs = {pair.draft.id: pair for pair in after.pairs if pair.draft}
    for pair in before.pairs:
        if pair.draft and (other := theirs.get(pair.draft.id)):
            facts += _of_drafts(pair, other)
    return tuple(f"{name}: {one}, then {other}" for name, one, other in facts if one != other)


def _of_drafts(one: PairReport, other: PairReport) -> list[tuple[str, object, object]]:
    assert one.draft is not None
    assert other.draft is not None
    name = one.draft.id
    return [
        (f"content of {name}", one.draft.content, other.draft.content),
        (f"settings of {name}", one.draft.settings, other.draft.settings),
    ]


def _device(report: Report) -> str:
    device = report.device
    cores = f"{device.cores} cores" if device.cores else None
    return ", ".join(filter(None, (str(device.platform), device.chip, cores)))
