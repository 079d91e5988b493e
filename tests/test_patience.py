"""Retries, waits, stalls and speed, with times handed in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.sources.network import Network
from tokforge_models.sources.patience import Budget, Pace, Throttle

NETWORK = Network(
    retries=4,
    earned_bytes=1000,
    backoff_seconds=1.0,
    longest_wait_seconds=3.0,
    stall_seconds=10.0,
    least_bytes=100,
)


def test_waits_double_are_spread_and_end() -> None:
    longest = Budget(NETWORK, lambda: 1.0)
    assert [longest.failed() for _ in range(5)] == [1.0, 2.0, 3.0, 3.0, None]
    shortest = Budget(NETWORK, lambda: 0.0)
    assert [shortest.failed() for _ in range(4)] == [0.5, 1.0, 1.5, 1.5]
    few = Budget(NETWORK, lambda: 1.0, retries=1)
    assert [few.failed(), few.failed()] == [1.0, None]


def test_what_comes_in_buys_retries_back() -> None:
    budget = Budget(NETWORK, lambda: 1.0)
    for _ in range(4):
        assert budget.failed() is not None
    budget.received(999)
    assert budget.failures == 4
    budget.received(1)
    assert budget.failures == 3
    budget.received(50_000)
    assert budget.failures == 0


@given(st.lists(st.integers(0, 3000), max_size=60))
def test_a_series_of_failures_is_bounded_by_what_came_in(counts: list[int]) -> None:
    budget = Budget(NETWORK, lambda: 1.0)
    survived = 0
    for count in counts:
        budget.received(count)
        if budget.failed() is None:
            break
        survived += 1
    assert survived <= NETWORK.retries + sum(counts) // NETWORK.earned_bytes


def test_a_server_is_obeyed_as_far_as_patience_goes() -> None:
    budget = Budget(NETWORK, lambda: 1.0)
    assert budget.failed(asked_to_wait=2.5) == 2.5
    assert budget.failed(asked_to_wait=0.0) == 0.0
    assert budget.failed(asked_to_wait=3.1) is None


def test_a_crawl_is_not_slowness() -> None:
    pace = Pace(NETWORK, 0.0)
    assert not pace.crawls(1, 5.0)
    assert pace.crawls(1, 10.0)
    slow = Pace(NETWORK, 0.0)
    for second in range(1, 100):
        assert not slow.crawls(11, float(second))
    ours = Pace(NETWORK, 0.0)
    ours.restart(100.0)
    assert not ours.crawls(1, 105.0)


@given(st.lists(st.tuples(st.integers(1, 5000), st.floats(0, 3)), min_size=1, max_size=40))
def test_a_throttle_keeps_below_its_rate(arrivals: list[tuple[int, float]]) -> None:
    throttle = Throttle(1000, 0.0)
    now = total = 0.0
    for count, pause in arrivals:
        now += pause
        wait = throttle.wait_for(count, now)
        assert wait >= 0
        now += wait
        total += count
        assert total <= 1000 * now * (1 + 1e-9)
