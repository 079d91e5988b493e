"""Fingerprints read from a bundle's files, judged by MNN's own decoding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tokforge_models
from tokforge_models.errors import IntegrityError
from tokforge_models.model_files.fingerprint import fingerprint_of

TOKENIZER = b"430 1\n1 1 0\n2 2\n4\nYQ==\nYg==\nPGVuZD4=\n\n"
FULL = b"\0\0/blocks.0/self_attn/fused_attn/FusedAttention_output_0\0"
LINEAR = b"\0\0/blocks.1/self_attn/fused_attn/FusedLinearAttention_output_0\0"
EMBEDDED = Path(tokforge_models.__file__).parent / "embedded"


def bundle(folder: Path, *, graph: bytes = FULL, config=None, model_config=None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config or {}))
    (folder / "llm_config.json").write_text(json.dumps(model_config or {}))
    (folder / "tokenizer.txt").write_bytes(TOKENIZER)
    (folder / "llm.mnn").write_bytes(graph)
    return folder


def test_reads_all_parts(tmp_path: Path) -> None:
    folder = bundle(tmp_path, model_config={"max_position_embeddings": 1024})
    fingerprint = fingerprint_of(folder)
    # The fourth, empty token is padding.
    assert fingerprint.tokens == (b"a", b"b", b"<end>")
    assert fingerprint.special_ids == fingerprint.stop_ids == frozenset({2})
    assert fingerprint.attention == "full"
    assert fingerprint.context_length == 1024


def test_files_may_have_other_names(tmp_path: Path) -> None:
    names = {"tokenizer_file": "t.mtok", "llm_model": "m.mnn", "llm_config": "c.json"}
    folder = bundle(tmp_path, config=names)
    for old, new in (
        ("tokenizer.txt", "t.mtok"),
        ("llm.mnn", "m.mnn"),
        ("llm_config.json", "c.json"),
    ):
        (folder / old).rename(folder / new)
    assert fingerprint_of(folder).tokens == (b"a", b"b", b"<end>")


def test_the_files_are_those_that_mnn_opens(tmp_path: Path) -> None:
    """llm_config.json has the last word, and a name may begin with ./"""
    folder = bundle(
        tmp_path,
        config={"tokenizer_file": "other.txt", "llm_model": "other.mnn", "llm_config": "./c.json"},
    )
    (folder / "other.txt").write_bytes(TOKENIZER.replace(b"YQ==", b"eA=="))
    (folder / "other.mnn").write_bytes(LINEAR)
    (folder / "c.json").write_text(
        json.dumps({"tokenizer_file": "./tokenizer.txt", "llm_model": "./llm.mnn"})
    )
    fingerprint = fingerprint_of(folder)
    assert fingerprint.tokens == (b"a", b"b", b"<end>")
    assert fingerprint.attention == "full"


@pytest.mark.parametrize(
    ("graph", "attention"),
    [
        (FULL, "full"),
        (LINEAR, "linear"),
        (LINEAR + FULL, "mixed"),
        (b"nothing", "unknown"),
        (b"", "unknown"),
        (FULL + b"x" * ((1 << 20) - len(FULL) - 40) + LINEAR, "mixed"),
    ],
)
def test_attention_is_read_from_the_graph(graph: bytes, attention: str, tmp_path: Path) -> None:
    # What llm_config.json calls the attention is about sliding windows only.
    folder = bundle(tmp_path, graph=graph, model_config={"attention_type": "full"})
    assert fingerprint_of(folder).attention == attention


@pytest.mark.parametrize("name", ["config.json", "llm_config.json", "tokenizer.txt", "llm.mnn"])
def test_a_missing_file(name: str, tmp_path: Path) -> None:
    folder = bundle(tmp_path)
    (folder / name).unlink()
    with pytest.raises(IntegrityError, match=name):
        fingerprint_of(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names")
@pytest.mark.parametrize("name", ["config.json", "llm_config.json", "tokenizer.txt", "llm.mnn"])
def test_a_pipe_is_not_waited_for(name: str, tmp_path: Path) -> None:
    folder = bundle(tmp_path)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(IntegrityError, match="not a regular file") as caught:
        fingerprint_of(folder)
    assert "fresh copy" in caught.value.hint


@pytest.mark.parametrize("name", ["config.json", "llm_config.json", "tokenizer.txt", "llm.mnn"])
def test_a_file_beyond_all_bounds(name: str, tmp_path: Path) -> None:
    folder = bundle(tmp_path)
    with (folder / name).open("r+b") as stream:
        stream.truncate((1 << 30) + 1)
    with pytest.raises(IntegrityError, match="larger than"):
        fingerprint_of(folder)


def test_links_of_a_folder_of_ones_own_are_followed(tmp_path: Path) -> None:
    folder = bundle(tmp_path)
    for name in ("config.json", "tokenizer.txt", "llm.mnn"):
        (folder / name).rename(folder / f"real.{name}")
        (folder / name).symlink_to(folder / f"real.{name}")
    assert fingerprint_of(folder).tokens == (b"a", b"b", b"<end>")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "\udcff", "[" * 200_000, '{"a":' * 200_000]
)  # fmt: skip
def test_a_damaged_config(text: str, tmp_path: Path) -> None:
    folder = bundle(tmp_path)
    (folder / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(IntegrityError, match=r"config\.json is not"):
        fingerprint_of(folder)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "", 7, None, "a\0b"])
def test_names_in_a_config_stay_in_the_folder(name: object, tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match=r"config\.json: tokenizer_file"):
        fingerprint_of(bundle(tmp_path, config={"tokenizer_file": name}))


@pytest.mark.parametrize("length", [0, -1, "8", 1.5, None, True])
def test_a_context_length_that_is_none(length: object, tmp_path: Path) -> None:
    folder = bundle(tmp_path, model_config={"max_position_embeddings": length})
    assert fingerprint_of(folder).context_length is None


# MNN prints to standard output as it likes, so the child answers in a file. A token that is part
# of a character makes MNN's binding raise, with the bytes in the exception.
JUDGE = """
import json, sys
import MNN.llm as llm
config, count, answer = sys.argv[1], int(sys.argv[2]), sys.argv[3]
model = llm.create(config)
model.load()
def decoded(token_id):
    try:
        return model._c_obj.tokenizer_decode(token_id).encode()
    except UnicodeDecodeError as error:
        return error.object
texts = [decoded(token_id).hex() for token_id in range(count)]
json.dump(texts, open(answer, "w"))
"""


@pytest.mark.parametrize("name", ["demo-chat", "demo-draft"])
def test_mnn_decodes_the_same(name: str, tmp_path: Path) -> None:
    pytest.importorskip("MNN", reason="MNN has no wheel for this system")
    folder = EMBEDDED / name
    if not folder.is_dir():
        pytest.skip("the embedded pair is not in this tree")
    fingerprint = fingerprint_of(folder)
    answer = tmp_path / "answer.json"
    command = [sys.executable, "-c", JUDGE, str(folder / "config.json")]
    subprocess.run(
        [*command, str(len(fingerprint.tokens)), str(answer)],
        check=True,
        capture_output=True,
        cwd=tmp_path,
    )
    decoded = [bytes.fromhex(text) for text in json.loads(answer.read_text())]
    # MNN's binding hands texts over as C strings, which end at a zero byte.
    assert decoded == [token.partition(b"\0")[0] for token in fingerprint.tokens]
    assert fingerprint.attention == "full"
    assert fingerprint.stop_ids
