"""A bench as a JSON document, and back.

    {"schema": 1, "measured_at": "2026-12-01T10:00:00+00:00", "complete": true,
     "tokforge": "0.1.0", "mnn": "3.6.1",
     "device": {"platform": "linux", "chip": "...", "ram_gb": 15.6, "cores": 2},
     "target": {"id", "content": "<digest>" or null, "settings": {"threads": 2, ...}},
     "tokens": 96, "repetitions": 5,
     "pairs": [{"draft": as target, or null, "lookup": true, "drift": -0.01 or null,
                "peak_bytes": 212000000 or null,
                "costs": [{"d": 0, "verify_seconds", "draft_seconds"}],
                "rows": [{"workload": "prose", "way": {"name": "d 3", "drafter": "model", "d": 3},
                          "prompt_tokens": 24, "speeds": [...], "ratios": [...],
                          "prefill_speeds": [...], "first_token_seconds": [...],
                          "drafted": [...], "accepted": [...], "same": 10, "of": 10,
                          "speed": 41.2 or null, "ratio": 1.31 or null, "noisy": false}]}],
     "skipped": [{"workload", "why"}]}

A bench that was stopped has ``"complete": false`` and the ``"error"`` that every document may have;
one that saved what it found, ``"saved"`` and ``"changes"``.
A list has one value a repetition, those of `drafted` and `accepted` one a place in the draft.
`name`, `speed`, `ratio` and `noisy` follow from the rest: they are written for readers, and when a
document is read again they are made anew.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from tokforge_models.bundle import MAX_D
from tokforge_models.device import device_in
from tokforge_models.measuring.plan import Drafter, Way
from tokforge_models.measuring.report import Model, PairReport, Report, RoundCost, Row, Skipped
from tokforge_models.reading.fields import Fields, read_strictly
from tokforge_models.reading.strict_yaml import Scalar, describe
from tokforge_models.registry.schema import read_settings
from tokforge_models.resolution.measurement import (
    content_fault,
    device_document,
    read_d,
    time_fault,
)

SCHEMA = 1
_MOST = 1e12


class _Drafters(StrEnum):
    NONE = "none"
    MODEL = "model"
    LOOKUP = "lookup"
    ANY = "any"


def as_document(report: Report) -> dict[str, Any]:
    """The document of a bench."""
    return {
        "schema": SCHEMA,
        "measured_at": report.measured_at.astimezone(UTC).isoformat(),
        "complete": report.complete,
        "tokforge": report.tokforge,
        "mnn": report.mnn,
        "device": device_document(report.device),
        "target": _model(report.target),
        "tokens": report.tokens,
        "repetitions": report.repetitions,
        "pairs": [_pair(pair) for pair in report.pairs],
        "skipped": [asdict(each) for each in report.skipped],
    }


def _pair(pair: PairReport) -> dict[str, Any]:
    return {
        "draft": _model(pair.draft) if pair.draft else None,
        "lookup": pair.lookup,
        "drift": pair.drift,
        "peak_bytes": pair.peak_bytes,
        "costs": [asdict(cost) for cost in pair.costs],
        "rows": [
            {
                **asdict(row),
                "way": {"name": row.way.name, "drafter": row.way.drafter, "d": row.way.d},
                "speed": row.speed,
                "ratio": row.ratio,
                "noisy": row.noisy,
            }
            for row in pair.rows
        ],
    }


def _model(model: Model) -> dict[str, Any]:
    return {
        "id": model.id,
        "content": model.content,
        "settings": model.settings.given(),
    }


def read_report(path: Path) -> Report:
    """Read a document that `bench --json` has written.

    Raises:
        RegistryError: with every problem of the file.
    """
    return read_strictly(
        path, _report, what="the bench", hint="tokforge bench TARGET --json > FILE writes one"
    )


def _report(fields: Fields) -> Report | None:
    for name in ("schema", "device", "target", "tokens", "repetitions", "pairs"):
        fields.require(name, "a value")
    # Of a bench that was stopped, and what became of its profiles; the rest is as good as any.
    for told in ("error", "saved", "changes"):
        fields.node(told)
    fields.integer("schema", SCHEMA, SCHEMA)
    measured_at = fields.required_text("measured_at", time_fault)
    complete = fields.flag("complete")
    tokforge, mnn = fields.required_text("tokforge"), fields.required_text("mnn")
    inner = fields.mapping("device")
    device = device_in(inner) if inner else None
    target = _read_model(fields.mapping("target"))
    tokens = fields.integer("tokens", 1, 1 << 30)
    repetitions = fields.integer("repetitions", 1, 1 << 30)
    pairs = [_read_pair(pair) for pair in fields.mappings("pairs")]
    skipped = [_read_skipped(each) for each in fields.mappings("skipped")]
    fields.done()
    if fields.problems.found or device is None or target is None or not tokens or not repetitions:
        return None
    return Report(
        measured_at=datetime.fromisoformat(measured_at),
        tokforge=tokforge,
        mnn=mnn,
        device=device,
        target=target,
        tokens=tokens,
        repetitions=repetitions,
        complete=complete,
        pairs=tuple(pairs),
        skipped=tuple(skipped),
    )


def _read_model(fields: Fields | None) -> Model | None:
    if fields is None:
        return None
    id = fields.required_text("id")
    content = None if _is_null(fields, "content") else fields.text("content", content_fault)
    settings = read_settings(fields.mapping("settings"))
    fields.done()
    return Model(id, content, settings)


def _read_pair(fields: Fields) -> PairReport:
    for name in ("rows", "costs"):
        fields.require(name, "a list")
    draft = None if _is_null(fields, "draft") else _read_model(fields.mapping("draft"))
    peak = None if _is_null(fields, "peak_bytes") else fields.integer("peak_bytes", 0, 1 << 60)
    drift = None if _is_null(fields, "drift") else fields.number("drift", -1, _MOST)
    pair = PairReport(
        draft=draft,
        lookup=fields.flag("lookup"),
        rows=tuple(_read_row(row) for row in fields.mappings("rows")),
        costs=tuple(_read_cost(cost) for cost in fields.mappings("costs")),
        drift=drift,
        peak_bytes=peak,
    )
    fields.done()
    return pair


def _read_cost(fields: Fields) -> RoundCost:
    cost = RoundCost(
        d=fields.integer("d", 0, MAX_D) or 0,
        verify_seconds=fields.number("verify_seconds", 0, _MOST) or 0.0,
        draft_seconds=fields.number("draft_seconds", 0, _MOST) or 0.0,
    )
    fields.done()
    return cost


def _read_row(fields: Fields) -> Row:
    for derived in ("speed", "ratio", "noisy"):
        fields.node(derived)
    fields.require("way", "a way of decoding")
    way = fields.mapping("way")
    row = Row(
        workload=fields.required_text("workload"),
        way=read_way(way) if way else Way("none", 0),
        prompt_tokens=fields.integer("prompt_tokens", 0, 1 << 30) or 0,
        speeds=numbers(fields, "speeds"),
        ratios=numbers(fields, "ratios"),
        prefill_speeds=numbers(fields, "prefill_speeds"),
        first_token_seconds=numbers(fields, "first_token_seconds"),
        drafted=tuple(map(int, numbers(fields, "drafted"))),
        accepted=tuple(map(int, numbers(fields, "accepted"))),
        same=fields.integer("same", 0, 1 << 30) or 0,
        of=fields.integer("of", 0, 1 << 30) or 0,
    )
    fields.done()
    return row


def read_way(fields: Fields) -> Way:
    """The way of decoding that a mapping describes; plain where it is none (noted)."""
    fields.node("name")
    for name in ("drafter", "d"):
        fields.require(name, "a value")
    chosen = fields.choice("drafter", _Drafters)
    drafter: Drafter = chosen.value if chosen else "none"
    d = read_d(fields) or 0
    fields.done()
    return Way(drafter, d)


def _read_skipped(fields: Fields) -> Skipped:
    skipped = Skipped(fields.required_text("workload"), fields.required_text("why"))
    fields.done()
    return skipped


def _is_null(fields: Fields, name: str) -> bool:
    node = fields.node(name)
    return isinstance(node, Scalar) and node.value is None


def numbers(fields: Fields, name: str) -> tuple[float, ...]:
    """A list of numbers from 0; without those that are none (noted)."""
    found: list[float] = []
    for node in fields.items(name, "a list of numbers") or ():
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST:
            found.append(value)
        else:
            fields.wrong(name, "a list of numbers from 0", describe(node))
    return tuple(found)
