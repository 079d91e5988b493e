"""Fixtures that more than one test file uses."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says nothing about the code on a shared machine.
settings.register_profile("tokforge", deadline=None)
settings.load_profile("tokforge")


def pytest_configure() -> None:
    # A shell that starts the tests in the background has SIGINT ignored, and children inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        with suppress(ValueError):
            signal.signal(signal.SIGINT, signal.default_int_handler)


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


@pytest.fixture
def model():
    """A model that answers what its script says."""
    from serving_kit import ScriptedModel

    return ScriptedModel()


@pytest.fixture
def url(model):
    """A real server on loopback, before that model."""
    from serving_kit import listening_server

    with listening_server(model) as url:
        yield url


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A real Chromium."""
    from browser import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def page(browser, url):
    """The chat page, met; at the end the browser has nothing to complain of."""
    from page_kit import MET, faults

    with browser.page(url) as page:
        page.until(MET)
        yield page
        assert faults(page) == []
