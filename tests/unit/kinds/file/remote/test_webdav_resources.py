"""Where a resource of an answer is, and which version of a file it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from searchcrawl.kinds.file.remote.model import RemoteFailure
from searchcrawl.kinds.file.remote.multistatus import Resource
from searchcrawl.kinds.file.remote.webdav_resources import build_thing, locate

NOW = datetime(2026, 5, 4, 12, 0, 10, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
OLD = "Mon, 04 May 2026 11:00:00 GMT"


def token(**properties: str) -> bytes:
    return build_thing(Resource("/a", properties=properties), b"a", NOW_MS).thing.token


@pytest.mark.parametrize(
    ("href", "place"),
    [
        ("/dav/a.txt", [b"dav", b"a.txt"]),
        ("http://other.test:8080/dav/a.txt", [b"dav", b"a.txt"]),
        ("HTTPS://h", []),
        ("/dav//a.txt/", [b"dav", b"a.txt"]),
        ("//dav/a.txt", [b"dav", b"a.txt"]),
        ("/dav/a%20b+c%2bd.txt", [b"dav", b"a b+c+d.txt"]),
        ("/dav/a b&c.txt", [b"dav", b"a b&c.txt"]),
        ("/dav/a#b?c.txt", [b"dav", b"a#b?c.txt"]),
        ("/dav/%e9%FF%00%.txt", [b"dav", b"\xe9\xff\0%.txt"]),
        ("/dav/ü.txt", [b"dav", "ü.txt".encode()]),
        ("/dav/a%2fb", [b"dav", b"a/b"]),
        ("/dav/%2e%2e%2f", [b"dav", b"../"]),
        ("/dav/...", [b"dav", b"..."]),
        ("a.txt", [b"asked", b"a.txt"]),
        ("", [b"asked"]),
    ],
)
def test_href_when_written_in_any_way_then_names_are_found(href: str, place: list[bytes]) -> None:
    assert locate(href, (b"asked",)) == tuple(place)


@pytest.mark.parametrize("href", ["/dav/../x", "/dav/%2e%2E/x", "../x", "/./x", "http://h/a/%2e"])
def test_href_when_it_leads_upwards_then_is_refused(href: str) -> None:
    with pytest.raises(RemoteFailure, match="leads upwards"):
        locate(href, (b"dav",))


def test_token_when_the_etag_is_strong_then_it_alone_counts() -> None:
    assert token(getetag='"x"', getlastmodified=OLD, getcontentlength="3") == b'"x"'
    assert token(getetag='"x"') == b'"x"'


def test_token_when_there_is_no_strong_etag_then_all_counts() -> None:
    weak = token(getetag='W/"x"', getlastmodified=OLD, getcontentlength="3")
    tokens = {weak, token(getetag='W/"x"', getlastmodified=OLD, getcontentlength="4")}
    tokens |= {
        token(getlastmodified=OLD, getcontentlength="3"),
        token(getlastmodified=OLD),
        token(getcontentlength="3"),
    }

    assert len(tokens) == 5
    assert b"" not in tokens
    assert token() == b""


@pytest.mark.parametrize(
    ("seconds", "is_known"), [(-3, True), (-2, True), (-1, False), (0, False), (5, False), (7200, True)]
)
def test_token_when_the_file_is_young_by_the_clock_of_the_server_then_is_not_known(
    seconds: int, is_known: bool
) -> None:
    written = (NOW + timedelta(seconds=seconds)).strftime("%a, %d %b %Y %H:%M:%S GMT")

    assert bool(token(getetag='"x"', getlastmodified=written)) == is_known


@pytest.mark.parametrize("date", ["", "now", "Mon, 99 May 2026 11:00:00 GMT", "x" * 9999])
def test_date_when_it_is_none_then_the_file_has_none(date: str) -> None:
    thing = build_thing(
        Resource("/a", properties={"getlastmodified": date, "getcontentlength": "-1"}), b"a", NOW_MS
    ).thing

    assert (thing.modified_ms, thing.size) == (None, 0)


@pytest.mark.parametrize(("name", "shown"), [(b"a/b", b"a%2Fb"), (b"../", b"..%2F"), (b"a\0b", b"a%00b")])
def test_name_when_no_file_may_have_it_then_is_left_out_with_its_reason(name: bytes, shown: bytes) -> None:
    thing = build_thing(Resource("/a"), name, NOW_MS).thing

    assert thing.name == shown
    assert "in its name" in thing.barred
