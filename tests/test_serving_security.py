from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from tokforge_models.serving.errors import Forbidden, Unauthorized
from tokforge_models.serving.security import Access, check_host, check_key


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LocalHost:80", "localhost.", "127.0.0.1", "127.0.0.1:8080", "10.1.2.3"),
        *("[::1]", "[::1]:8080", "[fe80::1]:1", "phone.home", "Phone.Home:8080"),
    ],
)
def test_names_that_no_foreign_page_can_have_are_answered(host):
    check_host(Headers({"host": host}), Access(hosts=frozenset({"phone.home"})))


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.io"),
        *(
            "127.0.0.1@evil.example",
            "[::1].evil.example]",
            "[evil.example]",
            "x.phone.home",
            "0x7f.1",
        ),
    ],
)
def test_others_are_not(host):
    with pytest.raises(Forbidden):
        check_host(Headers({"host": host}), Access(hosts=frozenset({"phone.home"})))


@pytest.mark.parametrize("said", ["Bearer k", "bearer k", "BEARER  k "])
def test_the_key_opens(said):
    check_key(Headers({"authorization": said}), Access("k"))


@pytest.mark.parametrize("said", ["", "k", "Bearer", "Bearer ", "Bearer K", "Basic k", "Bearer kk"])
def test_nothing_else_does(said):
    with pytest.raises(Unauthorized):
        check_key(Headers({"authorization": said}), Access("k"))


def test_without_a_key_everybody_may_ask():
    check_key(Headers({}), Access())
