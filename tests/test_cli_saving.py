"""Saving profiles, and what that changes about how a target runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profile_kit import FAST
from tokforge_models.bundle import Settings
from tokforge_models.cli.app import run
from tokforge_models.cli.saving import changes, save_profiles
from tokforge_models.cli.world import World
from tokforge_models.device_probe import installed_mnn, probe_device
from tokforge_models.resolution.measurement import Measurement


@pytest.fixture
def world(home: Path, capsys: pytest.CaptureFixture[str]) -> World:
    assert run(["pull", "demo-chat", "demo-draft"]) == 0
    capsys.readouterr()
    return World.open()


def profile(world: World, paired: float) -> Measurement:
    contents = world.resolve("demo-chat").contents
    return replace(
        FAST,
        device=probe_device(),
        target=contents["demo-chat"],
        draft=contents["demo-draft"],
        mnn=installed_mnn() or "3.6.1",
        plain=100.0,
        paired=paired,
    )


def test_a_loss_takes_the_draft_away(world: World) -> None:
    files, said = save_profiles(world, "demo-chat", [profile(world, 50.0)])
    assert [file.parent for file in files] == [world.store.home / "measurements"]
    assert said == ("draft: demo-draft, now none",)
    assert world.resolve("demo-chat").resolution.draft is None


def test_a_gain_with_settings(world: World) -> None:
    tuned = replace(profile(world, 150.0), d=3, lookup=False, target_settings=Settings(threads=7))
    _, said = save_profiles(world, "demo-chat", [tuned])
    assert {"lookup: allowed, now off", "d: auto, now 3"} <= set(said)
    assert any(each.startswith("threads of the target: ") and "now 7" in each for each in said)
    _, again = save_profiles(world, "demo-chat", [tuned])
    assert again == ()


def test_what_the_bundle_says_has_a_name(world: World) -> None:
    before = world.resolve("demo-chat").resolution
    bare = replace(before.settings, target=Settings())
    tuned = replace(before.settings, target=Settings(dynamic_option=2))
    assert changes(replace(before, settings=bare), replace(before, settings=tuned)) == (
        "dynamic_option of the target: as the bundle says, now 2",
    )
