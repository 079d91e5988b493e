"""Which draft a target gets: every row of the published table, the policy, settings and trace."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.bundle import Settings
from tokforge_models.device import GIB, Device, Platform, read_device
from tokforge_models.errors import Refused, UnknownBundle
from tokforge_models.installed import Installed
from tokforge_models.model_files.fingerprint import Fingerprint
from tokforge_models.registry.registry import Registry, unlisted
from tokforge_models.resolution.measurement import MeasuredBy, Measurement, read_measurement
from tokforge_models.resolution.resolution import Overrides, Resolution, resolve

PACK = "acceleration-pack-qwen3-0.6b"
PAIRED = "acceleration-pack-qwen3-0.6b-14b-paired"
QWEN3 = ("qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-14b")
QWEN35 = ("qwen3.5-0.8b", "qwen3.5-2b", "qwen3.5-4b", "qwen3.5-9b", "qwen3.5-35b-a3b")
PHONE = Device(Platform.ANDROID, "SM8850", 15 * GIB, 8)
WORDS = Fingerprint((b"a", b"b", b"c"), frozenset({2}), frozenset({2}), attention="full")


def installed(*names: str) -> dict[str, Installed]:
    return {name: Installed(name, "1", Path(name), f"content of {name}") for name in names}


def measured(ratio: float, device: Device = PHONE, target: str = "qwen3-1.7b") -> Measurement:
    return Measurement(
        device=device,
        target=f"content of {target}",
        draft=f"content of {PACK}",
        mnn="3.6.1",
        plain=40.0,
        paired=40.0 * ratio,
        by=MeasuredBy.BENCH,
        measured_at=datetime(2026, 12, 1, tzinfo=UTC),
    )


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return Registry.load(config_dir=tmp_path_factory.mktemp("config"))


def with_layer(tmp_path: Path, text: str) -> Registry:
    path = tmp_path / "layer.yaml"
    path.write_text("schema: 1\n" + text)
    return Registry.load([path], config_dir=tmp_path)


def chosen(resolution: Resolution) -> tuple[str | None, bool]:
    return resolution.draft.id if resolution.draft else None, resolution.lookup


def phone(ram_gib: float, platform: str = "android") -> Device:
    return Device(Platform(platform), "SM8850", round(ram_gib * GIB), 8)


NO_DRAFT, OFF = (None, True), (None, False)
BOTH = (PACK, "qwen3-1.7b")
TABLE = [
    ("qwen3-4b", PHONE, (), (), (PACK, True)),
    ("qwen3-8b", PHONE, (), (), (PACK, True)),
    ("qwen3-14b", PHONE, (), (), (PACK, True)),
    ("qwen3-14b", PHONE, (PACK,), (), (PACK, True)),
    ("qwen3-14b", PHONE, (PAIRED,), (), (PAIRED, True)),
    ("qwen3-14b", PHONE, (PACK, PAIRED), (), (PAIRED, True)),
    ("qwen3-8b", PHONE, (PACK, PAIRED), (), (PACK, True)),
    ("qwen3-1.7b", PHONE, (), (), NO_DRAFT),
    ("qwen3-1.7b", PHONE, BOTH, (), NO_DRAFT),
    ("qwen3-1.7b", PHONE, BOTH, (measured(1.2),), (PACK, True)),
    ("qwen3-1.7b", PHONE, BOTH, (measured(0.9),), NO_DRAFT),
    ("qwen3-1.7b", PHONE, BOTH, (measured(1.0),), NO_DRAFT),
    ("qwen3-1.7b", PHONE, BOTH, (measured(1.2, Device(Platform.ANDROID, "SM8650")),), NO_DRAFT),
    ("qwen3-1.7b", PHONE, BOTH, (measured(1.2, target="qwen3-8b"),), NO_DRAFT),
    ("qwen3-1.7b", PHONE, (PACK,), (measured(1.2),), NO_DRAFT),
    ("qwen3-30b-a3b", PHONE, (PACK,), (), OFF),
    *((name, PHONE, (PACK,), (), OFF) for name in QWEN35),
    *((name, phone(15, "ios"), (PACK, PAIRED), (), NO_DRAFT) for name in QWEN3),
    *((name, phone(3.39), (PACK, PAIRED), (), NO_DRAFT) for name in QWEN3),
    *((name, phone(3.4), (PACK,), (), (PACK, True)) for name in QWEN3[1:]),
    ("qwen3-1.7b", phone(3.39), BOTH, (measured(1.2, phone(3.39)),), NO_DRAFT),
    ("qwen3-1.7b", phone(3.4), BOTH, (measured(1.2, phone(3.4)),), (PACK, True)),
    *(("qwen3-8b", phone(15, name), (), (), (PACK, True)) for name in ("linux", "macos")),
    ("qwen3-8b", phone(15, "windows"), (), (), (PACK, True)),
    ("qwen3-8b", Device(Platform.ANDROID), (), (), (PACK, True)),
    ("qwen3-0.6b", PHONE, (PACK,), (), NO_DRAFT),
    ("demo-chat", PHONE, (), (), ("demo-draft", True)),
    ("demo-chat", phone(0.5, "ios"), (), (), ("demo-draft", True)),
]


@pytest.mark.parametrize(("target", "device", "there", "measurements", "expected"), TABLE)
def test_the_table(registry, target, device, there, measurements, expected) -> None:
    resolution = resolve(
        target,
        registry=registry,
        device=device,
        installed=installed(*there),
        measurements=measurements,
    )
    assert chosen(resolution) == expected
    assert resolution.reason
    assert [line.rule for line in resolution.trace] == [rule.id for rule in registry.rules]
    assert [line.rule for line in resolution.trace if line.applied] == (
        [resolution.rule] if resolution.rule else []
    )
    assert all(line.why for line in resolution.trace)


@pytest.mark.parametrize(
    ("device", "why"),
    [
        (phone(15, "ios"), "is not for ios (it runs on android, linux, macos, windows)"),
        (phone(3.39), "needs a device with 4 GB of RAM or more, and this one reports 3.39 GiB"),
    ],
)
def test_the_trace_says_that_needs_are_not_met(registry, device, why) -> None:
    resolution = resolve("qwen3-8b", registry=registry, device=device)
    [line] = [line for line in resolution.trace if line.rule == "qwen3-8b"]
    assert why in line.why
    assert why in resolution.reason
    assert not line.applied


def test_a_model_that_no_rule_names(registry) -> None:
    assert resolve("qwen3-0.6b", registry=registry, device=PHONE).reason == (
        "no rule names Qwen3 0.6B"
    )
    stranger = resolve(unlisted("my-folder"), registry=registry, device=PHONE)
    assert chosen(stranger) == NO_DRAFT
    assert stranger.rule is None


def test_an_imported_model_that_no_registry_knows(registry) -> None:
    resolution = resolve("mine", registry=registry, device=PHONE, installed=installed("mine"))
    assert chosen(resolution) == NO_DRAFT
    with pytest.raises(UnknownBundle):
        resolve("mine", registry=registry, device=PHONE)


@pytest.mark.parametrize("name", [PACK, PAIRED, "demo-draft", "Acceleration Pack"])
def test_a_draft_is_no_target(registry, name) -> None:
    with pytest.raises(Refused, match="is a draft: it proposes tokens") as caught:
        resolve(name, registry=registry, device=PHONE)
    assert caught.value.exit_code == 7


def test_the_card_and_the_older_file_disagree_about_4b_alone(registry) -> None:
    notes = resolve("qwen3-4b", registry=registry, device=PHONE).notes
    assert any("runtime_config.json" in note and "degenerates" in note for note in notes)
    notes = resolve("qwen3-8b", registry=registry, device=PHONE).notes
    assert not any("runtime_config.json" in note for note in notes)


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
def test_off_android_it_is_this_projects_word(registry, platform) -> None:
    reason = resolve("qwen3-8b", registry=registry, device=phone(15, platform)).reason
    assert f"running it on {platform} is this project's choice" in reason
    assert "this project's" not in resolve("qwen3-8b", registry=registry, device=PHONE).reason


def test_a_draft_that_is_not_installed_is_still_the_answer(registry) -> None:
    resolution = resolve("qwen3-8b", registry=registry, device=PHONE)
    assert f"{PACK} is not installed: tokforge pull {PACK} brings it" in resolution.notes
    resolution = resolve("qwen3-8b", registry=registry, device=PHONE, installed=installed(PACK))
    assert not any("not installed" in note for note in resolution.notes)


def test_a_listed_chip(tmp_path: Path) -> None:
    text = (
        "pairings:\n"
        f"  - {{id: chips, targets: [qwen3-1.7b], use: {PACK}, chips: [SM8850], reason: r}}\n"
    )
    registry = with_layer(tmp_path, text)
    assert chosen(resolve("qwen3-1.7b", registry=registry, device=PHONE)) == (PACK, True)
    other = Device(Platform.ANDROID, "SM8650", 15 * GIB)
    resolution = resolve("qwen3-1.7b", registry=registry, device=other)
    assert chosen(resolution) == NO_DRAFT
    assert "SM8650 is not among the listed chips (SM8850)" in resolution.trace[0].why


def test_a_resolution_says_what_it_rests_on(registry) -> None:
    statement = resolve("qwen3-8b", registry=registry, device=PHONE).statement
    assert statement is not None
    assert statement.id == "tokforge-card"
    assert resolve("qwen3-0.6b", registry=registry, device=PHONE).statement is None


def test_a_users_off(tmp_path: Path) -> None:
    registry = with_layer(
        tmp_path, "pairings:\n  - {id: heat, targets: [qwen3-8b], use: off, reason: too hot}\n"
    )
    resolution = resolve("qwen3-8b", registry=registry, device=PHONE)
    assert chosen(resolution) == OFF
    assert (resolution.rule, resolution.reason) == ("heat", "too hot")
    assert resolution.settings.d == 0
    decided = [line.why for line in resolution.trace if line.rule == "qwen3-8b"]
    assert decided == ["heat decided before"]
    others = [line.why for line in resolution.trace if line.rule == "qwen3.5-off"]
    assert others == ["it is about the family qwen3.5"]
    assert resolution.statement is None
    assert chosen(resolve("qwen3-4b", registry=registry, device=PHONE)) == (PACK, True)


def test_what_a_target_needs_is_told_and_refuses_nothing(tmp_path: Path) -> None:
    registry = with_layer(
        tmp_path,
        "bundles:\n  mine: {name: Mine, role: chat, family: qwen3, sources: ['path:x'],\n"
        "    needs: {platforms: [android], min_ram_gb: 12}}\n"
        "pairings:\n  - {id: m, targets: [mine], use: none, reason: r}\n",
    )
    for device, note in (
        (phone(15), None),
        (phone(8), "Mine needs a device with 12 GB of RAM or more, and this one reports 8.00 GiB"),
        (phone(15, "linux"), "Mine is not for linux (it runs on android)"),
        (
            Device(Platform.ANDROID),
            "mine needs 12 GB of RAM; how much this device has is not known",
        ),
    ):
        resolution = resolve("mine", registry=registry, device=device)
        assert resolution.notes == ((note,) if note else ())
        assert resolution.rule == "m"


def test_a_rule_for_a_platform(tmp_path: Path) -> None:
    registry = with_layer(
        tmp_path,
        "pairings:\n  - {id: p, targets: [qwen3-8b], use: none, platforms: [linux], reason: r}\n",
    )
    assert chosen(resolve("qwen3-8b", registry=registry, device=phone(15, "linux"))) == NO_DRAFT
    on_android = resolve("qwen3-8b", registry=registry, device=PHONE)
    assert on_android.trace[0].why == "it is for linux, not for android"


def test_auto_falls_back_where_the_content_does_not_fit(registry) -> None:
    other = Fingerprint((b"a", b"x", b"c"), frozenset(), frozenset(), attention="full")
    names = ("qwen3-14b", PACK, PAIRED)
    prints = {"qwen3-14b": WORDS, PAIRED: other, PACK: WORDS}
    resolution = resolve(
        "qwen3-14b",
        registry=registry,
        device=PHONE,
        installed=installed(*names),
        fingerprints=prints,
    )
    assert chosen(resolution) == (PACK, True)
    [line] = [line for line in resolution.trace if line.rule == "qwen3-14b-paired"]
    assert "id 1 is 'b' in the target and 'x' in the draft" in line.why
    prints[PACK] = other
    resolution = resolve(
        "qwen3-14b",
        registry=registry,
        device=PHONE,
        installed=installed(*names),
        fingerprints=prints,
    )
    assert chosen(resolution) == NO_DRAFT
    assert "id 1" in resolution.reason


def test_differences_that_do_no_harm_are_named(registry) -> None:
    draft = Fingerprint(WORDS.tokens, WORDS.special_ids, frozenset({1, 2}), attention="full")
    resolution = resolve(
        "qwen3-8b",
        registry=registry,
        device=PHONE,
        installed=installed("qwen3-8b", PACK),
        fingerprints={"qwen3-8b": WORDS, PACK: draft},
    )
    assert chosen(resolution) == (PACK, True)
    assert any("the stop tokens differ" in note for note in resolution.notes)


def test_explicit_choices(registry) -> None:
    plain = resolve("qwen3-8b", registry=registry, device=PHONE, draft="none")
    assert chosen(plain) == OFF
    assert (plain.settings.d, plain.settings.draft) == (0, None)
    lookup = resolve("qwen3-30b-a3b", registry=registry, device=PHONE, draft="lookup")
    assert chosen(lookup) == NO_DRAFT
    named = resolve("qwen3-0.6b", registry=registry, device=PHONE, draft="acceleration pack")
    assert chosen(named) == (PACK, True)
    assert all("decided before any rule" in line.why for line in named.trace)
    assert named.rule is None


def test_an_explicit_draft_that_cannot_work_is_refused(registry) -> None:
    other = Fingerprint((b"z",), frozenset(), frozenset(), attention="full")
    linear = Fingerprint(WORDS.tokens, frozenset(), frozenset(), attention="mixed")
    for device, prints, why in (
        (phone(15, "ios"), {}, "is not for ios"),
        (phone(3), {}, "4 GB of RAM"),
        (PHONE, {"qwen3-8b": WORDS, PACK: other}, "id 0 is 'a' in the target and 'z'"),
        (PHONE, {"qwen3-8b": linear, PACK: WORDS}, "the target has linear attention"),
    ):
        with pytest.raises(Refused, match=why):
            resolve("qwen3-8b", registry=registry, device=device, fingerprints=prints, draft=PACK)
    with pytest.raises(UnknownBundle):
        resolve("qwen3-8b", registry=registry, device=PHONE, draft="qwen3-0.6")
    with pytest.raises(Refused, match="lookup cannot work"):
        resolve(
            "qwen3-8b",
            registry=registry,
            device=PHONE,
            fingerprints={"qwen3-8b": linear},
            draft="lookup",
        )


def test_auto_looks_nothing_up_where_the_target_cannot_roll_back(registry) -> None:
    linear = Fingerprint(WORDS.tokens, frozenset(), frozenset(), attention="linear")
    prints = {"qwen3-0.6b": linear}
    resolution = resolve("qwen3-0.6b", registry=registry, device=PHONE, fingerprints=prints)
    assert not resolution.lookup
    assert resolution.settings.d == 0


def test_settings_of_the_card_on_android_and_here(registry) -> None:
    settings = resolve("qwen3-8b", registry=registry, device=PHONE).settings
    assert settings.target == Settings(backend="opencl", sampler="greedy")
    assert settings.draft == Settings("cpu", 2, "low", "low", "high", "greedy")
    assert (settings.d, settings.d_recommended) == ("auto", 3)
    here = resolve("qwen3-8b", registry=registry, device=phone(15, "linux")).settings
    assert here.target.backend is None
    assert here.draft == settings.draft


def test_settings_strongest_first(registry) -> None:
    there = installed("qwen3-8b", PACK)
    there["qwen3-8b"] = Installed(
        "qwen3-8b", "1", Path("x"), "content of qwen3-8b",
        Settings("cpu", 4, "low", "low", "normal", "mixed"),
    )  # fmt: skip
    profile = replace(
        measured(1.5, target="qwen3-8b"),
        target_settings=Settings(threads=3, precision="normal"),
        draft_settings=Settings(threads=1),
        d=4,
    )

    def settings(measurements=(), overrides=None):
        return resolve(
            "qwen3-8b",
            registry=registry,
            device=PHONE,
            installed=there,
            measurements=measurements,
            overrides=overrides,
        ).settings

    # The registry's advice is over the bundle's own config.json, whose sampler does not count.
    assert settings().target == Settings("opencl", 4, "low", "low", "normal", "greedy")
    tuned = settings([profile])
    assert tuned.target == Settings("opencl", 3, "normal", "low", "normal", "greedy")
    assert tuned.draft is not None
    assert (tuned.draft.threads, tuned.d) == (1, 4)
    flags = Overrides(Settings(threads=7, sampler="topP"), Settings(threads=6), 2)
    asked = settings([profile], flags)
    assert (asked.target.threads, asked.target.sampler, asked.target.precision) == (
        7, "topP", "normal",
    )  # fmt: skip
    assert asked.draft is not None
    assert (asked.draft.threads, asked.d) == (6, 2)
    assert settings([profile], Overrides(d=0)).d == 0


platforms = st.sampled_from(list(Platform))
devices = st.builds(
    Device,
    platforms,
    st.none() | st.sampled_from(["SM8850", "x"]),
    st.none() | st.integers(0, 2**36),
)  # fmt: skip


@given(
    target=st.sampled_from([*QWEN3, *QWEN35, "qwen3-0.6b", "qwen3-30b-a3b", "demo-chat"]),
    device=devices,
    there=st.sets(st.sampled_from([PACK, PAIRED, *QWEN3])),
    ratio=st.floats(0, 5),
    fits=st.booleans(),
)
def test_auto_never_fails_and_explains_itself(registry, target, device, there, ratio, fits) -> None:
    other = WORDS if fits else Fingerprint((b"z",), frozenset(), frozenset(), attention="full")
    resolution = resolve(
        target,
        registry=registry,
        device=device,
        installed=installed(*there),
        fingerprints={name: other if name in {PACK, PAIRED} else WORDS for name in there},
        measurements=[measured(ratio, device)],
    )
    applied = [line for line in resolution.trace if line.applied]
    assert len(applied) == (1 if resolution.rule else 0)
    assert len(resolution.trace) == len(registry.rules)
    if resolution.draft:
        assert resolution.lookup
        assert resolution.draft.needs.platforms is None or (
            device.platform in resolution.draft.needs.platforms
        )
    assert (resolution.settings.draft is None) == (resolution.draft is None)
    assert (resolution.settings.d == 0) == (resolution.draft is None and not resolution.lookup)


REST = ("qwen3-8b", PACK)
NEW, OLD = "3.6.1", "3.5.0"


def answered(registry, profiles, draft="auto", mnn=NEW, target="qwen3-8b", overrides=None):
    return resolve(
        target,
        registry=registry,
        device=PHONE,
        installed=installed(*REST, "qwen3-1.7b"),
        measurements=profiles,
        mnn=mnn,
        draft=draft,
        overrides=overrides,
    )


def test_a_measured_loss_turns_a_pairing_off_with_its_figures(registry) -> None:
    slow = replace(measured(1.0, target="qwen3-8b"), plain=45.0, paired=41.2)
    resolution = answered(registry, [slow])
    assert chosen(resolution) == NO_DRAFT
    assert resolution.rule is None
    assert resolution.reason == (
        f"no rule applies: {PACK} is slower here: 41.2 tokens a second with it, 45.0 without "
        "(0.92 times), measured here on 2026-12-01"
    )
    asked = answered(registry, [slow], draft=PACK)
    assert chosen(asked) == (PACK, True)
    assert any("41.2 tokens a second with it, 45.0 without" in note for note in asked.notes)


def test_a_measured_gain_is_told(registry) -> None:
    fast = replace(measured(1.0), plain=32.4, paired=41.2)
    resolution = answered(registry, [fast], target="qwen3-1.7b")
    assert chosen(resolution) == (PACK, True)
    assert any(
        "41.2 tokens a second with it, 32.4 without (1.27 times)" in note
        for note in resolution.notes
    )


def test_before_a_measurement_the_next_command_is_named(registry) -> None:
    reason = answered(registry, [], target="qwen3-1.7b").reason
    assert "tokforge bench qwen3-1.7b --save makes one" in reason
    bare = resolve("qwen3-1.7b", registry=registry, device=PHONE).reason
    assert "--save" not in bare


def test_an_expired_measurement_is_told_and_counts_for_nothing(registry) -> None:
    old = replace(measured(1.5), mnn=OLD)
    resolution = answered(registry, [old], target="qwen3-1.7b")
    assert chosen(resolution) == NO_DRAFT
    assert "counts: measured with MNN 3.5.0, this is 3.6.1: measure again" in resolution.reason
    slow = replace(measured(0.5, target="qwen3-8b"), mnn=OLD)
    resolution = answered(registry, [slow])
    assert chosen(resolution) == (PACK, True)
    assert (
        f"qwen3-8b with {PACK} was measured with MNN 3.5.0, this is 3.6.1: measure again"
        in resolution.notes
    )


def test_where_the_draft_is_off_the_target_has_its_own_profile(registry) -> None:
    slow = measured(0.5, target="qwen3-8b")
    alone = replace(slow, draft=None, target_settings=Settings(threads=3), d=2, lookup=True)
    resolution = answered(registry, [slow, alone])
    assert chosen(resolution) == NO_DRAFT
    assert (resolution.settings.target.threads, resolution.settings.d) == (3, 2)
    # The settings of the registry for a pair are not those of the target alone.
    assert resolution.settings.target.backend is None
    resolution = answered(registry, [slow, replace(alone, lookup=False)])
    assert chosen(resolution) == OFF
    assert resolution.settings.d == 0
    assert any("no gain here on 2026-12-01" in note for note in resolution.notes)
    assert answered(registry, [replace(alone, lookup=False)], draft="lookup").lookup
    assert not answered(registry, [replace(alone, lookup=True)], draft="none").lookup


versions = st.sampled_from([NEW, OLD])
settings = st.builds(
    Settings,
    threads=st.none() | st.integers(1, 8),
    dynamic_option=st.none() | st.integers(0, 9),
)
profiles = st.builds(
    Measurement,
    device=st.sampled_from([PHONE, Device(Platform.ANDROID, "SM8650")]),
    target=st.sampled_from([f"content of {name}" for name in ("qwen3-1.7b", "qwen3-8b")]),
    draft=st.sampled_from([None, f"content of {PACK}"]),
    mnn=versions,
    plain=st.just(40.0),
    paired=st.sampled_from([20.0, 39.1, 39.3, 40.0, 40.7, 40.9, 80.0]),
    by=st.sampled_from(MeasuredBy),
    measured_at=st.integers(1, 28).map(lambda day: datetime(2026, 11, day, tzinfo=UTC)),
    lookup=st.sampled_from([None, True, False]),
    target_settings=settings,
    draft_settings=settings,
    d=st.sampled_from([None, "auto", 3]),
)


def newest(found, target: str, draft: str | None, mnn: str) -> Measurement | None:
    fitting = [
        one
        for one in found
        if (one.device, one.target, one.draft, one.mnn)
        == (PHONE, f"content of {target}", f"content of {draft}" if draft else None, mnn)
    ]
    return max(fitting, key=lambda one: one.measured_at, default=None)


@given(
    target=st.sampled_from(["qwen3-1.7b", "qwen3-8b"]),
    found=st.lists(profiles, max_size=8, unique_by=lambda one: one.measured_at),
    mnn=versions,
    draft=st.sampled_from(["auto", "none", "lookup", PACK]),
    flags=st.builds(Overrides, target=settings, draft=settings, d=st.sampled_from([None, 1])),
    lookup=st.sampled_from([None, True, False]),
)
def test_what_was_measured_decides_where_it_counts(
    registry, target, found, mnn, draft, flags, lookup
) -> None:
    flags = replace(flags, lookup=lookup)
    resolution = answered(registry, found, draft, mnn, target, flags)
    pair, alone = (newest(found, target, name, mnn) for name in (PACK, None))
    paired = resolution.draft is not None
    if draft == "auto":
        ratio = pair.paired / pair.plain if pair else None
        if target == "qwen3-1.7b":
            assert paired == (ratio is not None and ratio > 1.02)
        else:
            assert paired == (ratio is None or ratio >= 0.98)
    else:
        assert paired == (draft == PACK)
    counts = pair if paired else alone
    if draft in {"none", "lookup"}:
        assert resolution.lookup == (draft == "lookup")
    else:
        measured_lookup = counts.lookup if counts else None
        wishes = [wish for wish in (lookup, measured_lookup, True) if wish is not None]
        assert resolution.lookup == wishes[0]
    neutral = [replace(measured(2.0, target=target), mnn=mnn)]
    base = answered(registry, neutral, draft if paired else "none", mnn, target).settings
    tuned = counts.target_settings if counts else Settings()
    assert resolution.settings.target == flags.target.over(tuned).over(base.target)
    if resolution.settings.draft:
        assert base.draft is not None
        tuned = counts.draft_settings if counts else Settings()
        assert resolution.settings.draft == flags.draft.over(tuned).over(base.draft)
    if not paired and not resolution.lookup:
        assert resolution.settings.d == 0
    else:
        assert resolution.settings.d == (flags.d or (counts.d if counts else None) or "auto")
    useless = [one for one in found if one not in (pair, alone)]
    rest = answered(registry, [one for one in found if one not in useless], draft, mnn, target)
    same = answered(registry, found, draft, mnn, target)
    assert (chosen(rest), rest.settings) == (chosen(same), same.settings)


def test_the_documents_examples_are_right(tmp_path: Path) -> None:
    root = Path(__file__).parent.parent
    text = (root / "docs" / "resolution.md").read_text(encoding="utf-8")
    device, layer = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "device.yaml").write_text(device, encoding="utf-8")
    assert read_device(tmp_path / "device.yaml").cores == 8
    (tmp_path / "layer.yaml").write_text(layer, encoding="utf-8")
    stand_ins = Registry.load([tmp_path / "layer.yaml"], config_dir=tmp_path)
    assert stand_ins.find(PACK).name == "Stand-in for the pack"
    [measurement] = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "measurement.json").write_text(measurement, encoding="utf-8")
    assert read_measurement(tmp_path / "measurement.json").shows_gain
