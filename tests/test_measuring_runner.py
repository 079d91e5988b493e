"""Benches of devices whose costs are known, on a virtual clock; memory of a real process."""

from __future__ import annotations

import os
import sys

import pytest

from measuring_kit import VirtualSession
from tokforge_engine.costs import Costs
from tokforge_models.measuring.plan import Plan, ways_for
from tokforge_models.measuring.report import PairReport, Sample, Skipped, pair_report
from tokforge_models.measuring.runner import measure, peak_bytes
from tokforge_models.measuring.workloads import Workload
from virtual_pair import FLAT, STEEP, VirtualPair, fixed

WORKLOADS = (Workload("prose", ("a", "b")), Workload("long prompt", ("c" * 99, "d" * 99)))
LENGTHS = range(1, 8)


def bench(session: VirtualSession, tokens: int = 400) -> tuple[PairReport, list[Skipped]]:
    plan = Plan(ways_for(LENGTHS, draft=True, lookup=False), WORKLOADS, 4, tokens)
    found = list(measure(session.generate, plan, session.pair.clock))
    samples = [each for each in found if isinstance(each, Sample)]
    report = pair_report(samples, draft=None, lookup=False, peak_bytes=None)
    return report, [each for each in found if isinstance(each, Skipped)]


@pytest.mark.parametrize("costs", [FLAT, STEEP], ids=["flat", "steep"])
@pytest.mark.parametrize("chance", [0.3, 0.6, 0.9])
def test_the_best_length_found_is_the_best_there_is(costs: Costs, chance: float) -> None:
    report, _ = bench(VirtualSession(VirtualPair(costs, [chance])))
    speeds = {way.d: report.overall(way) for way in report.ways if isinstance(way.d, int)}
    found = max(speeds, key=lambda d: speeds[d] or 0.0)
    analytic = max(fixed(costs, chance, d) for d in range(8))
    assert fixed(costs, chance, found) >= 0.97 * analytic


def test_the_curves_are_the_devices_own() -> None:
    report, _ = bench(VirtualSession(VirtualPair(STEEP, [0.7])))
    for cost in report.costs:
        # The last rounds of a text are shorter.
        assert cost.verify_seconds == pytest.approx(STEEP.verify[cost.d], rel=0.03)
        assert cost.draft_seconds == pytest.approx(STEEP.draft * cost.d, rel=0.3)


def test_a_throttling_device_is_seen_and_its_ratios_hold() -> None:
    steady, _ = bench(VirtualSession(VirtualPair(STEEP, [0.8])))
    heated, _ = bench(VirtualSession(VirtualPair(STEEP, [0.8]), slowing=2e-5))
    assert steady.drift == pytest.approx(0.0, abs=0.03)
    assert heated.drift is not None
    assert heated.drift < -0.1
    for way in steady.ways:
        assert heated.overall(way) == pytest.approx(steady.overall(way), rel=0.1)


def test_a_prompt_that_does_not_fit_is_left_out_once() -> None:
    session = VirtualSession(VirtualPair(FLAT, [0.8]), longest=50)
    report, skipped = bench(session, tokens=20)
    assert [each.workload for each in skipped] == ["long prompt"]
    assert report.workloads == ("prose",)
    assert sum(len(prompt) > 50 for prompt, _ in session.asked) == 1


def test_the_first_token_comes_after_the_prompt() -> None:
    report, _ = bench(VirtualSession(VirtualPair(FLAT, [0.8])), tokens=20)
    assert all(seconds == 0.5 for row in report.rows for seconds in row.first_token_seconds)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
def test_a_process_has_a_peak() -> None:
    assert (peak_bytes(os.getpid()) or 0) > 1_000_000


def test_a_process_that_is_not_there_has_none() -> None:
    assert peak_bytes(2**22 + 1) is None
