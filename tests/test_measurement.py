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
    MeasuredBy,
    Measurement,
    expiry,
    latest,
    read_measurement,
    write_measurement,
)

DEVICE = Device(Platform.ANDROID, "SM8850", 8 * GIB, 8)
ONE = Measurement(
    device=DEVICE,
    target="aa" * 32,
    draft="bb" * 32,
    mnn="3.6.1",
    plain=40.0,
    paired=50.0,
    by=MeasuredBy.TUNE,
    measured_at=datetime(2026, 12, 1, 9, 30, tzinfo=UTC),
)


@pytest.mark.parametrize(
    ("paired", "gain", "loss"),
    [
        (50.0, True, False),
        (40.9, True, False),
        (40.7, False, False),
        (40.0, False, False),
        (39.3, False, False),
        (39.1, False, True),
        (0.1, False, True),
    ],
)
def test_gain_loss_and_tie(paired: float, gain: bool, loss: bool) -> None:
    one = replace(ONE, paired=paired)
    assert (one.shows_gain, one.shows_loss) == (gain, loss)


def test_the_newest_of_the_pair_on_such_a_device() -> None:
    later = replace(ONE, paired=30.0, measured_at=ONE.measured_at + timedelta(days=1))
    others = [
        replace(later, target="cc" * 32),
        replace(later, draft="cc" * 32),
        replace(later, draft=None),
        replace(later, device=Device(Platform.ANDROID, "SM8650")),
        replace(later, device=Device(Platform.LINUX, "SM8850")),
        replace(later, mnn="3.5.0"),
    ]
    pair = (DEVICE, ONE.target, ONE.draft)
    assert latest([later, ONE, *others], *pair, "3.6.1") == later
    assert latest([ONE, *others], *pair, "3.6.1") == ONE
    assert latest(others, *pair, "3.6.1") is None
    assert latest(others, *pair, None) == others[-1]
    assert latest(others, DEVICE, ONE.target, None, "3.6.1") == others[2]


def test_another_mnn_makes_a_profile_expire() -> None:
    assert expiry(ONE, "3.6.1") is None
    assert expiry(ONE, None) is None
    assert expiry(replace(ONE, mnn="3.5.0"), "3.6.1") == (
        "measured with MNN 3.5.0, this is 3.6.1: measure again"
    )


settings = st.builds(
    Settings,
    backend=st.none() | st.sampled_from(["cpu", "opencl"]),
    threads=st.none() | st.integers(1, 64),
    precision=st.none() | st.sampled_from(["low", "normal", "high"]),
    sampler=st.none() | st.just("greedy"),
    dynamic_option=st.none() | st.integers(0, 9),
)
speeds = st.integers(1000, 10**10).map(lambda n: n / 1e6)
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
    mnn=st.sampled_from(["3.6.1", "3.10", "4"]),
    plain=speeds,
    paired=speeds,
    by=st.sampled_from(MeasuredBy),
    lookup=st.none() | st.booleans(),
    divergence=st.none() | st.integers(0, 10**9).map(lambda n: n / 1e6),
    measured_at=st.datetimes(timezones=st.just(timezone(timedelta(hours=2)))).filter(
        lambda moment: 1971 < moment.year < 9000
    ),
    target_settings=settings,
    draft_settings=settings,
    d=st.none() | st.just("auto") | st.integers(0, 15),
)
alone = measurements.map(lambda one: replace(one, draft=None, draft_settings=Settings()))


@given(measurements | alone)
def test_round_trip(tmp_path_factory, measurement: Measurement) -> None:
    path = tmp_path_factory.getbasetemp() / "measurement.json"
    path.write_bytes(write_measurement(measurement))
    assert read_measurement(path) == measurement


def document(**changes: object) -> str:
    return json.dumps(json.loads(write_measurement(ONE)) | changes)


def without_draft(**changes: object) -> str:
    return json.dumps(json.loads(write_measurement(replace(ONE, draft=None))) | changes)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", [""]),
        ("[]", [""]),
        (
            "{}",
            ["schema", "by", "device", "plain", "paired", "measured_at", "mnn", "target"],
        ),
        (document(schema=2), ["schema"]),
        (document(by="hand"), ["by"]),
        (document(plain=0), ["plain"]),
        (document(paired=-1.5), ["paired"]),
        (document(paired="fast"), ["paired"]),
        (document(ratio=1.5), ["ratio"]),
        (document(mnn=3.6), ["mnn"]),
        (document(lookup="maybe"), ["lookup"]),
        (document(divergence=-1), ["divergence"]),
        (document(draft="../x"), ["draft"]),
        (document(settings={"draft": {"dynamic_option": 10}}), ["settings.draft.dynamic_option"]),
        (document(measured_at="yesterday"), ["measured_at"]),
        (document(measured_at="2026-12-01T10:00:00"), ["measured_at"]),
        (document(target="../x"), ["target"]),
        (document(device={"chip": "x"}), ["device.platform"]),
        (document(settings={"d": 16}), ["settings.d"]),
        (document(settings={"d": "best"}), ["settings.d"]),
        (document(settings={"target": {"threads": 0}}), ["settings.target.threads"]),
        (document(settings={"x": 1}), ["settings.x"]),
        (document(extra=1), ["extra"]),
        (without_draft(settings={"draft": {"threads": 1}}), ["settings.draft"]),
    ],
)  # fmt: skip
def test_files_that_are_no_measurement(text: str, keys: list[str], tmp_path: Path) -> None:
    path = tmp_path / "measurement.json"
    path.write_text(text)
    with pytest.raises(RegistryError) as caught:
        read_measurement(path)
    assert [problem.key for problem in caught.value.problems] == keys
