"""No name from outside becomes a path that leaves its folder, on any platform."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokforge_models.errors import Refused, UsageError
from tokforge_models.names import (
    fault_in_path,
    fault_in_paths,
    inside,
    is_bundle_id,
    is_revision,
    users_path,
)


@pytest.mark.parametrize(
    "path",
    [
        "llm.mnn",
        "llm.mnn.weight",
        "a/b/c.json",
        ".gitattributes",
        "sub/.hidden",
        "模型.mnn",
        "é.txt",
        "a" * 255,
        "COM10",
        "console",
        "nullable.json",
        "notes~.txt",
        "name with space.bin",
    ],
)
def test_ordinary_names_pass(path: str) -> None:
    assert fault_in_path(path) is None


@pytest.mark.parametrize(
    ("path", "because"),
    [
        ("", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("\\\\server\\share", "is absolute"),
        ("\\x", "is absolute"),
        ("C:\\x", "names a drive"),
        ("c:x", "names a drive"),
        ("..", "climbs"),
        ("../../x", "climbs"),
        ("a/../../x", "climbs"),
        ("a//b", "empty part"),
        ("./a", "empty part"),
        ("a/", "empty part"),
        ("a\\..\\b", "not allowed"),
        ("file:stream", "not allowed"),
        ("a?b", "not allowed"),
        ("a\x00b", "cannot be seen"),
        ("a\nb", "cannot be seen"),
        ("a\x9fb", "cannot be seen"),
        ("gpj\u202eexe", "cannot be seen"),
        ("a\u200bb", "cannot be seen"),
        ("a\ud800b", "cannot be seen"),
        ("a\u2028b", "cannot be seen"),
        ("a" * 256, "longer than 255"),
        ("é" * 128, "longer than 255"),
        ("a/" * 600 + "a", "longer than 1024"),
        ("a" * 5000, "longer than 1024"),
        ("trailing.", "space or dot"),
        ("trailing ", "space or dot"),
        (" leading", "space or dot"),
        ("CON", "reserves"),
        ("con.json", "reserves"),
        ("con .json", "reserves"),
        ("a/NUL", "reserves"),
        ("com1", "reserves"),
        ("LPT³.txt", "reserves"),
        ("conin$", "reserves"),
        ("TOKFOR~1", "short alias"),
        ("progra~1/x", "short alias"),
        (".tokforge", "own folder"),
        (".tokforge/manifest.json", "own folder"),
        (".TokForge/x", "own folder"),
        (".to\u212aforge/x", "own folder"),
    ],
)
def test_unsafe_names_are_refused_with_their_reason(path: str, because: str) -> None:
    fault = fault_in_path(path)
    assert fault is not None
    assert because in fault
    with pytest.raises(Refused, match="file name"):
        inside(Path("folder"), path)


@pytest.mark.parametrize(
    ("paths", "because"),
    [
        (["a", "A"], "same name"),
        (["a", "a"], "same name"),
        (["caf\u00e9", "cafe\u0301"], "same name"),
        (["straße", "STRASSE"], "same name"),
        (["x/a", "X/b"], "same folder"),
        (["a", "a/b"], "both a file and a folder"),
        (["a/b", "A"], "both a file and a folder"),
        (["ok", "../x"], "climbs"),
    ],
)
def test_names_that_collide_somewhere_are_refused(paths: list[str], because: str) -> None:
    fault = fault_in_paths(paths)
    assert fault is not None
    assert because in fault


def test_names_that_do_not_collide_pass() -> None:
    assert fault_in_paths(["llm.mnn", "llm.mnn.weight", "sub/a", "sub/b", "sub2/a"]) is None
    assert fault_in_paths([]) is None


pieces = st.lists(
    st.sampled_from(
        ["..", ".", "/", "\\", "a", "B", "~1", "C:", "con", " ", ".tokforge", "\x00", "\u202e", "é"]
    )
    | st.characters(),
    max_size=12,
).map("".join)


@given(pieces)
@example("a/..\\../x")
def test_a_name_that_passes_stays_inside_on_every_platform(path: str) -> None:
    if fault_in_path(path) is not None:
        return
    for pure in (PurePosixPath(path), PureWindowsPath(path)):
        assert not pure.is_absolute()
        assert not pure.drive
        assert not pure.root
        assert ".." not in pure.parts
        assert "/".join(pure.parts) == path
    folder = Path("/somewhere/bundle")
    assert inside(folder, path).relative_to(folder) == Path(path)


@given(st.text(max_size=80))
def test_ids_and_revisions_are_single_safe_parts(text: str) -> None:
    if is_bundle_id(text) or is_revision(text):
        assert fault_in_path(text) is None
        assert "/" not in text
        assert text.isascii()


@pytest.mark.parametrize("text", ["qwen3-4b", "acceleration-pack-qwen3-0.6b", "a", "a" * 100])
def test_bundle_ids(text: str) -> None:
    assert is_bundle_id(text)


@pytest.mark.parametrize(
    "text", ["", "Qwen", "a/b", "..", ".a", "a.", "-a", "a-", "con", "nul.x", "a" * 101, "a b", "é"]
)
def test_not_bundle_ids(text: str) -> None:
    assert not is_bundle_id(text)


@pytest.mark.parametrize("text", ["main", "v1.0", "1f8c1902b92c486b3bda8f5b5a8db2a8554acdc5"])
def test_revisions(text: str) -> None:
    assert is_revision(text)


@pytest.mark.parametrize(
    "text", ["", "..", "refs/pr/1", "current", "Current", "current.tmp", "a" * 129, "aux", "a\n"]
)
def test_not_revisions(text: str) -> None:
    assert not is_revision(text)


def test_what_a_person_writes_becomes_absolute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert users_path(Path("~/x")) == users_path(Path("x")) == tmp_path / "x"
    assert users_path(Path("x"), tmp_path / "base") == tmp_path / "base" / "x"
    assert users_path(Path("~/x"), tmp_path / "base") == tmp_path / "x"


def test_a_person_who_is_nobody_here() -> None:
    with pytest.raises(UsageError, match="'~nosuchuser/x' cannot be a path here") as caught:
        users_path(Path("~nosuchuser/x"))
    assert caught.value.hint
