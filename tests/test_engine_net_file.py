from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiny_bundle import graph
from tokforge_engine.net_file import NetFacts, NotWhole, read_net


def facts(ops=2, weight_bytes=142, cached=0):
    return NetFacts(ops, weight_bytes, parameters=30 * ops, largest=30, cached=cached)


def test_counts_operations_and_what_they_need():
    assert read_net(graph()) == facts()
    assert read_net(graph(count=7)) == facts(ops=7)


@pytest.mark.parametrize(
    ("name", "cached"),
    [("/layers.0/self_attn/k_proj/Linear", 10), ("x.v_proj", 10), ("q_proj", 0), ("", 0)],
)
def test_tells_what_is_cached_by_the_names_of_matrices(name, cached):
    assert read_net(graph(name=name)) == facts(cached=cached)


def test_operations_without_weights_need_none():
    assert read_net(graph(external=())) == facts(weight_bytes=0)


def test_reading_is_bounded_whatever_lists_share_their_place():
    with pytest.raises(NotWhole, match="weights in 17 parts"):
        read_net(graph(external=range(17)))
    many = 600_000
    net = struct.pack("<IHHHHHHiII", 16, 12, 8, 0, 0, 0, 4, 12, 4, many) + bytes(4 * many)
    with pytest.raises(NotWhole, match="holds 600,000 operations"):
        read_net(net)


@pytest.mark.parametrize("length", range(len(graph()) - 2))
def test_cut_anywhere(length):
    with pytest.raises(NotWhole):
        read_net(graph()[:length])


@given(st.binary(max_size=300))
def test_anything_else_is_refused_or_read_never_worse(data):
    try:
        assert read_net(data).ops >= 0
    except NotWhole as fault:
        assert str(fault)
