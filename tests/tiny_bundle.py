"""A bundle without a model in it: whole to every check, and useless to MNN."""

from __future__ import annotations

import json
import struct
from pathlib import Path


def graph(external=(100, 40, 2), count=2, name="a matrix"):
    """A flatbuffer with `count` operations, each a matrix of 6 x 5 with weights outside."""
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
    start = slots + 4 * count
    op = operation(external, name.encode())
    ops = [start + OP_AT + n * len(op) for n in range(count)]
    words.append(b"".join(struct.pack("<I", at - slots - 4 * n) for n, at in enumerate(ops)))
    words.append(op * count)
    return b"".join(words)


OP_AT = 12


def operation(external, name):
    """An operation with all it refers to; the operation itself is at `OP_AT`."""
    vector = struct.pack("<I", len(external)) + struct.pack(f"<{len(external)}q", *external)
    text = struct.pack("<I", len(name)) + name
    text += bytes(-len(text) % 4)
    # vtable of Op: fields 1 (kind), 2 (body), 3 (name).
    vtable = struct.pack("<HHHHHH", 12, 16, 0, 12, 4, 8)
    body_at = OP_AT + 16 + len(text)
    # vtable of Convolution2D (fields 0 and 6), itself, then its common part and the vector.
    shape = struct.pack("<HH7H", 18, 12, 4, *[0] * 5, 8) + b"\0\0"
    body = body_at + len(shape)
    common = struct.pack("<HH12H", 28, 12, *[0] * 10, 4, 8)
    common_at = body + 12 + len(common)
    vector_at = common_at + 12
    op = struct.pack("<iIIBxxx", OP_AT, body - (OP_AT + 4), OP_AT + 16 - (OP_AT + 8), 9)
    matrix = struct.pack("<iII", len(shape), common_at - (body + 4), vector_at - (body + 8))
    sizes = struct.pack("<iii", len(common), 5, 6)
    return vtable + op + text + shape + matrix + common + sizes + vector


WEIGHT_BYTES = 142


def write_tiny_bundle(path: Path) -> Path:
    """Write the smallest bundle that passes the checks to the new directory `path`."""
    path.mkdir()
    path.joinpath("config.json").write_text(
        json.dumps({"llm_model": "llm.mnn", "tokenizer_file": "tokenizer.mtok", "thread_num": 2})
    )
    path.joinpath("llm_config.json").write_text(
        json.dumps({"hidden_size": 64, "layer_nums": 1, "tie_embeddings": [10, 74, 68, 4, 32]})
    )
    path.joinpath("llm.mnn").write_bytes(graph())
    path.joinpath("llm.mnn.weight").write_bytes(bytes(WEIGHT_BYTES))
    path.joinpath("tokenizer.mtok").write_bytes(b"430 4\n3 1 0\n")
    return path
