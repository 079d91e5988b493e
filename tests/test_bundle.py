"""Plain values: how a source is written, and limits that the engine has, too."""

from __future__ import annotations

import re

import pytest

from tokforge_engine.errors import InvalidRequest
from tokforge_engine.settings import MAX_D as ENGINES_MAX_D
from tokforge_engine.settings import RuntimeSettings
from tokforge_models.bundle import BACKENDS, LEVELS, MAX_D, MAX_THREADS, Source


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("hf:a/b@main", Source("hf", "a/b", "main")),
        ("hf:a/b", Source("hf", "a/b")),
        ("modelscope:a/b.c@v1", Source("modelscope", "a/b.c", "v1")),
        ("url:https://x/y", Source("url", "https://x/y")),
        ("url:http://127.0.0.1:80/a@b", Source("url", "http://127.0.0.1:80/a@b")),
        ("url:http://[::1]:80/y", Source("url", "http://[::1]:80/y")),
        ("path:/a@b", Source("path", "/a@b")),
        ("path:../a\nb", Source("path", "../a\nb")),
        ("package:demo", Source("package", "demo")),
    ],
)
def test_a_source_is_read_as_it_is_written(text: str, source: Source) -> None:
    assert Source.parse(text) == source
    assert str(source) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "hf:, modelscope:, url:, path: or package:"),
        ("hf", "and a location"),
        ("hf:", "and a location"),
        ("path: ", "and a location"),
        ("ftp:x", "hf:, modelscope:"),
        (":x", "hf:, modelscope:"),
        ("HF:a/b", "hf:, modelscope:"),
        ("hf:x", "hf:owner/name"),
        ("hf:../x", "hf:owner/name"),
        ("hf:a/..", "hf:owner/name"),
        ("hf:a/b/c", "hf:owner/name"),
        ("modelscope:a\\b", "modelscope:owner/name"),
        ("hf:a/b@../../x", "a revision that can be a folder's name"),
        ("hf:a/b@", "a revision that can be a folder's name"),
        ("modelscope:a/b@current", "a revision that can be a folder's name"),
        ("url:ftp://h/f", "url:http(s)://host/path"),
        ("url:http:///f", "url:http(s)://host/path"),
        ("url:http://u:secret@h/f", "without user, password"),
        ("url:http://u@h/f", "without user, password"),
        ("url:http://h?token=x", "or query"),
        ("url:http://h/f#x", "or query"),
        ("url:http://h\\@evil/f", "without user"),
        ("url:http://h/a b", "url:http(s)://host/path"),
        ("package:../x", "the name of a folder in this package"),
        ("package:demo@1", "the name of a folder in this package"),
    ],
)
def test_what_is_no_source(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        Source.parse(text)


def test_the_engine_takes_what_a_registry_may_say() -> None:
    assert MAX_D == ENGINES_MAX_D
    for backend in BACKENDS:
        RuntimeSettings(backend=backend)
    for level in LEVELS:
        RuntimeSettings(precision=level, memory=level, power=level)
    RuntimeSettings(threads=1)
    RuntimeSettings(threads=MAX_THREADS)


@pytest.mark.parametrize(
    "values", [{"threads": MAX_THREADS + 1}, {"backend": "npu"}, {"precision": "low_bf16"}]
)
def test_a_registry_may_say_what_the_engine_takes(values: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        RuntimeSettings(**values)
    assert values.get("backend") not in BACKENDS
    assert values.get("precision") not in LEVELS
