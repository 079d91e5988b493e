from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_engine.net_file import NetFacts, NotWhole, read_net


def graph(external=(100, 40, 2), count=2):
    """A flatbuffer with `count` operations, each a matrix with weights outside."""
    words: list[bytes] = []

    def put(kind, *values):
        at = sum(map(len, words))
        words.append(struct.pack(f"<{kind}", *values))
        return at

    # Each table here is followed by its children, as MNN's own writer places them.
    put("I", 16)  # root
    put("HHHHHH", 12, 8, 0, 0, 0, 4)  # vtable of Net at 4: field 3 at offset 4
    net = put("i", 12)
    assert net == 16
    put("I", 4)  # to the vector of operations
    put("I", count)
    slots = sum(map(len, words))
    size = 4 * count
    ops = []
    body = b""
    start = slots + size
    for _ in range(count):
        at = start + len(body)
        vector = struct.pack("<I", len(external)) + struct.pack(f"<{len(external)}q", *external)
        # vtable of Op (fields 1 and 2), Op, vtable of Convolution2D (field 6), itself, vector
        op = struct.pack("<HHHHH", 10, 12, 0, 8, 4) + b"\0\0"
        ops.append(at + len(op))
        op += struct.pack("<iIBxxx", len(op), 4 + 4 + 20, 9)
        convolution = struct.pack("<HH7H", 18, 8, *[0] * 6, 4) + b"\0\0"
        assert len(convolution) == 20
        op += convolution + struct.pack("<iI", len(convolution), 4) + vector
        body += op
    words.append(b"".join(struct.pack("<I", op - slots - 4 * n) for n, op in enumerate(ops)))
    words.append(body)
    return b"".join(words)


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
