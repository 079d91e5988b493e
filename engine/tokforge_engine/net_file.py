"""The few facts of an ``llm.mnn`` that tell whether it is whole.

The file is a flatbuffer: tables of offsets, which MNN follows without looking whether they lead
out of the file. This module follows the same ones, and looks. Field numbers are those of MNN's
public schema (``schema/default/MNN.fbs``, table ``Net``).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_NET_OPS = 3
_OP_KIND, _OP_BODY = 1, 2
# Place of a body's field ``external`` ([offset, bytes, more bytes...] into the weight file), by
# the body's number in the union OpParameter: constants (Blob) and matrices (Convolution2D).
_EXTERNAL = {7: 9, 9: 6}


class NotWhole(ValueError):
    """An offset leads out of the file; the message says which."""


@dataclass(frozen=True, slots=True)
class NetFacts:
    """What a whole file says.

    Attributes:
        ops: number of operations in the graph.
        weight_bytes: how long the weight file must at least be; 0 where it names none.
    """

    ops: int
    weight_bytes: int


def read_net(data: bytes) -> NetFacts:
    """Follow the offsets of the graph's operations.

    Raises:
        NotWhole: the file is not a graph, or ends too early.
    """
    file = _Flatbuffer(data)
    ops = file.vector(file.table(0), _NET_OPS)
    if ops is None:
        raise NotWhole("it holds no operations")
    start, count = ops
    weight_bytes = 0
    for place in range(count):
        op = file.table(start + 4 * place)
        kind_at, body_at = file.field(op, _OP_KIND), file.field(op, _OP_BODY)
        if kind_at is None or body_at is None:
            continue
        if external := _EXTERNAL.get(file.number("B", kind_at)):
            parts = file.vector(file.table(body_at), external)
            if parts is not None and parts[1] > 1:
                where = [file.number("q", parts[0] + 8 * part) for part in range(parts[1])]
                weight_bytes = max(weight_bytes, sum(where))
    return NetFacts(count, weight_bytes)


class _Flatbuffer:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def number(self, kind: str, at: int) -> int:
        try:
            (value,) = struct.unpack_from(f"<{kind}", self._data, at)
        except struct.error:
            raise NotWhole(
                f"it points to byte {at:,} and is {len(self._data):,} bytes long"
            ) from None
        return int(value)

    def table(self, at: int) -> int:
        """The position of the table that the offset at `at` leads to."""
        table = at + self.number("I", at)
        vtable = table - self.number("i", table)
        if vtable < 0 or self.number("H", vtable) < 4:
            raise NotWhole("it is not an MNN graph")
        return table

    def field(self, table: int, number: int) -> int | None:
        """The position of a table's field, or None where the table leaves it out."""
        vtable = table - self.number("i", table)
        entry = 4 + 2 * number
        if entry >= self.number("H", vtable):
            return None
        offset = self.number("H", vtable + entry)
        return table + offset if offset else None

    def vector(self, table: int, number: int) -> tuple[int, int] | None:
        """First element's position and the count of a vector field, or None where left out."""
        at = self.field(table, number)
        if at is None:
            return None
        start = at + self.number("I", at)
        count = self.number("I", start)
        if start + 4 + count > len(self._data):
            raise NotWhole(f"a list of {count:,} things ends after the file")
        return start + 4, count
