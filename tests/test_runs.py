"""Which segments one request asks for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.pulling.runs import next_run


def test_one_connection_asks_for_all_that_is_in_a_row() -> None:
    assert next_run(range(40), 1) == range(40)
    assert next_run({3, 4, 5, 9}, 1) == range(3, 6)


def test_runs_shrink_towards_the_end() -> None:
    missing = set(range(40))
    lengths = []
    while missing:
        run = next_run(missing, 4)
        missing -= set(run)
        lengths.append(len(run))
    assert lengths[0] == 5
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-4:] == [1, 1, 1, 1]


@given(st.sets(st.integers(0, 200), min_size=1), st.integers(1, 8))
def test_every_segment_is_asked_for_once_in_order(missing: set[int], connections: int) -> None:
    left, asked = set(missing), []
    while left:
        run = next_run(left, connections)
        assert len(run) >= 1
        asked += run
        left -= set(run)
    assert asked == sorted(missing)
