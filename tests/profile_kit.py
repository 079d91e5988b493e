"""A profile to change: made-up figures of a pair on a made-up device."""

from __future__ import annotations

from datetime import UTC, datetime

from tokforge_models.device import Device, Platform
from tokforge_models.resolution.measurement import MeasuredBy, Measurement

HERE = Device(Platform.LINUX, "a chip")
TARGET, DRAFT = "aa" * 32, "bb" * 32
FAST = Measurement(
    device=HERE,
    target=TARGET,
    draft=DRAFT,
    mnn="3.6.1",
    plain=40.0,
    paired=50.0,
    by=MeasuredBy.BENCH,
    measured_at=datetime(2026, 12, 1, tzinfo=UTC),
)
