"""What a reply is believed to be, as a table."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokforge_models.sources.reply import (
    Asked,
    Body,
    Follow,
    Later,
    Never,
    Reason,
    Verdict,
    host_of,
    judge,
    number_in,
    origin,
    retry_after,
    validator_of,
)

URL = "https://hub.example/a/b"
ASKED = Asked(10, 20, 100)
WHOLE = Asked(0, 100, 100)


def part(of: str, **more: str) -> dict[str, str]:
    return {"Content-Range": of, **more}


@pytest.mark.parametrize(
    ("asked", "status", "headers", "verdict"),
    [
        (ASKED, 206, part("bytes 10-19/100"), Body(10, 20)),
        (ASKED, 206, part("bytes 10-19/*", **{"Content-Length": "10"}), Body(10, 20)),
        (ASKED, 206, part("bytes 10-14/100"), Body(10, 15)),
        (ASKED, 200, {}, Body(0, 100, whole=True)),
        (WHOLE, 200, {"Content-Length": "100"}, Body(0, 100)),
        (WHOLE, 200, {"Content-Length": "100", "Content-Type": "text/html"}, Body(0, 100)),
        (ASKED, 206, part("bytes 10-19/100", **{"Content-Encoding": "identity"}), Body(10, 20)),
    ],
)
def test_bodies(asked: Asked, status: int, headers: dict[str, str], verdict: Verdict) -> None:
    assert judge(asked, URL, status, headers, 0.0) == verdict


@pytest.mark.parametrize(
    ("asked", "status", "headers", "why"),
    [
        (ASKED, 206, {}, "does not say which"),
        (ASKED, 206, part("bytes 10-19"), "does not say which"),
        (ASKED, 206, part("bytes 9-19/100"), "were asked for, but 9 to 20 came"),
        (ASKED, 206, part("bytes 10-20/100"), "were asked for, but 10 to 21 came"),
        (ASKED, 206, part("bytes 10-9/100"), "were asked for, but"),
        (ASKED, 206, part("bytes 10-19/101"), "this server says 101"),
        (ASKED, 206, part("bytes 10-19/100", **{"Content-Length": "9"}), "not that of its range"),
        (WHOLE, 200, {"Content-Length": "99"}, "a body of 99 came"),
        (WHOLE, 200, {"Content-Type": "text/html"}, "want a login?"),
        (ASKED, 206, part("bytes 10-19/100", **{"Content-Encoding": "gzip"}), "encoded as gzip"),
        (ASKED, 204, {}, "means nothing here"),
        (ASKED, 503, {}, "says 503"),
        (ASKED, 429, {}, "says 429"),
    ],
)
def test_what_may_be_better_next_time(
    asked: Asked, status: int, headers: dict[str, str], why: str
) -> None:
    verdict = judge(asked, URL, status, headers, 0.0)
    assert isinstance(verdict, Later)
    assert why in verdict.why


@pytest.mark.parametrize(
    ("status", "headers", "reason"),
    [
        (401, {}, Reason.UNAUTHORIZED),
        (401, {"X-Error-Code": "RepoNotFound"}, Reason.UNAUTHORIZED),
        (401, {"X-Error-Code": "GatedRepo"}, Reason.GATED),
        (403, {"X-Error-Code": "GatedRepo"}, Reason.GATED),
        (403, {}, Reason.FORBIDDEN),
        (404, {"X-Error-Code": "RepoNotFound"}, Reason.NO_REPOSITORY),
        (404, {"X-Error-Code": "RevisionNotFound"}, Reason.NO_REVISION),
        (404, {"X-Error-Code": "EntryNotFound"}, Reason.NO_FILE),
        (404, {}, Reason.NO_FILE),
        (410, {}, Reason.NO_FILE),
        (416, {}, Reason.CHANGED),
        (451, {}, Reason.REFUSED),
        (302, {}, Reason.REDIRECT),
        (302, {"Location": "http://hub.example/x"}, Reason.REDIRECT),
        (302, {"Location": "file:///etc/passwd"}, Reason.REDIRECT),
        (302, {"Location": "https://x:99999999/"}, Reason.REDIRECT),
    ],
)
def test_what_will_not_be_better(status: int, headers: dict[str, str], reason: Reason) -> None:
    verdict = judge(ASKED, URL, status, headers, 0.0)
    assert isinstance(verdict, Never)
    assert verdict.reason is reason


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(status: int) -> None:
    for location, url in (
        ("https://cdn.example/x?y=z", "https://cdn.example/x?y=z"),
        ("/c", "https://hub.example/c"),
        ("c", "https://hub.example/a/c"),
    ):
        assert judge(ASKED, URL, status, {"Location": location}, 0.0) == Follow(url)
    plain = judge(ASKED, "http://a/", status, {"Location": "https://a/"}, 0.0)
    assert plain == Follow("https://a/")


def test_another_version_where_only_the_validator_can_tell() -> None:
    asked = Asked(10, 20, 100, validator='"one"')
    headers = part("bytes 10-19/100", ETag='"two"')
    verdict = judge(asked, URL, 206, headers, 0.0)
    assert isinstance(verdict, Never)
    assert verdict.reason is Reason.CHANGED
    assert judge(asked, URL, 206, part("bytes 10-19/100", ETag='"one"'), 0.0) == Body(10, 20)
    assert judge(asked, URL, 206, part("bytes 10-19/100"), 0.0) == Body(10, 20)


@given(
    st.integers(0, 200),
    st.integers(0, 200),
    st.one_of(st.none(), st.integers(0, 200)),
    st.one_of(st.none(), st.integers(0, 300)),
)
def test_a_part_is_believed_only_within_what_was_asked(
    first: int, last: int, total: int | None, length: int | None
) -> None:
    headers = part(f"bytes {first}-{last}/{'*' if total is None else total}")
    if length is not None:
        headers["Content-Length"] = str(length)
    verdict = judge(ASKED, URL, 206, headers, 0.0)
    if isinstance(verdict, Body):
        assert (verdict.start, verdict.stop) == (first, last + 1)
        assert ASKED.start == first <= last < ASKED.stop
        assert total in {None, ASKED.size}
        assert length in {None, last + 1 - first}


@given(
    st.integers(100, 599),
    st.dictionaries(
        st.sampled_from(
            [
                "Content-Range",
                "Content-Length",
                "Location",
                "Retry-After",
                "Content-Encoding",
                "ETag",
            ]
        ),
        st.text(max_size=30),
    ),
)
def test_no_reply_is_beyond_words(status: int, headers: dict[str, str]) -> None:
    assert isinstance(judge(ASKED, URL, status, headers, 0.0), Body | Follow | Later | Never)


def test_retry_after() -> None:
    assert retry_after("120", 0.0) == 120.0
    assert retry_after(formatdate(1000, usegmt=True), 970.0) == 30.0
    assert retry_after(formatdate(1000, usegmt=True), 2000.0) == 0.0
    assert retry_after("soon", 0.0) is None
    assert retry_after("-5", 0.0) is None
    assert retry_after(None, 0.0) is None


def test_an_origin_is_scheme_host_and_port() -> None:
    assert origin("https://Hub.example/x") == ("https", "hub.example", 443)
    assert origin("http://hub.example") != origin("https://hub.example")
    assert origin("https://hub.example:444") != origin("https://hub.example")
    assert host_of("https://hub.example:443/x") == "hub.example"
    assert host_of("http://hub.example:8080/x") == "hub.example:8080"


def test_validators() -> None:
    assert validator_of({"ETag": '"x"', "Last-Modified": "y"}) == '"x"'
    assert validator_of({"Last-Modified": "y"}) == "y"
    assert validator_of({}) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        (" 12 ", 12),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("9" * 5000, None),
        ("-1", None),
        ("1.0", None),
        ("", None),
        (None, None),
    ],
)
def test_numbers_of_bytes(text: str | None, number: int | None) -> None:
    assert number_in(text) == number
