"""The few facts of an ``llm.mnn`` that tell whether it is whole.

The file is a flatbuffer: tables of offsets, which MNN follows without looking whether they lead
out of the file. This module follows the same ones, and looks. Field numbers are those of MNN's
public schema (``schema/default/MNN.fbs``, table ``Net``).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_NET_OPS = 3
_OP_KIND, _OP_BODY, _OP_NAME = 1, 2, 3
# Numbers of bodies in the union OpParameter: constants (Blob) and matrices (Convolution2D).
_CONSTANT, _MATRIX = 7, 9
# Place of a body's field ``external``: [offset, bytes, more bytes...] into the weight file.
_EXTERNAL = {_CONSTANT: 9, _MATRIX: 6}
_MATRIX_COMMON = 0
_COMMON_OUTPUTS, _COMMON_INPUTS = 10, 11
# Files of real models stay far below; without bounds a small file could ask for endless reading,
# since many operations may share one long list.
_MOST_OPS = 500_000
_MOST_PARTS = 16
_MOST_NAME_BYTES = 512
# As exporters name the matrices whose outputs are cached for each token.
_CACHED = (b"k_proj", b"v_proj")


class NotWhole(ValueError):
    """An offset leads out of the file; the message says which."""


@dataclass(frozen=True, slots=True)
class NetFacts:
    """What a whole file says.

    Attributes:
        ops: number of operations in the graph.
        weight_bytes: how long the weight file must at least be; 0 where it names none.
        parameters: numbers in all matrices together.
        largest: numbers in the largest matrix.
        cached: keys and values of a token, in all layers, by the names of matrices; 0 where no
            matrix has such a name.
    """

    ops: int
    weight_bytes: int
    parameters: int
    largest: int
    cached: int


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
    if count > _MOST_OPS:
        raise NotWhole(f"it holds {count:,} operations")
    weight_bytes = parameters = largest = cached = 0
    for place in range(count):
        op = file.table(start + 4 * place)
        kind_at, body_at = file.field(op, _OP_KIND), file.field(op, _OP_BODY)
        if kind_at is None or body_at is None:
            continue
        kind = file.number("B", kind_at)
        if kind not in _EXTERNAL:
            continue
        body = file.table(body_at)
        weight_bytes = max(weight_bytes, _end_of_weights(file, body, _EXTERNAL[kind]))
        if kind == _MATRIX:
            inputs, outputs = _sizes(file, body)
            parameters += inputs * outputs
            largest = max(largest, inputs * outputs)
            name = file.text(op, _OP_NAME, _MOST_NAME_BYTES)
            if any(part in name for part in _CACHED):
                cached += outputs
    return NetFacts(count, weight_bytes, parameters, largest, cached)


def _end_of_weights(file: _Flatbuffer, body: int, external: int) -> int:
    parts = file.vector(body, external)
    if parts is None or parts[1] < 2:
        return 0
    if parts[1] > _MOST_PARTS:
        raise NotWhole(f"an operation has weights in {parts[1]:,} parts")
    return sum(file.number("q", parts[0] + 8 * part) for part in range(parts[1]))


def _sizes(file: _Flatbuffer, body: int) -> tuple[int, int]:
    """How many numbers go into a matrix and come out of it; 0 where it does not say."""
    common_at = file.field(body, _MATRIX_COMMON)
    if common_at is None:
        return 0, 0
    common = file.table(common_at)
    places = (file.field(common, field) for field in (_COMMON_INPUTS, _COMMON_OUTPUTS))
    inputs, outputs = (0 if at is None else max(file.number("i", at), 0) for at in places)
    return inputs, outputs


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

    def text(self, table: int, number: int, most: int) -> bytes:
        """The first `most` bytes of a text field; empty where left out."""
        found = self.vector(table, number)
        if found is None:
            return b""
        start, count = found
        return self._data[start : start + min(count, most)]
