"""What was measured on a device about one pair of models: the *profile* of the pair.

On disk: one JSON file a profile, strictly read (`tokforge_models.store.measurements` keeps them):

    {"schema": 1, "by": "tune", "measured_at": "2026-12-01T10:00:00+00:00", "mnn": "3.6.1",
     "device": {"platform": "linux", "chip": "...", "ram_gb": 15.6, "cores": 8},
     "target": "<content digest>", "draft": "<content digest>",
     "plain": 32.4, "paired": 41.2, "lookup": true, "divergence": 0.0213,
     "settings": {"target": {"threads": 2}, "draft": {"threads": 1}, "d": "auto"}}

Without ``draft`` it is the profile of the target alone. ``lookup`` and ``divergence`` are left out
where they were not measured, a setting where it was not tuned.

A pair is named by the content digests of its bundles (`Installed.content`), so a new revision is
a new pair, and a copy under another name is the same. A profile holds for the version of MNN that
it was measured with: another one has other kernels, and other costs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Literal

from tokforge_models.bundle import MAX_D, Settings
from tokforge_models.device import GIB, Device, device_in
from tokforge_models.reading.fields import Fields, read_strictly
from tokforge_models.reading.strict_yaml import Scalar
from tokforge_models.registry.schema import read_settings

SCHEMA = 1
TIE = 0.02
"""Ratios this near to 1 are neither gain nor loss: medians of ratios taken in turn still move by
1 to 4 % from run to run (docs/tuning.md), and a pairing shall not go on and off with them."""

_LEAST_SPEED, _MOST_SPEED = 0.001, 1e6
_MOST_DIVERGENCE = 1000.0
_CONTENT = re.compile(r"[0-9a-f]{8,128}")


class MeasuredBy(StrEnum):
    """Which command measured."""

    BENCH = "bench"
    TUNE = "tune"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A profile.

    Attributes:
        device: where it was measured.
        target: content digest of the target.
        draft: content digest of the draft; None where the target was measured alone.
        mnn: version of MNN that it was measured with.
        plain: tokens a second of plain decoding, at the settings that are best for it; of a pair
            that was tuned, of the best without the draft, which may draft from the context.
        paired: tokens a second of the best that the pair reaches, at its own best settings; of a
            target alone, with drafts from the context if they gain, else `plain` again.
        lookup: whether drafts from the context are worth it; None where that was not measured.
        divergence: KL divergence of the target at these settings to its reference, in nats a
            token; None where it was not measured.
        by: which command measured.
        measured_at: when, with a time zone.
        target_settings: best settings of the target; None where nothing was tuned.
        draft_settings: best settings of the draft.
        d: best draft length, ``auto``, or None where it was not tuned.
    """

    device: Device
    target: str
    draft: str | None
    mnn: str
    plain: float
    paired: float
    by: MeasuredBy
    measured_at: datetime
    lookup: bool | None = None
    divergence: float | None = None
    target_settings: Settings = field(default_factory=Settings)
    draft_settings: Settings = field(default_factory=Settings)
    d: int | Literal["auto"] | None = None

    @property
    def ratio(self) -> float:
        """`paired` over `plain`; above 1 is a gain."""
        return self.paired / self.plain

    @property
    def shows_gain(self) -> bool:
        """Whether the pair was faster than the target alone, beyond a tie (see `TIE`)."""
        return self.ratio > 1 + TIE

    @property
    def shows_loss(self) -> bool:
        """Whether the pair was slower than the target alone, beyond a tie."""
        return self.ratio < 1 - TIE


def latest(
    measurements: Iterable[Measurement],
    device: Device,
    target: str,
    draft: str | None,
    mnn: str | None,
) -> Measurement | None:
    """The newest profile of this pair on such a device that has not expired, or None.

    Args:
        measurements: any.
        device: where it shall count.
        target: content digest.
        draft: content digest; None for the target alone.
        mnn: installed version of MNN; None where it is not known, and then any version counts.
    """
    fitting = [
        one
        for one in measurements
        if (one.target, one.draft) == (target, draft)
        and one.device.is_like(device)
        and expiry(one, mnn) is None
    ]
    return max(fitting, key=lambda one: one.measured_at, default=None)


def expiry(measurement: Measurement, mnn: str | None) -> str | None:
    """Why a profile no longer counts with this version of MNN, or None where it does."""
    if mnn is None or mnn == measurement.mnn:
        return None
    return f"measured with MNN {measurement.mnn}, this is {mnn}: measure again"


def read_measurement(path: Path) -> Measurement:
    """Read one file.

    Raises:
        RegistryError: with every problem of the file.
    """
    return read_strictly(
        path, _measurement, what="the measurement", hint="delete the file and measure again"
    )


def _measurement(fields: Fields) -> Measurement | None:
    fields.require("schema", f"the number {SCHEMA}")
    fields.integer("schema", SCHEMA, SCHEMA)
    for name, expected in (
        ("by", "the command that measured"),
        ("device", "a device"),
        ("plain", "tokens a second"),
        ("paired", "tokens a second"),
    ):
        fields.require(name, expected)
    by = fields.choice("by", MeasuredBy)
    inner = fields.mapping("device")
    device = device_in(inner) if inner else None
    time = fields.required_text("measured_at", time_fault)
    mnn = fields.required_text("mnn")
    target = fields.required_text("target", content_fault)
    draft = fields.text("draft", content_fault)
    plain = fields.number("plain", _LEAST_SPEED, _MOST_SPEED)
    paired = fields.number("paired", _LEAST_SPEED, _MOST_SPEED)
    lookup = fields.flag("lookup") if fields.has("lookup") else None
    divergence = fields.number("divergence", 0, _MOST_DIVERGENCE)
    tuned = fields.mapping("settings")
    target_settings = read_settings(tuned.mapping("target")) if tuned else Settings()
    draft_settings = read_settings(tuned.mapping("draft")) if tuned else Settings()
    d = read_d(tuned) if tuned else None
    if tuned:
        if tuned.has("draft") and not fields.has("draft"):
            tuned.wrong("draft", "no settings of a draft where there was none", "some")
        tuned.done()
    fields.done()
    if device is None or by is None or plain is None or paired is None or not time:
        return None
    return Measurement(
        device=device,
        target=target,
        draft=draft,
        mnn=mnn,
        plain=plain,
        paired=paired,
        by=by,
        measured_at=datetime.fromisoformat(time),
        lookup=lookup,
        divergence=divergence,
        target_settings=target_settings,
        draft_settings=draft_settings,
        d=d,
    )


def read_d(fields: Fields) -> int | Literal["auto"] | None:
    """The draft length that a mapping names as ``d``; None where it is missing or none (noted)."""
    node = fields.node("d")
    if isinstance(node, Scalar) and node.value == "auto":
        return "auto"
    return fields.integer("d", 0, MAX_D)


def write_measurement(measurement: Measurement) -> bytes:
    """The bytes of a profile's file; `read_measurement` gives an equal value back, but for what is
    below a thousandth of a GiB, or a millionth of another figure.
    """
    document = given(
        {
            "schema": SCHEMA,
            "by": str(measurement.by),
            "measured_at": measurement.measured_at.astimezone(UTC).isoformat(),
            "mnn": measurement.mnn,
            "device": device_document(measurement.device),
            "target": measurement.target,
            "draft": measurement.draft,
            "plain": round(measurement.plain, 6),
            "paired": round(measurement.paired, 6),
            "lookup": measurement.lookup,
            "divergence": _rounded(measurement.divergence),
            "settings": given(
                {
                    "target": measurement.target_settings.given() or None,
                    "draft": measurement.draft_settings.given() or None,
                    "d": measurement.d,
                }
            )
            or None,
        }
    )
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 6)


def device_document(device: Device) -> dict[str, object]:
    """A device as files describe it; `tokforge_models.device.device_in` reads it."""
    return given(
        {
            "platform": str(device.platform),
            "chip": device.chip,
            "ram_gb": None if device.ram_bytes is None else round(device.ram_bytes / GIB, 3),
            "cores": device.cores,
        }
    )


def given(values: Mapping[str, object]) -> dict[str, object]:
    """The entries that have a value."""
    return {name: value for name, value in values.items() if value is not None}


def time_fault(text: str) -> str | None:
    """What a date and time should have been, or None where it is one with a time zone."""
    expected = "a date and time with a time zone, as 2026-12-01T10:00:00+00:00"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return expected
    return None if moment.tzinfo else expected


def content_fault(text: str) -> str | None:
    """What a content digest should have been, or None where it can be one."""
    return None if _CONTENT.fullmatch(text) else "a hexadecimal content digest"
