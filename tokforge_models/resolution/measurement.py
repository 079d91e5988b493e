"""What was measured on a device about one pair of models, and the settings that were best.

On disk: one JSON file a measurement, written by `write_measurement`, read strictly:

    {"schema": 1, "measured_at": "2026-12-01T10:00:00+00:00",
     "device": {"platform": "linux", "chip": "...", "ram_gb": 15.6, "cores": 8},
     "target": "<content digest>", "draft": "<content digest>", "ratio": 1.27,
     "settings": {"target": {"threads": 2}, "draft": {"threads": 1}, "d": "auto"}}

A pair is named by the content digests of its bundles (`Installed.content`), so a new revision is
a new pair, and a copy under another name is the same.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from tokforge_models.bundle import MAX_D, Settings
from tokforge_models.device import GIB, Device, device_in
from tokforge_models.reading.fields import Fields, read_strictly
from tokforge_models.reading.strict_yaml import Scalar
from tokforge_models.registry.schema import read_settings

SCHEMA = 1
_CONTENT = re.compile(r"[0-9a-f]{8,128}")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One result.

    Attributes:
        device: where it was measured.
        target: content digest of the target.
        draft: content digest of the draft.
        ratio: tokens a second paired, over tokens a second plain; above 1 is a gain.
        measured_at: when, with a time zone.
        target_settings: best settings of the target; None where nothing was tuned.
        draft_settings: best settings of the draft.
        d: best draft length, ``auto``, or None where it was not tuned.
    """

    device: Device
    target: str
    draft: str
    ratio: float
    measured_at: datetime
    target_settings: Settings = field(default_factory=Settings)
    draft_settings: Settings = field(default_factory=Settings)
    d: int | Literal["auto"] | None = None

    @property
    def shows_gain(self) -> bool:
        """Whether the pair was faster than the target alone."""
        return self.ratio > 1


def latest(
    measurements: Iterable[Measurement], device: Device, target: str, draft: str
) -> Measurement | None:
    """The newest measurement of this pair on such a device, or None."""
    fitting = [
        one
        for one in measurements
        if one.target == target and one.draft == draft and one.device.is_like(device)
    ]
    return max(fitting, key=lambda one: one.measured_at, default=None)


def read_measurement(path: Path) -> Measurement:
    """Read one file.

    Raises:
        RegistryError: with every problem of the file.
    """
    return read_strictly(
        path, _measurement, what="the measurement", hint="delete the file and measure again"
    )


def _measurement(fields: Fields) -> Measurement | None:
    for name in ("schema", "device", "ratio"):
        fields.require(name, "a value")
    fields.integer("schema", SCHEMA, SCHEMA)
    inner = fields.mapping("device")
    device = device_in(inner) if inner else None
    ratio = fields.number("ratio", 0, 1000)
    text = fields.required_text("measured_at", time_fault)
    target = fields.required_text("target", content_fault)
    draft = fields.required_text("draft", content_fault)
    tuned = fields.mapping("settings")
    target_settings = read_settings(tuned.mapping("target")) if tuned else Settings()
    draft_settings = read_settings(tuned.mapping("draft")) if tuned else Settings()
    d = read_d(tuned) if tuned else None
    if tuned:
        tuned.done()
    fields.done()
    if device is None or ratio is None or not text:
        return None
    return Measurement(
        device=device,
        target=target,
        draft=draft,
        ratio=ratio,
        measured_at=datetime.fromisoformat(text),
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
    """The bytes of a measurement's file; `read_measurement` gives an equal value back, but for
    RAM below a thousandth of a GiB.
    """
    document = {
        "schema": SCHEMA,
        "measured_at": measurement.measured_at.astimezone(UTC).isoformat(),
        "device": device_document(measurement.device),
        "target": measurement.target,
        "draft": measurement.draft,
        "ratio": round(measurement.ratio, 6),
        "settings": given(
            {
                "target": given(dataclasses.asdict(measurement.target_settings)),
                "draft": given(dataclasses.asdict(measurement.draft_settings)),
                "d": measurement.d,
            }
        ),
    }
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


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
