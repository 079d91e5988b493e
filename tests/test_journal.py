"""A journal says after a kill what it said before, but for its last line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store_kit import FastDisk
from tokforge_models.bundle import FileRole, Role
from tokforge_models.store.journal import Header, Journal, read_journal
from tokforge_models.store.manifest import Entry, Stamp

HEADER = Header("demo", "r1", Role.CHAT, 1000)
SHA = "ab" * 32
WHOLE = Entry("b", FileRole.REQUIRED, 5, SHA, (SHA,), Stamp(5, 6, 7))


def filled(path: Path) -> Journal:
    journal = Journal.open(path, HEADER, FastDisk())
    journal.begin("a", 2500, "v")
    journal.segment("a", 0, SHA)
    journal.segment("a", 2, SHA)
    journal.whole(WHOLE, None)
    return journal


def test_what_is_written_is_read(tmp_path: Path) -> None:
    journal = filled(tmp_path / "journal")
    again = Journal.open(tmp_path / "journal", HEADER, FastDisk())
    assert again.records == journal.records
    assert again.records["a"].segments == {0: SHA, 2: SHA}
    assert again.records["a"].safe_bytes(1000) == 1500
    assert again.records["b"].whole == WHOLE
    again.begin("b", 2500, None, {1: SHA})
    told = read_journal(tmp_path / "journal")
    assert told is not None
    assert told[1]["b"].segments == {1: SHA}
    assert told[1]["b"].whole is None


def test_a_cut_at_any_byte_loses_at_most_the_line_it_cut(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    filled(path)
    data = path.read_bytes()
    head = data.index(b"\n") + 1
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        told = read_journal(path)
        if cut < head:
            assert told is None or not told[1]
        else:
            assert told is not None
            lines = data[:cut].count(b"\n") - 1
            assert len(told[1].get("a").segments if "a" in told[1] else ()) == min(
                max(lines - 1, 0), 2
            )
            assert ("b" in told[1]) == (lines == 4)
        journal = Journal.open(path, HEADER, FastDisk())
        journal.begin("c", 10, None)
        journal.segment("c", 0, SHA)
        again = read_journal(path)
        assert again is not None
        assert again[1]["c"].segments == {0: SHA}


@pytest.mark.parametrize(
    "other",
    [
        Header("other", "r1", Role.CHAT, 1000),
        Header("demo", "r2", Role.CHAT, 1000),
        Header("demo", "r1", Role.CHAT, 999),
    ],
)
def test_a_journal_about_something_else_is_begun_anew(tmp_path: Path, other: Header) -> None:
    filled(tmp_path / "journal")
    assert not Journal.open(tmp_path / "journal", other, FastDisk()).records


@pytest.mark.parametrize("schema", [b"1.0", b"true", b"2"])
def test_a_journal_of_another_schema_is_begun_anew(tmp_path: Path, schema: bytes) -> None:
    filled(tmp_path / "journal")
    data = (tmp_path / "journal").read_bytes()
    assert data.startswith(b'{"journal":1,')
    (tmp_path / "journal").write_bytes(data.replace(b'"journal":1', b'"journal":' + schema, 1))
    assert not Journal.open(tmp_path / "journal", HEADER, FastDisk()).records


def test_a_new_role_forgets_nothing(tmp_path: Path) -> None:
    filled(tmp_path / "journal")
    header = Header("demo", "r1", Role.DRAFT, 1000)
    assert Journal.open(tmp_path / "journal", header, FastDisk()).records


@pytest.mark.parametrize(
    "line",
    [
        '{"begin":"../x","size":5,"validator":null,"segments":{}}',
        '{"begin":"x","size":-5,"validator":null,"segments":{}}',
        '{"begin":"x","size":true,"validator":null,"segments":{}}',
        '{"begin":"x","size":5,"validator":3,"segments":{}}',
        '{"begin":"x","size":5,"validator":null,"segments":[]}',
        '{"begin":"a","size":5,"validator":null,"segments":{"x":1}}',
        '{"begin":"a","size":5,"validator":null}',
        '{"begin":["x"],"size":5,"validator":null,"segments":{}}',
        '{"segment":"x","index":0,"sha256":"' + SHA + '"}',
        '{"segment":["a"],"index":0,"sha256":"' + SHA + '"}',
        '{"whole":{"path":"x"}}',
        '{"whole":null}',
        '{"what":1}',
        "[" * 5000,
        "\x00",
        "5",
    ],
)
def test_a_line_that_makes_no_sense_is_passed_over(tmp_path: Path, line: str) -> None:
    path = tmp_path / "journal"
    journal = filled(path)
    with path.open("a", newline="") as stream:
        stream.write(f"{line}\n")
    told = read_journal(path)
    assert told is not None
    assert told[1] == journal.records


@pytest.mark.parametrize("index", ["-1", "3", "true", '"0"', "1.0", "null"])
def test_a_segment_that_cannot_be_is_passed_over(tmp_path: Path, index: str) -> None:
    path = tmp_path / "journal"
    journal = filled(path)
    with path.open("a", newline="") as stream:
        stream.write(f'{{"segment":"a","index":{index},"sha256":"{SHA}"}}\n')
    told = read_journal(path)
    assert told is not None
    assert told[1] == journal.records


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal"
    path.write_bytes(data)
    told = read_journal(path)
    assert told is None or told[0].segment_bytes > 0
