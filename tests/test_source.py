"""Local sources, and which source is chosen."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from store_kit import bundle_of, make_files, write_files
from tokforge_models.bundle import Source
from tokforge_models.errors import FetchError, Refused, UsageError
from tokforge_models.sources.source import FETCHERS, FolderFetcher, choose_sources, parse_source

FILES = make_files()


def test_a_folder_lists_its_plain_visible_files(tmp_path: Path) -> None:
    folder = write_files(
        tmp_path / "x", {**FILES, "sub/a.bin": b"1", ".git/config": b"", ".a": b""}
    )
    (folder / "link.mnn").symlink_to(folder / "llm.mnn")
    (folder / "linked").symlink_to(tmp_path, target_is_directory=True)
    listing = FolderFetcher(folder, "path:x").listing()
    assert {file.path for file in listing.files} == {*FILES, "sub/a.bin"}
    assert {file.path: file.size for file in listing.files}["llm.mnn"] == len(FILES["llm.mnn"])
    assert listing.notes == (
        "link.mnn is a symbolic link, which is not followed",
        "linked is a symbolic link, which is not followed",
    )


@pytest.mark.skipif(sys.platform == "win32", reason="such names cannot be made there")
def test_names_that_are_not_safe_everywhere_are_left_out_and_told(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "x", {"con.json": b"", "a\\b": b"", "ok": b""})
    listing = FolderFetcher(folder, "path:x").listing()
    assert [file.path for file in listing.files] == ["ok"]
    assert len(listing.notes) == 2


def test_ranges(tmp_path: Path) -> None:
    fetcher = FolderFetcher(write_files(tmp_path, FILES), "path:x")
    data = FILES["llm.mnn"]
    assert b"".join(fetcher.read("llm.mnn", 0, len(data))) == data
    assert b"".join(fetcher.read("llm.mnn", 10, 20)) == data[10:20]
    with pytest.raises(FetchError, match="ended early"):
        list(fetcher.read("llm.mnn", 10, len(data) + 1))
    with pytest.raises(FetchError, match="No such file"):
        list(fetcher.read("missing", 0, 1))
    with pytest.raises(Refused, match="climbs"):
        list(fetcher.read("../x", 0, 1))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="path:x is not there"):
        FolderFetcher(tmp_path / "missing", "path:x").listing()


def test_a_folder_with_more_files_than_a_bundle_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokforge_models.sources.source._MAX_FILES", 3)
    with pytest.raises(FetchError, match="at most 3 files"):
        FolderFetcher(write_files(tmp_path, FILES), "path:x").listing()


def test_where_local_sources_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path / "registry" / "x", FILES)
    source = Source("path", "x")
    from dataclasses import replace

    bundle = replace(
        bundle_of(FILES, sources=(source,)), defined_in=str(tmp_path / "registry" / "registry.yaml")
    )
    assert len(FETCHERS["path"](source, bundle).listing().files) == len(FILES)
    monkeypatch.chdir(tmp_path / "registry")
    (forced,) = choose_sources(bundle, "path:x", FETCHERS)
    assert forced.location == str(tmp_path / "registry" / "x")
    assert len(FETCHERS["path"](forced, bundle).listing().files) == len(FILES)
    with pytest.raises(FetchError, match="package:not-here is not there"):
        FETCHERS["package"](Source("package", "not-here"), bundle).listing()
    with pytest.raises(Refused, match="climbs"):
        FETCHERS["package"](Source("package", "../.."), bundle)


def test_a_source_as_a_user_writes_it() -> None:
    assert parse_source("hf:a/b@main") == Source("hf", "a/b", "main")
    with pytest.raises(UsageError, match="'ftp:x' is not a source") as caught:
        parse_source("ftp:x")
    assert "modelscope:" in caught.value.expected


@pytest.mark.parametrize("text", ["url:http://u:secret@h/f", "url:secret@h", "hf:secret@../x"])
def test_no_password_is_repeated(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_source(text)
    assert "secret" not in caught.value.message


def test_which_sources_are_tried() -> None:
    mixed = (Source("hf", "a/b"), Source("package", "x"), Source("path", "y"))
    bundle = bundle_of(FILES, sources=mixed)
    local = {kind: FETCHERS[kind] for kind in ("package", "path")}
    assert choose_sources(bundle, None, FETCHERS) == mixed
    assert choose_sources(bundle, None, local) == mixed[1:]
    assert choose_sources(bundle, "path", FETCHERS) == mixed[2:]
    with pytest.raises(UsageError, match="no source of the kind 'url'"):
        choose_sources(bundle, "url", FETCHERS)
    with pytest.raises(FetchError, match="cannot be pulled by this version") as caught:
        choose_sources(bundle, "hf", local)
    assert "package: or path:" in caught.value.expected
    with pytest.raises(FetchError, match="no public address") as caught:
        choose_sources(bundle_of(FILES, sources=()), None, FETCHERS)
    assert "tokforge import DIR --as demo" in caught.value.hint
    assert caught.value.exit_code == 4


def test_the_home_of_nobody() -> None:
    bundle = bundle_of(make_files(), sources=(Source("path", "~nosuchuser/x"),))
    with pytest.raises(UsageError, match="~nosuchuser"):
        choose_sources(bundle, "path:~nosuchuser/x", FETCHERS)
    with pytest.raises(UsageError, match="~nosuchuser"):
        FETCHERS["path"](bundle.sources[0], bundle)


def test_a_folder_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="is not there") as caught:
        FolderFetcher(tmp_path / "missing", "path:missing").listing()
    assert caught.value.hint
