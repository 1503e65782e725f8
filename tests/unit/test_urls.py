"""The identity of a URL: WHATWG parsing, its parts, and its keys."""

from __future__ import annotations

import re

import pytest

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl


@pytest.mark.parametrize(
    ("text", "base", "identity"),
    [
        ("http://example.com", None, "http://example.com/"),
        ("HTTP://EXAMPLE.com:80/", None, "http://example.com/"),
        ("https://example.com:443/x", None, "https://example.com/x"),
        ("https://example.com:80/x", None, "https://example.com:80/x"),
        ("http://example.com/a/../b/./c", None, "http://example.com/b/c"),
        ("http://example.com/../../x", None, "http://example.com/x"),
        ("http://example.com/%2e%2e/x", None, "http://example.com/x"),
        ("http://example.com/x#y", None, "http://example.com/x"),
        ("http://example.com/#", None, "http://example.com/"),
        ("http://example.com/?a=%23#b", None, "http://example.com/?a=%23"),
        ("http://example.com/?b=2&a=1&b=2", None, "http://example.com/?b=2&a=1&b=2"),
        ("http://example.com/?", None, "http://example.com/?"),
        ("http://me:secret@example.com/x", None, "http://example.com/x"),
        ("http://me@example.com:8080/x#y", None, "http://example.com:8080/x"),
        ("  http://example.com/a b\n", None, "http://example.com/a%20b"),
        ("http://example.com/é", None, "http://example.com/%C3%A9"),
        ("http://example.com/%7euser", None, "http://example.com/%7euser"),
        ("http://bücher.example/", None, "http://xn--bcher-kva.example/"),
        ("http://faß.example/", None, "http://xn--fa-hia.example/"),
        ("http://127.1/", None, "http://127.0.0.1/"),
        ("http://0x7f000001/", None, "http://127.0.0.1/"),
        ("http://2130706433/", None, "http://127.0.0.1/"),
        ("http://１２７.0.0.1/", None, "http://127.0.0.1/"),
        ("http://[::FFFF:127.0.0.1]/", None, "http://[::ffff:7f00:1]/"),
        ("http:///evil.test/x", None, "http://evil.test/x"),
        (r"http:\\evil.test\x", None, "http://evil.test/x"),
        ("../../x", "http://example.com/a/b", "http://example.com/x"),
        ("", "http://example.com/a?b#c", "http://example.com/a?b"),
        ("#top", "http://example.com/a?b", "http://example.com/a?b"),
        ("?q", "http://me:secret@example.com/a", "http://example.com/a?q"),
        ("//b.test", "https://example.com/a", "https://b.test/"),
    ],
)
def test_url_when_resolved_then_is_its_identity(text: str, base: str | None, identity: str) -> None:
    resolved = urls.resolve(text, base)

    assert resolved == identity
    assert urls.resolve(resolved) == identity


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("", None),
        ("/path", None),
        ("example.com", None),
        ("http://", None),
        ("http://a b/", None),
        ("http://a%00b/", None),
        ("http://256.256.256.256/", None),
        ("http://[::1", None),
        ("http://a:99999/", None),
        ("ftp://example.com/", None),
        ("file:///etc/passwd", "http://example.com/"),
        ("javascript:alert(1)", "http://example.com/"),
        ("mailto:me@example.com", "http://example.com/"),
        ("data:text/html,x", "http://example.com/"),
        ("blob:http://example.com/x", "http://example.com/"),
        ("x", "nonsense"),
    ],
)
def test_text_when_no_http_url_then_is_invalid(text: str, base: str | None) -> None:
    with pytest.raises(InvalidUrl):
        urls.resolve(text, base)


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("127.0.0.1:8183/x", "http://127.0.0.1:8183/x"),
        ("127.0.0.1:8183", "http://127.0.0.1:8183/"),
        ("localhost:8183/x?u=http://other.test/", "http://localhost:8183/x?u=http://other.test/"),
        ("intranet", "http://intranet/"),
        (" www.example.com/a b#part ", "http://www.example.com/a%20b"),
        ("bücher.example?x", "http://xn--bcher-kva.example/?x"),
        ("[::1]:80/x", "http://[::1]/x"),
        ("HTTPS://example.com/x", "https://example.com/x"),
        ("example.org:443", "http://example.org:443/"),
        ("javascript.test:1", "http://javascript.test:1/"),
        ("tel", "http://tel/"),
    ],
)
def test_url_when_typed_without_a_scheme_then_is_one_of_http(text: str, identity: str) -> None:
    assert urls.resolve_typed(text) == identity


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "?q",
        "mailto:me@example.com",
        "ftp://example.com/",
        "a b/",
        "*.example.com",
        "a:99999/",
        "javascript:1",
        "TEL:110",
    ],
)
def test_text_when_typed_and_no_host_then_is_invalid(text: str) -> None:
    with pytest.raises(InvalidUrl):
        urls.resolve_typed(text)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("/srv/a b.txt", "file:///srv/a%20b.txt"),
        ("/srv/a%20b.txt", "file:///srv/a%2520b.txt"),
        ("file:///srv/it's(1).txt", "file:///srv/it%27s%281%29.txt"),
        ("file:///srv/a.zip!/in (1)/x.txt", "file:///srv/a.zip!/in%20(1)/x.txt"),
    ],
)
def test_text_when_typed_as_a_path_or_as_the_url_of_a_file_then_is_the_identity_of_it(text: str, url: str) -> None:
    assert urls.resolve_typed(text) == url


@pytest.mark.parametrize("text", ["http://example.com/\ud800", "/\ud800", "\ud800", "http://\ud800/"])
def test_text_when_it_holds_a_lone_surrogate_then_is_a_url_or_invalid(text: str) -> None:
    try:
        resolved = urls.resolve(text)
    except InvalidUrl:
        resolved = ""

    assert resolved.isascii()


def test_message_when_the_text_is_long_then_is_short() -> None:
    with pytest.raises(InvalidUrl) as refusal:
        urls.resolve("x" * 100_000)

    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://a.test", urls.ParsedUrl("http://a.test/", "http", "a.test", 80, "/", "")),
        ("https://a.test/b?c=d#e", urls.ParsedUrl("https://a.test/b?c=d", "https", "a.test", 443, "/b", "c=d")),
        ("http://u:p@a.test:81/?", urls.ParsedUrl("http://a.test:81/?", "http", "a.test", 81, "/", "")),
        ("http://[::1]:443/x", urls.ParsedUrl("http://[::1]:443/x", "http", "[::1]", 443, "/x", "")),
    ],
)
def test_url_when_parsed_then_has_effective_parts(text: str, expected: urls.ParsedUrl) -> None:
    assert urls.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "netloc", "origin"),
    [
        ("http://a.test:80/x", "a.test", "http://a.test"),
        ("https://a.test:80/x", "a.test:80", "https://a.test:80"),
        ("http://a.test:443/x", "a.test:443", "http://a.test:443"),
        ("https://[::1]/", "[::1]", "https://[::1]"),
    ],
)
def test_origin_when_the_port_is_the_default_then_lacks_it(text: str, netloc: str, origin: str) -> None:
    parsed = urls.parse(text)

    assert (parsed.netloc, parsed.origin) == (netloc, origin)


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("/plain", "/plain"),
        ("/%70rivate/%7Eme%2dx%2E%5f", "/private/~me-x._"),
        ("/%2f%3f%23%25", "/%2F%3F%23%25"),
        ("/%c3%a9", "/%C3%A9"),
        ("/%2570", "/%2570"),
        ("/%zz%4", "/%zz%4"),
    ],
)
def test_escapes_when_of_unreserved_then_are_decoded_once(text: str, decoded: str) -> None:
    assert urls.unescape_unreserved(text) == decoded


def test_key_when_taken_then_is_a_signed_64_bit_number_that_stays() -> None:
    keys = [urls.key(f"http://a.test/{n}") for n in range(1000)]

    assert len(set(keys)) == 1000
    assert all(-(1 << 63) <= key < (1 << 63) for key in keys)
    assert min(keys) < 0 < max(keys)


def test_key_when_of_nothing_then_is_xxh3s_published_value() -> None:
    assert urls.key("") == 0x2D06800538D394C2


def test_document_id_when_taken_then_names_source_and_hash() -> None:
    identity = urls.document_id("demo", "http://a.test/")

    assert re.fullmatch(r"demo:[0-9a-f]{32}", identity)
    assert urls.document_id("other", "http://a.test/").removeprefix("other:") == identity.removeprefix("demo:")
    assert urls.document_id("demo", "") == "demo:99aa06d3014798d86001c324468d497f"


@pytest.mark.parametrize(
    "text",
    [
        "http://a.test",
        "https://a.test:8443/x:y@z",
        "http://a.test/?q=1:2",
        "http://[::1]/",
        "http://[2001:db8::1]:8080/x",
    ],
)
def test_host_when_of_an_identity_then_is_the_parsed_one(text: str) -> None:
    identity = urls.resolve(text)

    assert urls.host(identity) == urls.parse(identity).host


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("http://a.test", ""),
        ("http://a.test/x/y%2Fz.pdf?of=/b#c/d", "y%2Fz.pdf"),
        ("http://a.test/app#/routes/one", "app"),
        ("file:///x/a%3F%23.zip!/folder/b.txt", "b.txt"),
        ("s3://bucket/x//", ""),
    ],
)
def test_last_name_when_of_an_identity_then_is_that_of_the_parsed_path(text: str, name: str) -> None:
    identity = urls.resolve(text, routes=True, listed=True)

    assert (
        urls.last_name(identity),
        urls.parse(urls.without_route(identity)).path.rpartition("/")[2],
    ) == (name, name)


@pytest.mark.parametrize(
    "text", ["ftp://me:hunter2@host/x", "http://me:hunter2@[bad/", "me:hunter2@host", "http:me:hunter2@:x"]
)
def test_resolve_when_what_is_no_url_has_a_password_then_the_error_does_not_show_it(text: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        urls.resolve(text)

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["http://a.test/@x", "http://a.test?me:x@y", "a@", "http://a.test#u@h", ""])
def test_hide_user_info_when_there_is_none_then_the_text_stays(text: str) -> None:
    assert urls.hide_user_info(text) == text


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("http://a.test/app#/users", "http://a.test/app#/users"),
        ("http://a.test/app#!users?page=2", "http://a.test/app#!users?page=2"),
        ("http://u:p@a.test#/", "http://a.test/#/"),
        ("http://a.test/?q=1#/a b\u00e9#/c", "http://a.test/?q=1#/a%20b%C3%A9#/c"),
        ("http://a.test/app#top", "http://a.test/app"),
        ("http://a.test/app#", "http://a.test/app"),
        ("http://a.test/app# /users", "http://a.test/app"),
        ("http://a.test/app%23/users", "http://a.test/app%23/users"),
    ],
)
def test_url_when_its_fragment_is_a_route_then_that_is_kept_where_routes_are_and_nothing_else(
    text: str, identity: str
) -> None:
    assert urls.resolve(text, routes=True) == identity
    assert urls.resolve(identity, routes=True) == identity
    assert urls.resolve(text) == urls.without_route(identity)
    assert urls.parse(text) == urls.parse(urls.without_route(identity))
