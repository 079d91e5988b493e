"""Reads the tokenizer files that MNN reads, as far as the bytes of every token.

Both kinds begin with three lines of text::

    430 <type>                                   a magic number; the type of the vocabulary
    <specials> <stops> <prefixes>                how many ids of each the next line has
    <id> <id> ...

``tokenizer.txt`` goes on with lines: a count, then one token a line, in Base64 with a score and a
type (sentencepiece, type 0), in Base64 (tiktoken 1, bert 2), or as text in which a visible
character stands for each byte (huggingface 3, followed by merge rules).

``tokenizer.mtok`` (pipeline 4) goes on in binary, little-endian, texts with a 16-bit length:
normalizer, pre-tokenizer, model (the vocabulary: text and id, in order of the text), decoder,
added tokens (id, three flags, text), and parts that do not matter here.

Source: MNN, transformers/llm/engine/src/tokenizer/tokenizer.cpp and
transformers/llm/export/utils/tokenizer.py. Where MNN's own decoding of a single id loses text
(characters that stand for no byte; the byte pieces of old sentencepiece files; added tokens
beyond the model's vocabulary), the token is given as it is meant, so that one vocabulary in two
formats reads the same.

Nothing here trusts the file: every count and length is checked against what is left of it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from tokforge_models.errors import IntegrityError, UnknownFormat
from tokforge_models.files.disk import read_small, real_path

MAX_FILE_BYTES = 64 << 20
MAX_TOKENS = 1 << 21
# Nothing here knows whether the file is the store's, which could mend it.
FRESH_COPY = "get a fresh copy of that file, then run the same command again"
_MAGIC = 430
_MAX_HEADER_BYTES = 1 << 20
_MAX_NESTING = 16
_MAX_PARTS = 256
_BYTE_PIECE_TYPE = "6"
_BYTE_PIECE = re.compile(rb"<0x([0-9A-Fa-f]{2})>")
_SPACE_MARK = "\u2581".encode()


class _Kind(IntEnum):
    SENTENCEPIECE = 0
    TIKTOKEN = 1
    BERT = 2
    HUGGINGFACE = 3
    PIPELINE = 4


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """What a tokenizer file says.

    Attributes:
        tokens: bytes of every token by id; empty where the file has none for that id.
        special_ids: ids that are never text.
        stop_ids: ids that end an answer.
    """

    tokens: tuple[bytes, ...]
    special_ids: frozenset[int]
    stop_ids: frozenset[int]


def read_tokenizer(path: Path) -> TokenizerFile:
    """Read a tokenizer file of any of MNN's formats.

    Raises:
        IntegrityError: the file is missing, too large, cut short or not a tokenizer.
        UnknownFormat: it is a tokenizer of a type that is not among MNN's of today.
    """
    try:
        data = read_small(real_path(path), MAX_FILE_BYTES)
    except OSError as error:
        raise IntegrityError(
            f"cannot read the tokenizer {path}: {error.strerror or type(error).__name__}",
            hint=FRESH_COPY,
        ) from error
    try:
        return parse_tokenizer(data)
    except _DamagedError as damage:
        raise IntegrityError(
            f"the tokenizer {path} is damaged: {damage}",
            hint=FRESH_COPY,
        ) from damage
    except _UnknownTypeError as unknown:
        raise UnknownFormat(
            f"the tokenizer {path} cannot be read by this version: {unknown}",
            hint="run the target without a draft: --draft none",
        ) from unknown


def parse_tokenizer(data: bytes) -> TokenizerFile:
    """Parse the bytes of a tokenizer file."""
    lines = data[:_MAX_HEADER_BYTES].split(b"\n", 3)
    if len(lines) < 4:
        raise _DamagedError("it ends within its first three lines")
    magic = _integers(lines[0])
    if len(magic) != 2 or magic[0] != _MAGIC:
        raise _DamagedError(f"it does not begin with {_MAGIC} and a type")
    counts, ids = _integers(lines[1]), _integers(lines[2])
    if len(counts) != 3 or min(counts) < 0 or sum(counts) != len(ids):
        raise _DamagedError("its counts of special, stop and prefix ids do not fit its third line")
    body = data[sum(len(line) + 1 for line in lines[:3]) :]
    specials, stops = ids[: counts[0]], ids[counts[0] : counts[0] + counts[1]]
    return TokenizerFile(
        tokens=_tokens(magic[1], body),
        special_ids=frozenset(i for i in specials if i >= 0),
        stop_ids=frozenset(i for i in stops if i >= 0),
    )


class _DamagedError(Exception):
    """What is wrong with the bytes."""


class _UnknownTypeError(Exception):
    """What the bytes say they are, and nothing here knows."""


def _tokens(kind: int, body: bytes) -> tuple[bytes, ...]:
    match kind:
        case _Kind.SENTENCEPIECE:
            return _from_lines(body, _sentencepiece_token)
        case _Kind.TIKTOKEN | _Kind.BERT:
            return _from_lines(body, _base64)
        case _Kind.HUGGINGFACE:
            return _from_lines(body, _byte_level_token)
        case _Kind.PIPELINE:
            return _from_pipeline(_Cursor(body))
    raise _UnknownTypeError(f"its type is {kind}, which is none of 0 to {max(_Kind)}")


def _integers(line: bytes) -> list[int]:
    parts = line.split()
    if len(parts) > MAX_TOKENS or not all(re.fullmatch(rb"-?[0-9]{1,10}", part) for part in parts):
        raise _DamagedError("one of its first lines is not a row of whole numbers")
    return [int(part) for part in parts]


def _from_lines(body: bytes, token_in: Callable[[bytes], bytes]) -> tuple[bytes, ...]:
    head, _, rest = body.partition(b"\n")
    counts = _integers(head[:64])
    count = _checked_count(counts[0] if counts else -1)
    lines = rest.split(b"\n", count)
    if len(lines) <= count and not lines[-1]:
        lines.pop()
    # MNN's exporter counts one token of Gemma 3 (for images) that it does not write.
    if len(lines) < count and not (token_in is _sentencepiece_token and len(lines) == count - 1):
        raise _DamagedError(f"it promises {count} tokens and has {len(lines)}")
    return tuple(token_in(line) for line in lines[:count])


def _byte_level_token(line: bytes) -> bytes:
    return _unmap(line.decode("utf-8", "surrogateescape"))


def _sentencepiece_token(line: bytes) -> bytes:
    parts = line.split(b" ")
    if len(parts) != 3:
        raise _DamagedError("a line of its vocabulary is not a piece, a score and a type")
    piece = _base64(parts[0])
    byte = _BYTE_PIECE.fullmatch(piece)
    if byte and parts[2].decode("ascii", "replace").strip() == _BYTE_PIECE_TYPE:
        return bytes([int(byte[1], 16)])
    return piece.replace(_SPACE_MARK, b" ")


def _base64(line: bytes) -> bytes:
    try:
        return base64.b64decode(line.rstrip(b"\r"), validate=True)
    except binascii.Error as error:
        raise _DamagedError("a token of its vocabulary is not Base64") from error


def _checked_count(count: int) -> int:
    if not 0 <= count <= MAX_TOKENS:
        raise _DamagedError(f"it promises {count} tokens; at most {MAX_TOKENS} can be")
    return count


def _byte_of_character() -> dict[str, int]:
    """GPT-2's table: printable Latin-1 characters stand for themselves, and the other bytes, in
    order, for the characters from U+0100 on.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in set(plain)]
    table = {chr(byte): byte for byte in plain}
    return table | {chr(0x100 + index): byte for index, byte in enumerate(others)}


_BYTES = _byte_of_character()
# Translating to Latin-1 at once is five times faster than a character at a time.
_TO_LATIN = {ord(character): byte for character, byte in _BYTES.items()}


def _unmap(text: str) -> bytes:
    if _BYTES.keys() >= set(text):
        return text.translate(_TO_LATIN).encode("latin-1")
    return b"".join(
        bytes([_BYTES[c]]) if c in _BYTES else c.encode("utf-8", "surrogateescape") for c in text
    )


class _Cursor:
    """Reads a binary body from left to right; the end of the data is damage."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise _DamagedError("it ends in the middle of a value")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def number(self, bytes_: int) -> int:
        return int.from_bytes(self.take(bytes_), "little")

    def text(self) -> bytes:
        return self.take(self.number(2))

    def count(self, item_bytes: int) -> int:
        """A 32-bit count of items of at least `item_bytes` each, which must be there."""
        count = self.number(4)
        if count * item_bytes > len(self._data) - self._at:
            raise _DamagedError(f"it promises {count} items, more than it has bytes for")
        return count


def _from_pipeline(cursor: _Cursor) -> tuple[bytes, ...]:
    _skip(cursor, _NORMALIZERS, "normalizer", 0)
    _skip(cursor, _PRE_TOKENIZERS, "pre-tokenizer", 0)
    vocabulary = dict(_vocabulary(cursor))
    kinds = _skip(cursor, _DECODERS, "decoder", 0)
    word_piece_prefix = kinds.get(_WORD_PIECE_DECODER)
    for token_id, token in vocabulary.items():
        vocabulary[token_id] = _meaning(token, kinds, word_piece_prefix)
    for _ in range(cursor.count(9)):
        token_id = cursor.number(4)
        cursor.take(3)
        # An added token is text as it stands, whatever the decoder does to others.
        vocabulary[_checked_id(token_id)] = cursor.text()
    size = max(vocabulary, default=-1) + 1
    return tuple(vocabulary.get(token_id, b"") for token_id in range(size))


def _vocabulary(cursor: _Cursor) -> Iterator[tuple[int, bytes]]:
    kind = cursor.number(1)
    count = _checked_count(cursor.count(6))
    merges = 0
    score_bytes = 0
    match kind:
        case 0:  # BPE: two flags, the number of merges
            cursor.take(2)
            merges = cursor.number(4)
        case 1:  # WordPiece: unknown token, prefix, longest word
            cursor.text()
            cursor.text()
            cursor.take(4)
        case 2:  # Unigram: unknown id, a flag; a score a token
            cursor.take(5)
            score_bytes = 8
        case _:
            raise _UnknownTypeError(f"its model has the unknown type {kind}")
    for _ in range(count):
        token = cursor.text()
        token_id = _checked_id(cursor.number(4))
        cursor.take(score_bytes)
        yield token_id, token
    cursor.take(merges * 12)


def _checked_id(token_id: int) -> int:
    if token_id >= MAX_TOKENS:
        raise _DamagedError(f"it has the token id {token_id}; ids are below {MAX_TOKENS}")
    return token_id


def _meaning(token: bytes, decoders: dict[int, bytes], word_piece_prefix: bytes | None) -> bytes:
    if _BYTE_LEVEL_DECODER in decoders:
        return _byte_level_token(token)
    if word_piece_prefix is not None:
        if word_piece_prefix and token.startswith(word_piece_prefix):
            return token[len(word_piece_prefix) :]
        return b" " + token
    if _BYTE_FALLBACK_DECODER in decoders and (byte := _BYTE_PIECE.fullmatch(token)):
        return bytes([int(byte[1], 16)])
    return token.replace(_SPACE_MARK, b" ")


# What each kind of a pipeline's part is made of, by its type number: s a text, digits that many
# bytes, * a count and as many parts of the same sort, t a table of code points and their texts,
# T a flag byte (the third of four) that says whether such a table follows.
_NORMALIZERS = ("", "", "s", "ss", "*", "4", "t", "T", "2")
_PRE_TOKENIZERS = ("", "1", "1", "s1", "s2", "", "*")
_DECODERS = ("", "", "s1", "s1", "", "ss", "s8", "*")
_BYTE_LEVEL_DECODER, _BYTE_FALLBACK_DECODER, _WORD_PIECE_DECODER = 0, 1, 3


def _skip(cursor: _Cursor, layouts: tuple[str, ...], noun: str, depth: int) -> dict[int, bytes]:
    """Pass over one part; returns the types met, each with its first text."""
    kind = cursor.number(1)
    if kind >= len(layouts):
        raise _UnknownTypeError(f"its {noun} has the unknown type {kind}")
    if depth == _MAX_NESTING:
        raise _DamagedError(f"its {noun}s are nested deeper than {_MAX_NESTING}")
    texts: list[bytes] = []
    found: dict[int, bytes] = {}
    for step in layouts[kind]:
        match step:
            case "s":
                texts.append(cursor.text())
            case "t":
                _skip_table(cursor)
            case "T":
                if cursor.take(4)[2]:
                    _skip_table(cursor)
            case "*":
                count = cursor.count(1)
                if count > _MAX_PARTS:
                    raise _DamagedError(f"it has {count} {noun}s; at most {_MAX_PARTS} can be")
                for _ in range(count):
                    found |= _skip(cursor, layouts, noun, depth + 1)
            case _:
                cursor.take(int(step))
    return {kind: texts[0] if texts else b""} | found


def _skip_table(cursor: _Cursor) -> None:
    for _ in range(cursor.count(6)):
        cursor.take(4)
        cursor.text()
