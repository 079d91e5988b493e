"""Asking MNN for its backends: what it says, and children that die, hang or talk."""

from __future__ import annotations

import pytest

from demo_pair import needs_mnn
from tokforge_engine import backends as module
from tokforge_engine.backends import BACKENDS, ask_mnn, backends
from tokforge_engine.settings import RuntimeSettings


@needs_mnn
def test_mnn_has_a_cpu() -> None:
    assert ask_mnn("cpu") == "here"


@needs_mnn
@pytest.mark.parametrize("name", BACKENDS)
def test_mnn_tells_of_each_backend(name: str) -> None:
    assert ask_mnn(name) in {"here", "missing"}


@needs_mnn
def test_mnn_cannot_make_what_does_not_exist() -> None:
    # MNN_FORWARD_USER_3, which nothing registers.
    assert ask_mnn("11") == "missing"


@pytest.mark.parametrize(
    "code",
    [
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "print('here and more')",
        "raise ImportError('no MNN')",
    ],
    ids=["dies", "talks", "fails"],
)
def test_a_child_that_does_not_answer_tells_nothing(code: str) -> None:
    assert ask_mnn("cpu", code) == "unknown"


def test_a_child_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.2)
    assert ask_mnn("cpu", "import threading; threading.Event().wait()") == "unknown"


def test_every_backend_that_settings_can_name_is_asked_for() -> None:
    found = backends(lambda name: "here" if name == "cpu" else "missing")
    assert set(found) == set(RuntimeSettings._BACKENDS)
    assert [name for name, answer in found.items() if answer == "here"] == ["cpu"]
