"""A bundle without a model in it: whole to every check, and useless to MNN."""

from __future__ import annotations

import json
import struct
from pathlib import Path


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
