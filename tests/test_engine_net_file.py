from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiny_bundle import graph
from tokforge_engine.net_file import NetFacts, NotWhole, read_net


def test_counts_operations_and_the_weight_bytes_they_need():
    assert read_net(graph()) == NetFacts(ops=2, weight_bytes=142)


def test_operations_without_weights_need_none():
    assert read_net(graph(external=())) == NetFacts(ops=2, weight_bytes=0)


@pytest.mark.parametrize("length", range(len(graph()) - 1))
def test_cut_anywhere(length):
    with pytest.raises(NotWhole):
        read_net(graph()[:length])


@given(st.binary(max_size=300))
def test_anything_else_is_refused_or_read_never_worse(data):
    try:
        assert read_net(data).ops >= 0
    except NotWhole as fault:
        assert str(fault)
