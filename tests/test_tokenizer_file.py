"""Tokenizer files of every format that MNN reads, and damaged ones."""

from __future__ import annotations

import base64
import os
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.errors import IntegrityError, UnknownFormat
from tokforge_models.model_files.tokenizer_file import MAX_TOKENS, TokenizerFile, read_tokenizer

TOKENS = (b"a", b" b", "é".encode(), b"\xff", b"\n", b"<|end|>")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def header(kind: int, special: tuple[int, ...] = (5,), stop: tuple[int, ...] = (5,)) -> bytes:
    ids = " ".join(str(i) for i in (*special, *stop))
    return f"430 {kind}\n{len(special)} {len(stop)} 0\n{ids}\n".encode()


def visible(data: bytes) -> str:
    """A token as byte-level vocabularies write it."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in plain]
    return "".join(chr(b) if b in plain else chr(0x100 + others.index(b)) for b in data)


def packed(text: bytes) -> bytes:
    return struct.pack("<H", len(text)) + text


def pipeline(
    vocabulary: dict[int, bytes],
    *,
    normalizer: bytes = b"\0",
    pre_tokenizer: bytes = b"\0",
    model: int = 0,
    merges: int = 0,
    decoder: bytes = b"\0",
    added: dict[int, bytes] | None = None,
    tail: bytes = b"",
) -> bytes:
    head = {
        0: struct.pack("<BBI", 0, 0, merges),
        1: packed(b"[UNK]") + packed(b"##") + struct.pack("<I", 100),
        2: struct.pack("<IB", 0, 1),
    }[model]
    body = normalizer + pre_tokenizer + struct.pack("<BI", model, len(vocabulary)) + head
    for token_id, text in sorted(vocabulary.items(), key=lambda entry: entry[1]):
        body += packed(text) + struct.pack("<I", token_id)
        body += struct.pack("<d", 0.5) if model == 2 else b""
    body += b"\0" * 12 * merges + decoder
    added = added or {}
    body += struct.pack("<I", len(added))
    for token_id, text in added.items():
        body += struct.pack("<IBBB", token_id, 1, 0, 0) + packed(text)
    return header(4) + body + tail


def parse(data: bytes, tmp_path: Path) -> TokenizerFile:
    path = tmp_path / "tokenizer"
    path.write_bytes(data)
    return read_tokenizer(path)


def byte_level(tokens: tuple[bytes, ...]) -> bytes:
    lines = "".join(f"{visible(token)}\n" for token in tokens)
    return header(3) + f"{len(tokens)} 1\n{lines}a b\n".encode()


FORMATS = {
    "sentencepiece": header(0)
    + "\n".join(
        [
            "6",
            f"{b64(b'a')} -1.5 1",
            f"{b64('▁b'.encode())} -2 1",
            f"{b64('é'.encode())} 0 1",
            f"{b64(b'<0xFF>')} 0 6",
            f"{b64(b'<0x0A>')} 0 6",
            f"{b64(b'<|end|>')} 0 3\n",
        ]
    ).encode(),
    "tiktoken": header(1) + "\n".join(["6", *map(b64, TOKENS), ""]).encode(),
    "bert": header(2) + "\n".join(["6", *map(b64, TOKENS), ""]).encode(),
    "huggingface": byte_level(TOKENS),
    "mtok byte level": pipeline(
        {i: visible(token).encode() for i, token in enumerate(TOKENS[:5])},
        pre_tokenizer=b"\x06" + struct.pack("<I", 2)
        + b"\x04" + packed(b"x") + b"\0\x01" + b"\x01\0",
        merges=2,
        added={5: b"<|end|>"},
        tail=struct.pack("<I", 3) + b"{{}" + b"\0\0\x01",
    ),
    "mtok byte fallback": pipeline(
        {0: b"a", 1: "▁b".encode(), 2: "é".encode(), 3: b"<0xFF>", 4: b"<0x0A>"},
        normalizer=b"\x04" + struct.pack("<I", 2) + b"\x02" + packed("▁".encode())
        + b"\x03" + packed(b" ") + packed("▁".encode()),
        model=2,
        decoder=b"\x07" + struct.pack("<I", 4) + b"\x05" + packed("▁".encode()) + packed(b" ")
        + b"\x01" + b"\x04" + b"\x06" + packed(b" ") + struct.pack("<II", 1, 0),
        added={5: b"<|end|>"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_one_vocabulary_in_every_format(name: str, tmp_path: Path) -> None:
    assert parse(FORMATS[name], tmp_path) == TokenizerFile(
        TOKENS, special_ids=frozenset({5}), stop_ids=frozenset({5})
    )


def test_word_pieces(tmp_path: Path) -> None:
    data = pipeline(
        {0: b"play", 1: b"##ing"},
        normalizer=b"\x07\x01\x01\x01\x01" + struct.pack("<IIH", 1, 0xE9, 3) + b"e\xcc\x81",
        pre_tokenizer=b"\x05",
        model=1,
        decoder=b"\x03" + packed(b"##") + b"\x01",
    )
    assert parse(data, tmp_path).tokens == (b" play", b"ing")


def test_every_normalizer_is_passed_over(tmp_path: Path) -> None:
    table = struct.pack("<IIH", 1, 0x2460, 1) + b"1"
    for normalizer in (b"\x01", b"\x05\0\0\0\0", b"\x06" + table, b"\x07\0\0\0\0", b"\x08\x01\x01"):
        assert parse(pipeline({0: b"x"}, normalizer=normalizer), tmp_path).tokens == (b"x",)


def test_holes_are_empty_and_characters_without_byte_are_kept(tmp_path: Path) -> None:
    data = pipeline({0: b"a", 3: "｜x".encode()})
    assert parse(data, tmp_path).tokens == (b"a", b"", b"", "｜x".encode())
    assert parse(header(3) + "1 0\n｜x\n".encode(), tmp_path).tokens == ("｜x".encode(),)


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    assert parse(header(1) + b"1\nYQ==", tmp_path).tokens == (b"a",)


def test_the_image_token_that_the_exporter_does_not_write(tmp_path: Path) -> None:
    data = header(0) + f"2\n{b64(b'a')} 0 1\n".encode()
    assert parse(data, tmp_path).tokens == (b"a",)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "ends within its first three lines"),
        (b"430 3\n0 0 0\n", "ends within its first three lines"),
        (b"431 3\n0 0 0\n\n0 0\n", "does not begin with 430"),
        (b"\x7fELF\n0 0 0\n\n", "not a row of whole numbers"),
        (b"430 3\n2 0 0\n1\n1 0\na\n", "do not fit its third line"),
        (b"430 3\n0 0 -1\n\n1 0\na\n", "do not fit its third line"),
        (b"430 3\n0 0 0\n\n3 0\na\nb\n", "promises 3 tokens and has 2"),
        (b"430 1\n0 0 0\n\n-1\n", "promises -1 tokens"),
        (b"430 1\n0 0 0\n\n\n", "promises -1 tokens"),
        (f"430 1\n0 0 0\n\n{MAX_TOKENS + 1}\n".encode(), f"promises {MAX_TOKENS + 1} tokens"),
        (b"430 1\n0 0 0\n\n1\n*\n", "is not Base64"),
        (b"430 0\n0 0 0\n\n1\nYQ==\n", "is not a piece, a score and a type"),
        (header(4), "ends in the middle of a value"),
        (header(4) + b"\x06" + b"\xff" * 4, "promises 4294967295 items"),
        (header(4) + (b"\x04\x01\0\0\0" * 99), "nested deeper"),
        (header(4) + b"\x04\0\x10\0\0" + b"\0" * 5000, "has 4096 normalizers"),
        (header(4) + b"\0\0\0" + b"\xff\xff\xff\x7f" + b"\0" * 60, "promises 2147483647 items"),
        (pipeline({0xFFFFFFFF: b"x"}), "token id 4294967295"),
        (pipeline({0: b"x"}, added={MAX_TOKENS: b"y"}), f"token id {MAX_TOKENS}"),
    ],
)
def test_damage_is_named(data: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match=reason) as caught:
        parse(data, tmp_path)
    assert caught.value.exit_code == 5
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"430 9\n0 0 0\n\n", "its type is 9"),
        (header(4) + b"\x09", "normalizer has the unknown type 9"),
        (header(4) + b"\0\x07", "pre-tokenizer has the unknown type 7"),
        (header(4) + b"\0\0\x05" + b"\0" * 20, "model has the unknown type 5"),
    ],
)
def test_a_type_of_tomorrow_is_not_called_damage(data: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match=reason) as caught:
        parse(data, tmp_path)
    assert not isinstance(caught.value, IntegrityError)
    assert caught.value.exit_code == 7
    assert "--draft none" in caught.value.hint


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="cannot read the tokenizer"):
        read_tokenizer(tmp_path / "none")


def test_a_file_beyond_all_bounds(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer"
    with path.open("wb") as stream:
        stream.truncate(65 << 20)
    with pytest.raises(IntegrityError, match="larger than") as caught:
        read_tokenizer(path)
    assert "tokforge verify" not in caught.value.hint


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokenizer.txt")
    with pytest.raises(IntegrityError, match="not a regular file"):
        read_tokenizer(tmp_path / "tokenizer.txt")


@given(data=st.data())
def test_cut_or_changed_files_never_raise_anything_else(tmp_path_factory, data) -> None:
    whole = data.draw(st.sampled_from(sorted(FORMATS.values())))
    cut = data.draw(st.integers(0, len(whole)))
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:at] + data.draw(st.binary(min_size=1, max_size=4)) + whole[at + 1 :]
    for damaged in (whole[:cut], changed):
        try:
            tokens = parse(damaged, tmp_path_factory.getbasetemp()).tokens
        except (IntegrityError, UnknownFormat):
            continue
        assert len(tokens) <= MAX_TOKENS


@given(st.lists(st.binary(max_size=6), max_size=20))
def test_byte_level_round_trip(tmp_path_factory, tokens) -> None:
    data = byte_level(tuple(tokens))
    parsed = parse(data, tmp_path_factory.getbasetemp()).tokens
    assert parsed == tuple(tokens)
