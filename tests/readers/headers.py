"""Readers of headers: types, names, challenges, cookies, redirects, dates."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from scrapy.http import Headers

from searchcrawl.convert.registry import is_binary
from searchcrawl.documents.document_pipeline import complete_page
from searchcrawl.html.content_type import join_content_type, parse_content_type
from searchcrawl.html.encoding import find_codec, find_encoding
from searchcrawl.html.file_name import build_title, parse_disposition
from searchcrawl.html.metas import list_robots_tags, parse_refresh, read_robots_directives
from searchcrawl.http.digest import build_digest_header, find_challenge, find_next_nonce, list_schemes
from searchcrawl.http.headers_middleware import read_canonical
from searchcrawl.http.visit_log_middleware import describe_headers
from searchcrawl.items import Claim, Document, Page
from searchcrawl.kinds.web.login.cookie_jar import CookieJar
from searchcrawl.kinds.web.sitemaps.formats import parse_date_ms
from searchcrawl.politeness.backoff import parse_retry_after
from searchcrawl.render.browser_request import BadRequest, BrowserRequest, DecodedAnswer, parse_head
from searchcrawl.render.crawl_wall import choose_headers
from searchcrawl.render.credentials import Credentials
from searchcrawl.render.page_port import find_tunnel
from searchcrawl.render.resource_cache import ResourceCache, build_key
from searchcrawl.rules.attribute_values import AttributeMap, Mapped
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.index_filter import read_last_modified
from searchcrawl.rules.redirects import decide
from searchcrawl.rules.rewriting import Rewriting
from tests.readers.declaring import URL, declare

DATES: Final = (
    *(
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94",
        " 08:49:37",
        "2024-01-01",
        "T10:00:00",
        "Z",
        "+01:00",
        "-9999",
    ),
    *(
        "9999",
        "0",
        "1",
        "-",
        ":",
        ",",
        ".",
        " ",
        "Jan",
        "GMT",
        "PST",
        "99999999999",
        "+",
        "/",
        "(",
        "W01",
        "0001-01-01T00:00",
    ),
)
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_BOUNDARY: Final = Boundary(include_hosts=["a.test"])
_ATTRIBUTES: Final = AttributeMap([Mapped("header:content-language", "language", "string")])
_DOCUMENT: Final = Document(
    claim=Claim(url_id=1, url=URL, host_id=1, depth=0),
    base_url=URL,
    code=200,
    headers=(),
    body=b"",
    mimetype="text/html",
    fetched_at=_NOW,
)


@declare(
    *("1", "1.", ".", " ", ";", "url", "=", "x", "'", '"', "http://a.test/", ","),
    grown=[
        lambda n: "1" * n + "x",
        lambda n: "1." * n + "x",
        lambda n: "." * n + "x",
        lambda n: " " * n + "x",
        lambda n: "1;" + " " * n + "url" + " " * n + "x",
        lambda n: "1" * n + " " * n + "u",
    ],
)
def refresh(value: bytes) -> None:
    parse_refresh(value.decode("latin-1"))


@declare(
    *("a", " ", 'a="', "\\", "a = ", "nextnonce=", '"', ","),
    grown=[
        lambda n: "a" * n,
        lambda n: "a" * n + " " * n,
        lambda n: 'a="' * n,
        lambda n: 'a="' + "\\" * n,
        lambda n: "a = " * n,
        lambda n: "nextnonce" * n + '="',
        lambda n: "," * n,
    ],
)
def nonce(value: bytes) -> None:
    find_next_nonce(value.decode("latin-1"))


@declare(
    *(
        "Digest ",
        "Basic ",
        "realm=",
        "nonce=",
        "qop=",
        "auth",
        "auth-int",
        "algorithm=",
        "MD5",
        "SHA-256-sess",
        '"x"',
        "stale=true",
    ),
    *("userhash=true", "opaque=", 'Digest realm="a", nonce="b"', '"', ",", " ", "=", "\\", "a", "é"),
    grown=[
        lambda n: " " * n + '"',
        lambda n: "a" * n + '"',
        lambda n: " " * n + "," + " " * n + '"',
        lambda n: "a," * n,
        lambda n: "Digest " + "a" * n,
        lambda n: 'Digest a="' * n,
        lambda n: "a" * n + " " * n + "=",
        lambda n: "a " * n,
    ],
)
def challenge(value: bytes) -> None:
    text = value.decode("latin-1")
    found = find_challenge([text])
    list_schemes([text])
    if found is not None:
        build_digest_header(found, method="GET", target="/", user=("u", "p"), cnonce="c", count=1)


@declare(
    *("<x>;", "<", ">", ";", ",", " ", "rel=", "canonical", '"', "\\", "a=", "http://[", "http://a.test/"),
    grown=[lambda n: "<x>;" * n, lambda n: '<x>;a="' * n],
)
def canonical(value: bytes) -> None:
    read_canonical([value], base_url=URL, rewriting=Rewriting())


@declare(
    *("text/html", "a/b", ";", ",", "charset=", "utf-8", '"', "\\", " ", "=", "*/*", "é", "utf-16"),
    grown=[lambda n: 'a/b;c="' * n, lambda n: "a/b," * n, lambda n: "a/b;c=" + " " * n],
)
def content_type(value: bytes) -> None:
    headers = ((b"Content-Type", value),)
    parse_content_type(join_content_type(headers))
    is_binary(b"\x02" * 100, headers)


@declare(
    "utf-8",
    "utf8",
    "iso-8859-1",
    "gbk",
    "x-user-defined",
    "rot13",
    "idna",
    "hz-gb-2312",
    " ",
    "\t",
    "\0",
    "é",
    "a",
    "-",
)
def label(value: bytes) -> None:
    found = find_encoding(value.decode("latin-1"))
    if found is not None:
        value.decode(find_codec(found), "replace")


@declare(
    *(
        "attachment",
        ";",
        "=",
        " ",
        '"',
        "\\",
        "filename=",
        "filename*=",
        "utf-8''",
        "%41",
        "%",
        "filename*0=",
        "filename*{n}*=x;",
    ),
    *(
        "a",
        "/",
        "é",
        "''",
        "iso-8859-1'",
        b"\xff",
        "=?utf-8?B?",
        "=?gbk?q?",
        "?=",
        "5pel",
        "filename*0*=gbk''",
        "filename*{n}*=%e6;",
    ),
    grown=[
        lambda n: "a;filename=" + "=?" * n,
        lambda n: "a;filename=" + "?= " * n,
        lambda n: "a;filename==?b?" + "b?" * n,
        lambda n: "a;" * n + "=",
        lambda n: 'a; b="' + "\\" * n,
        lambda n: "a;b*=" + "%" * n,
    ],
)
def disposition(value: bytes) -> None:
    assert parse_disposition(value.decode("latin-1")).file_name != ""
    build_title(((b"Content-Disposition", value),), URL)


@declare(
    *(
        "a{n}=b",
        "__Host-a=b",
        "=",
        ";",
        " ",
        "Path=/",
        "Domain=",
        "a.test",
        ".test",
        "Max-Age=",
        "Expires=",
        "Secure",
        "HttpOnly",
    ),
    *("-", "é", "\0", *DATES),
)
def cookie(value: bytes) -> None:
    text = value.decode("latin-1")
    jar = CookieJar(["http://a.test", "https://a.test"])
    for url in (URL, "https://a.test/"):
        jar.store(url, [text, f"x=y; {text}", *text.split(",")[:300]])
        jar.header(url)
        jar.list_pairs(url, of_port=True)


@declare(
    "http://a.test/",
    "//",
    "/",
    "..",
    "?",
    "#",
    "%",
    "[",
    "]",
    ":",
    "@",
    " ",
    "\t",
    "é",
    b"\xff",
    "xn--",
    "http:",
    "\0",
    "1",
)
def location(value: bytes) -> None:
    for status in (302, 301):
        decide(status, [value], base_url=URL, boundary=_BOUNDARY)


@declare(*DATES)
def date(value: bytes) -> None:
    text = value.decode("latin-1")
    read_last_modified(text)
    parse_date_ms(text)
    parse_retry_after(value)


@declare(*("en", "-", "_", ",", " ", "é", "de-at", "x"))
def further_headers(value: bytes) -> None:
    headers = ((b"X-Robots-Tag", value), (b"Content-Language", value))
    list_robots_tags(headers)
    complete_page(Page(), replace(_DOCUMENT, headers=headers), _ATTRIBUTES)
    _ATTRIBUTES.join_headers(headers)


@declare(
    *("noindex", "nofollow", "none", ",", ":", " ", "searchcrawl:", "unavailable_after:", "25 Jun 2010 15:00:00 PST")
)
def robots_tags(value: bytes) -> None:
    text = value.decode("latin-1")
    read_robots_directives(metas=[("robots", text)], headers=[text], user_agent="searchcrawl", now=_NOW)


@declare(
    *("a", " ", "\t", "é", ";", "=", "\x1b[2J"),
    grown=[lambda n: "a" * n, lambda n: "a " * n, lambda n: "\t" * n, lambda n: "é" * n],
)
def shown_headers(value: bytes) -> None:
    describe_headers(Headers({b"X-Mine": value, b"Set-Cookie": value, value[:100] or b"X": [value] * 3}))


@declare(
    *(
        "GET ",
        "POST ",
        "CONNECT ",
        "http://a.test/",
        "/x",
        " HTTP/1.1",
        "\r\n",
        ":",
        "cookie",
        "a=b",
        ";",
        "upgrade",
        "host",
        "é",
    ),
    most=256 * 1024,
    raises=(BadRequest,),
    grown=[
        lambda n: "GET / HTTP/1.1" + "\r\na:b" * n,
        lambda n: "GET http://a.test/ HTTP/1.1\r\ncookie: " + "a=b;" * n,
    ],
)
def request_of_browser(value: bytes) -> None:
    for head in (value, b"GET /x HTTP/1.1\r\n" + value):
        method, url, headers = parse_head(head, "https://a.test")
        request = BrowserRequest(method, url, headers)
        assert request.kind or request.is_preflight or choose_headers(request)
        credentials = Credentials(["https://a.test"], lambda: CookieJar(["https://a.test"]))
        credentials.belong_to(request, URL, has_other_frames=False)
        credentials.choose_cookies(request)
        credentials.list_of_port(URL)


@declare(*("CONNECT ", "a.test", ":", "443", " HTTP/1.1", "[", "]", "::1", ".", "@", "/"), most=256 * 1024)
def tunnel_of_browser(value: bytes) -> None:
    find_tunnel(value)
    find_tunnel(b"CONNECT " + value)


@declare(*("max-age=", '"', "9", "no-store", "no-cache", ",", "=", " ", "accept", "origin", "*", "x", "s-maxage"))
def caching(value: bytes) -> None:
    text = value.decode("latin-1")
    for headers in ([("cache-control", text)], [("vary", text)]):
        key = build_key(URL, URL, (), has_credentials=False)
        ResourceCache().keep(key, "script", DecodedAnswer(URL, 200, headers, b""))
