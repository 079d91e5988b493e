"""Fixtures that more than one test file uses."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says nothing about the code on a shared machine.
settings.register_profile("tokforge", deadline=None)
settings.load_profile("tokforge")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-skips", action="store_true", help="a skipped test is a failed test (make test-all)"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    report: pytest.TestReport = yield
    if report.skipped and item.config.getoption("--no-skips") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
    return report


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of one's own, for this process and its children; no user file is read."""
    folder = tmp_path / "home"
    monkeypatch.setenv("TOKFORGE_HOME", str(folder))
    monkeypatch.setenv("TOKFORGE_CONFIG_DIR", str(tmp_path / "config"))
    return folder
