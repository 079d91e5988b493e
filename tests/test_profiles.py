"""What a saved profile says of a draft, by what was measured, where, and with which MNN."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profile_kit import DRAFT as DRAFT_CONTENT
from profile_kit import FAST, HERE
from profile_kit import TARGET as CONTENT
from tokforge_models.bundle import Bundle, Role
from tokforge_models.device import Device, Platform
from tokforge_models.resolution.measurement import Measurement
from tokforge_models.resolution.profiles import Profiles

TARGET = Bundle(id="chat", name="Chat", role=Role.CHAT, family="f")
DRAFT = Bundle(id="draft", name="Draft", role=Role.DRAFT, family="f")
BOTH = {"chat": CONTENT, "draft": DRAFT_CONTENT}
FIGURES = "50.0 tokens a second with it, 40.0 without (1.25 times), measured here on 2026-12-01"


def profiles(*measurements: Measurement, mnn: str | None = "3.6.1", contents=BOTH) -> Profiles:
    return Profiles(measurements, HERE, mnn, contents)


def test_a_gain() -> None:
    found = profiles(FAST)
    assert found.of(TARGET, DRAFT) == FAST
    assert found.no_gain(TARGET, DRAFT) is None
    assert found.loss(TARGET, DRAFT) is None
    assert found.notes(TARGET, DRAFT) == (f"draft: {FIGURES}",)


def test_a_loss() -> None:
    found = profiles(replace(FAST, paired=30.0))
    why = found.loss(TARGET, DRAFT)
    assert why == found.no_gain(TARGET, DRAFT)
    assert why is not None
    assert why.startswith(
        "draft is slower here: 30.0 tokens a second with it, 40.0 without (0.75 times)"
    )


def test_a_tie_is_neither() -> None:
    found = profiles(replace(FAST, paired=40.0))
    assert str(found.no_gain(TARGET, DRAFT)).startswith("draft is no gain here: ")
    assert found.loss(TARGET, DRAFT) is None


@pytest.mark.parametrize(
    "found",
    [
        profiles(),
        profiles(replace(FAST, draft=None)),
        profiles(replace(FAST, device=Device(Platform.ANDROID, "a chip"))),
        profiles(FAST, contents=BOTH | {"draft": "cc" * 32}),
        profiles(FAST, contents=BOTH | {"chat": "cc" * 32}),
        profiles(FAST, contents={"chat": CONTENT}),
        profiles(FAST, contents={}),
        profiles(replace(FAST, mnn="3.5.0")),
    ],
)
def test_what_does_not_count(found: Profiles) -> None:
    assert found.of(TARGET, DRAFT) is None
    assert found.no_gain(TARGET, DRAFT) is not None
    assert found.loss(TARGET, DRAFT) is None


def test_the_next_command_is_named_once_both_are_there() -> None:
    assert "tokforge bench chat --save" in str(profiles().no_gain(TARGET, DRAFT))
    assert "--save" not in str(profiles(contents={}).no_gain(TARGET, DRAFT))


def test_an_expired_profile_is_told_unless_a_newer_version_was_measured() -> None:
    old = replace(FAST, mnn="3.5.0")
    said = "measured with MNN 3.5.0, this is 3.6.1: measure again"
    assert profiles(old).notes(TARGET, DRAFT) == (f"chat with draft was {said}",)
    assert said in str(profiles(old).no_gain(TARGET, DRAFT))
    assert profiles(replace(old, draft=None)).notes(TARGET, None) == (f"chat was {said}",)
    assert profiles(old, FAST).notes(TARGET, DRAFT) == (f"draft: {FIGURES}",)
    assert profiles(old, mnn=None).of(TARGET, DRAFT) == old


def test_lookup_that_is_no_gain_is_told() -> None:
    alone = replace(FAST, draft=None, lookup=False)
    assert profiles(alone).notes(TARGET, None) == (
        "drafts from the context were measured to be no gain here on 2026-12-01",
    )
    assert profiles(replace(alone, lookup=True)).notes(TARGET, None) == ()
