"""The trials of a search on disk, so that a search that was stopped goes on where it was.

    <home>/tuning/<key of the pair>.json

    {"schema": 1,
     "conditions": {"device": {...}, "target": "<content digest>", "draft": "<content digest>",
                    "mnn": "3.6.1", "tokforge": "0.1.0", "texts": "<digest of what is decoded>",
                    "lookup": true, "shipped": {"target": {...}, "draft": {...}}},
     "trials": [
       {"load": {"target": {...}, "draft": {...}}, "repetition": 0, "seconds": 1.2,
        "verify": [...], "draft_seconds": 0.001, "catch_up_seconds": 0.0003},
       {"judge": {...}, "seconds": 2.1, "divergence": 0.02, "digest": "...", "verify": [...]},
       {"decode": {"target": {...}, "draft": {...}, "way": {"drafter": "model", "d": 3}},
        "repetition": 0, "seconds": 1.9,
        "cells": [{"workload": "prose", "tokens": 126, "seconds": 1.1,
                   "drafted": [...], "accepted": [...]}]},   # of the longest drafts, once
       {"judge": {...}, "seconds": 0.2, "failed": "..."}]}

The file is replaced as a whole after each trial. Trials that were made under other conditions
(another device, content, version, text or way of running as shipped) say nothing any more.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokforge_engine.costs import Costs
from tokforge_models.bundle import Settings
from tokforge_models.device import Device, device_in
from tokforge_models.files.disk import Disk
from tokforge_models.measuring.document import numbers, read_way
from tokforge_models.measuring.plan import Way
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
    Setup,
    Trial,
    Tried,
)
from tokforge_models.reading.fields import Fields, read_strictly
from tokforge_models.registry.schema import read_settings
from tokforge_models.resolution.measurement import content_fault, device_document, given

SCHEMA = 1
_MOST = 1e9
_LEAST_SECONDS = 1e-9


@dataclass(frozen=True, slots=True)
class Conditions:
    """What trials depend on.

    Attributes:
        device: where they were made.
        target: content digest.
        draft: content digest; None without a draft.
        mnn: version of MNN.
        tokforge: version of this package.
        texts: digest of what is decoded.
        lookup: whether the context may draft.
        shipped: the pair as it runs without a profile.
    """

    device: Device
    target: str
    draft: str | None
    mnn: str
    tokforge: str
    texts: str
    lookup: bool
    shipped: Setup

    def difference(self, other: Conditions) -> str | None:
        """The first condition that is another, as people call it; None where trials still count."""
        if not self.device.is_like(other.device):
            return "device"
        names = [field.name for field in dataclasses.fields(self) if field.name != "device"]
        return next(
            (name for name in names if getattr(self, name) != getattr(other, name)),
            None,
        )


@dataclass(frozen=True, slots=True)
class Search:
    """A search as far as it came."""

    conditions: Conditions
    known: Known


def write_search(path: Path, search: Search, disk: Disk | None = None) -> None:
    """Keep a search; a crash leaves the old file or the new one.

    Raises:
        StorageError: it cannot be written; the old one is kept.
    """
    disk = disk or Disk()
    disk.make_folder(path.parent)
    document = {
        "schema": SCHEMA,
        "conditions": _conditions(search.conditions),
        "trials": [tried_document(each) for each in search.known.tried],
    }
    disk.write(path, (json.dumps(document, ensure_ascii=False) + "\n").encode())


def read_search(path: Path) -> Search:
    """Read what `write_search` wrote.

    Raises:
        RegistryError: with every problem of the file.
    """
    return read_strictly(
        path, _search, what="the search so far", hint="tokforge tune TARGET --fresh begins anew"
    )


def tried_document(tried: Tried) -> dict[str, Any]:
    """A trial and what came of it."""
    return {
        **_trial_document(tried.trial),
        "seconds": round(tried.seconds, 6),
        **_outcome_document(tried.outcome),
    }


def candidate_document(candidate: Candidate) -> dict[str, Any]:
    """A candidate: its settings, and its way of decoding."""
    way = candidate.way
    return {**_setup(candidate.setup), "way": {"drafter": way.drafter, "d": way.d}}


def _trial_document(trial: Trial) -> dict[str, Any]:
    match trial:
        case Load(setup, repetition):
            return {"load": _setup(setup), "repetition": repetition}
        case Judge(target):
            return {"judge": _settings(target)}
        case Decode(candidate, repetition):
            return {"decode": candidate_document(candidate), "repetition": repetition}


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Loaded(costs):
            return {
                "verify": list(costs.verify),
                "draft_seconds": costs.draft,
                "catch_up_seconds": costs.catch_up,
            }
        case Judged() as judged:
            return dataclasses.asdict(judged)
        case Decoded(cells):
            return {"cells": [_cell(cell) for cell in cells]}
        case Failed(why):
            return {"failed": why}


def _cell(cell: Cell) -> dict[str, Any]:
    values = dataclasses.asdict(cell)
    return {name: value for name, value in values.items() if value != ()}


def _conditions(conditions: Conditions) -> dict[str, Any]:
    return given(
        {
            **{
                field.name: getattr(conditions, field.name)
                for field in dataclasses.fields(conditions)
            },
            "device": device_document(conditions.device),
            "shipped": _setup(conditions.shipped),
        }
    )


def _setup(setup: Setup) -> dict[str, Any]:
    draft = None if setup.draft is None else _settings(setup.draft)
    return given({"target": _settings(setup.target), "draft": draft})


def _settings(settings: Settings) -> Mapping[str, Any]:
    return given(dataclasses.asdict(settings))


def _search(fields: Fields) -> Search | None:
    fields.require("schema", f"the number {SCHEMA}")
    fields.integer("schema", SCHEMA, SCHEMA)
    for name, expected in (("conditions", "a mapping"), ("trials", "a list")):
        fields.require(name, expected)
    inner = fields.mapping("conditions")
    conditions = _read_conditions(inner) if inner else None
    tried = [_read_tried(each) for each in fields.mappings("trials")]
    fields.done()
    if conditions is None or fields.problems.found:
        return None
    return Search(conditions, Known(each for each in tried if each))


def _read_conditions(fields: Fields) -> Conditions | None:
    fields.require("device", "a device")
    fields.require("shipped", "settings")
    inner = fields.mapping("device")
    device = device_in(inner) if inner else None
    conditions = Conditions(
        device=device,  # type: ignore[arg-type]
        target=fields.required_text("target", content_fault),
        draft=fields.text("draft", content_fault),
        mnn=fields.required_text("mnn"),
        tokforge=fields.required_text("tokforge"),
        texts=fields.required_text("texts"),
        lookup=fields.flag("lookup"),
        shipped=_read_setup(fields.mapping("shipped")),
    )
    fields.done()
    return conditions if device is not None else None


def _read_tried(fields: Fields) -> Tried | None:
    kinds = [kind for kind in _TRIALS if fields.has(kind)]
    if len(kinds) != 1:
        fields.problems.add(
            fields.line, fields.key, f"one of {', '.join(_TRIALS)}", f"{len(kinds)} of them"
        )
        return None
    (kind,) = kinds
    fields.require("seconds", "seconds")
    seconds = fields.number("seconds", 0, _MOST)
    trial = _TRIALS[kind](fields)
    outcome: Outcome = (
        Failed(fields.required_text("failed")) if fields.has("failed") else _OUTCOMES[kind](fields)
    )
    fields.done()
    return Tried(trial, outcome, seconds or 0.0)


def _read_load(fields: Fields) -> Load:
    return Load(_read_setup(fields.mapping("load")), _repetition(fields))


def _read_judge(fields: Fields) -> Judge:
    return Judge(read_settings(fields.mapping("judge")))


def _read_decode(fields: Fields) -> Decode:
    repetition = _repetition(fields)
    inner = fields.mapping("decode")
    if inner is None:
        return Decode(Candidate(Setup(Settings()), Way("none", 0)), repetition)
    inner.require("way", "a way of decoding")
    way = inner.mapping("way")
    candidate = Candidate(_read_setup(inner), read_way(way) if way else Way("none", 0))
    return Decode(candidate, repetition)


def _repetition(fields: Fields) -> int:
    fields.require("repetition", "a number")
    return fields.integer("repetition", 0, 1 << 20) or 0


def _read_setup(fields: Fields | None) -> Setup:
    """Settings of a target and perhaps of a draft; other keys are the caller's to read."""
    if fields is None:
        return Setup(Settings())
    fields.require("target", "settings")
    target = read_settings(fields.mapping("target"))
    draft = read_settings(fields.mapping("draft")) if fields.has("draft") else None
    fields.done()
    return Setup(target, draft)


def _read_loaded(fields: Fields) -> Loaded:
    return Loaded(
        Costs(
            _verify(fields), _number(fields, "draft_seconds"), _number(fields, "catch_up_seconds")
        )
    )


def _read_judged(fields: Fields) -> Judged:
    return Judged(_number(fields, "divergence"), fields.required_text("digest"), _verify(fields))


def _read_decoded(fields: Fields) -> Decoded:
    fields.require("cells", "a list")
    return Decoded(tuple(_read_cell(each) for each in fields.mappings("cells")))


def _read_cell(fields: Fields) -> Cell:
    fields.require("tokens", "a number")
    cell = Cell(
        workload=fields.required_text("workload"),
        tokens=fields.integer("tokens", 1, 1 << 30) or 1,
        seconds=_number(fields, "seconds", least=_LEAST_SECONDS) or 1.0,
        drafted=tuple(map(int, numbers(fields, "drafted"))),
        accepted=tuple(map(int, numbers(fields, "accepted"))),
    )
    if len(cell.drafted) != len(cell.accepted):
        fields.wrong("accepted", "a number for each place that was drafted", "another count")
    fields.done()
    return cell


def _verify(fields: Fields) -> tuple[float, ...]:
    """V(1) and further, all that the search may ask for."""
    found = numbers(fields, "verify")
    if len(found) <= LENGTHS[-1] or min(found) < _LEAST_SECONDS:
        fields.wrong("verify", f"at least {LENGTHS[-1] + 1} times over 0", f"{len(found)} numbers")
        return (1.0,) * (LENGTHS[-1] + 1)
    return found


def _number(fields: Fields, name: str, least: float = 0.0) -> float:
    fields.require(name, "a number")
    return fields.number(name, least, _MOST) or 0.0


_TRIALS: Mapping[str, Callable[[Fields], Trial]] = {
    "load": _read_load,
    "judge": _read_judge,
    "decode": _read_decode,
}
_OUTCOMES: Mapping[str, Callable[[Fields], Outcome]] = {
    "load": _read_loaded,
    "judge": _read_judged,
    "decode": _read_decoded,
}
