"""Measurements: written and read as they are, chosen by pair, device and date."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.bundle import Settings
from tokforge_models.device import GIB, Device, Platform
from tokforge_models.errors import RegistryError
from tokforge_models.resolution.measurement import (
    Measurement,
    latest,
    read_measurement,
    write_measurement,
)

DEVICE = Device(Platform.ANDROID, "SM8850", 8 * GIB, 8)
ONE = Measurement(DEVICE, "aa" * 32, "bb" * 32, 1.25, datetime(2026, 12, 1, 9, 30, tzinfo=UTC))


def test_gain() -> None:
    assert ONE.shows_gain
    assert not replace(ONE, ratio=1.0).shows_gain
    assert not replace(ONE, ratio=0.9).shows_gain


def test_the_newest_of_the_pair_on_such_a_device() -> None:
    later = replace(ONE, ratio=0.9, measured_at=ONE.measured_at + timedelta(days=1))
    others = [
        replace(later, target="cc" * 32),
        replace(later, draft="cc" * 32),
        replace(later, device=Device(Platform.ANDROID, "SM8650")),
        replace(later, device=Device(Platform.LINUX, "SM8850")),
    ]
    assert latest([later, ONE, *others], DEVICE, ONE.target, ONE.draft) == later
    assert latest([ONE, *others], DEVICE, ONE.target, ONE.draft) == ONE
    assert latest(others, DEVICE, ONE.target, ONE.draft) is None


settings = st.builds(
    Settings,
    backend=st.none() | st.sampled_from(["cpu", "opencl"]),
    threads=st.none() | st.integers(1, 64),
    precision=st.none() | st.sampled_from(["low", "normal", "high"]),
    sampler=st.none() | st.just("greedy"),
)
measurements = st.builds(
    Measurement,
    device=st.builds(
        Device,
        platform=st.sampled_from(list(Platform)),
        chip=st.none() | st.sampled_from(["SM8850", 'a "quoted" chip', "on", "12"]),
        ram_bytes=st.none() | st.integers(0, 64).map(lambda gib: gib * GIB),
        cores=st.none() | st.integers(1, 256),
    ),
    target=st.sampled_from(["aa" * 32, "12" * 8]),
    draft=st.just("bb" * 32),
    ratio=st.integers(0, 10_000_000).map(lambda n: n / 1e6),
    measured_at=st.datetimes(timezones=st.just(timezone(timedelta(hours=2)))).filter(
        lambda moment: 1971 < moment.year < 9000
    ),
    target_settings=settings,
    draft_settings=settings,
    d=st.none() | st.just("auto") | st.integers(0, 15),
)


@given(measurements)
def test_round_trip(tmp_path_factory, measurement: Measurement) -> None:
    path = tmp_path_factory.getbasetemp() / "measurement.json"
    path.write_bytes(write_measurement(measurement))
    assert read_measurement(path) == measurement


def document(**changes: object) -> str:
    return json.dumps(json.loads(write_measurement(ONE)) | changes)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", [""]),
        ("[]", [""]),
        ("{}", ["schema", "device", "ratio", "measured_at", "target", "draft"]),
        (document(schema=2), ["schema"]),
        (document(ratio="fast"), ["ratio"]),
        (document(ratio=-1), ["ratio"]),
        (document(measured_at="yesterday"), ["measured_at"]),
        (document(measured_at="2026-12-01T10:00:00"), ["measured_at"]),
        (document(target="../x"), ["target"]),
        (document(device={"chip": "x"}), ["device.platform"]),
        (document(settings={"d": 16}), ["settings.d"]),
        (document(settings={"d": "best"}), ["settings.d"]),
        (document(settings={"target": {"threads": 0}}), ["settings.target.threads"]),
        (document(settings={"x": 1}), ["settings.x"]),
        (document(extra=1), ["extra"]),
    ],
)  # fmt: skip
def test_files_that_are_no_measurement(text: str, keys: list[str], tmp_path: Path) -> None:
    path = tmp_path / "measurement.json"
    path.write_text(text)
    with pytest.raises(RegistryError) as caught:
        read_measurement(path)
    assert [problem.key for problem in caught.value.problems] == keys
