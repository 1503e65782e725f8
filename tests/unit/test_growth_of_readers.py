"""What reads bytes of strangers takes linear time, whatever they are made of (X-R13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from searchcrawl.convert.html_converter import HTML
from searchcrawl.html.content_type import parse_content_type
from searchcrawl.html.encoding import decode
from searchcrawl.html.file_name import parse_disposition
from searchcrawl.html.links import Resolver, find_header_canonical
from searchcrawl.html.metas import parse_refresh
from searchcrawl.html.page import has_password_field
from searchcrawl.login.http_auth import find_challenge, find_next_nonce, list_schemes
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.rules.identity import Identity
from searchcrawl.rules.page_words import split_words
from searchcrawl.rules.traps import find_patterns
from searchcrawl.sitemaps.formats import NotASitemap, SitemapParser
from tests.growth import assert_linear

Build = Callable[[int], str]
URL: Final = "http://a.test/folder/page"
MANY_STARS: Final = Identity(["*a*a*a*a*b", "utm_*"])


def challenge(text: str) -> None:
    find_challenge([text])
    list_schemes([text])


def sitemap(text: str) -> None:
    try:
        for _ in SitemapParser(text.encode()).batches():
            pass
    except NotASitemap:
        pass


def robots(text: str) -> None:
    RobotsFile.parse(text.encode(), "searchcrawl", url="http://a.test/robots.txt").decide(
        "http://a.test/" + "a" * 2_000
    )


def recognise(text: str) -> None:
    assert HTML.recognise is not None
    HTML.recognise(text.encode())


def read_encoding(text: str) -> None:
    decode(text.encode("latin-1"), content_type="", default_charset="windows-1252")


#: A reader, and inputs for it from its own grammar; those with a limit on what they read get as much as they read.
READERS: Final[list[tuple[str, Callable[[str], object], list[Build]]]] = [
    (
        "beginning",
        recognise,
        [
            lambda n: "<!---->" * n + "x",
            lambda n: "<!-- -->\n" * n + "<p>",
            lambda n: "<!--" * n,
            lambda n: "<?xml >" * n + "x",
            lambda n: "<?xml " * n,
            lambda n: " " * n + "x",
            lambda n: "<!doctype " + " " * n,
            lambda n: ("<!---->" + "<?xml>") * n + "x",
        ],
    ),
    (
        "refresh",
        parse_refresh,
        [
            lambda n: "1" * n + "x",
            lambda n: "1." * n + "x",
            lambda n: "." * n + "x",
            lambda n: " " * n + "x",
            lambda n: "1;" + " " * n + "url" + " " * n + "x",
            lambda n: "1" * n + " " * n + "u",
        ],
    ),
    (
        "nonce",
        find_next_nonce,
        [
            lambda n: "a" * n,
            lambda n: "a" * n + " " * n,
            lambda n: 'a="' * n,
            lambda n: 'a="' + "\\" * n,
            lambda n: "a = " * n,
            lambda n: "nextnonce" * n + '="',
            lambda n: "," * n,
        ],
    ),
    (
        "challenge",
        challenge,
        [
            lambda n: " " * n + '"',
            lambda n: "a" * n + '"',
            lambda n: " " * n + "," + " " * n + '"',
            lambda n: "a," * n,
            lambda n: "Digest " + "a" * n,
            lambda n: 'Digest a="' * n,
            lambda n: "a" * n + " " * n + "=",
            lambda n: "a " * n,
        ],
    ),
    ("canonical", lambda text: find_header_canonical([text], base_url=URL), [lambda n: "<x>;" * n, lambda n: '<x>;a="' * n]),
    ("type", parse_content_type, [lambda n: 'a/b;c="' * n, lambda n: "a/b," * n, lambda n: "a/b;c=" + " " * n]),
    ("name", parse_disposition, [lambda n: "a;" * n + "=", lambda n: 'a; b="' + "\\" * n, lambda n: "a;b*=" + "%" * n]),
    (
        "encoding",
        read_encoding,
        [
            lambda n: "<meta " * n + "charset",
            lambda n: "<meta charset=" + " " * n,
            lambda n: "<!--" * n + "charset",
            lambda n: "charset" + "<\xe9" * n,
            lambda n: "\xe9" + "<a" * n,
            lambda n: "<?xml " + "encoding " * n,
            lambda n: "<meta http-equiv=content-type content='" + "charset" * n + "'>",
        ],
    ),
    ("password", lambda text: has_password_field(text.encode()), [lambda n: "<input " * n, lambda n: "<input type" + " " * n]),
    ("link", Resolver(URL).resolve, [lambda n: "../" * n, lambda n: "a/../" * n, lambda n: "%" * n, lambda n: "//" + "a." * n]),
    (
        "pattern",
        lambda text: find_patterns(f"http://a.test/{text}"),
        [lambda n: "1" * n, lambda n: "a1" * n, lambda n: "/1-" * n, lambda n: "f" * n, lambda n: "?" + "a&" * n],
    ),
    (
        "parameters",
        lambda text: MANY_STARS.strip(f"http://a.test/?{text}"),
        [lambda n: "a" * n, lambda n: "a&" * n, lambda n: "utm_" * n, lambda n: ";" * n, lambda n: "%" * n],
    ),
    ("words", split_words, [lambda n: "a" * n, lambda n: "a_" * n, lambda n: "\u3042" * n]),
    (
        "robots",
        robots,
        [
            lambda n: "user-agent: *\ndisallow: /" + "*a" * n + "b",
            lambda n: "user-agent: *\n" * n,
            lambda n: "user-agent: *\n" + "disallow: /*a$\n" * n,
            lambda n: "user-agent" + " " * n,
        ],
    ),
    (
        "sitemap",
        sitemap,
        [
            lambda n: "<urlset>" + "<loc>" * n,
            lambda n: "<urlset>" + "<loc><!--" * n,
            lambda n: "<urlset>" + "<loc><![CDATA[" * n,
            lambda n: "<urlset>" + "<loc><!x" * n,
            lambda n: "<urlset>" + "<loc " * n,
            lambda n: "<urlset>" + "</a" * n,
            lambda n: "<urlset>" + "<a:" * n,
            lambda n: "<!DOCTYPE x [" + "] " * n,
            lambda n: "<?xml " + "encoding" * n,
            lambda n: "<!---->" * n,
            lambda n: "<feed>" + "<entry><link href='x" * n,
            lambda n: "http://a.test/ " * n,
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("read", "build"),
    [
        # The first of each reader says most; the soak tries the others.
        pytest.param(read, build, id=f"{name}-{number}", marks=[pytest.mark.soak] if number else [])
        for name, read, builds in READERS
        for number, build in enumerate(builds)
    ],
)
def test_r13_reader_when_its_input_grows_then_its_cost_does_not_grow_faster(
    read: Callable[[str], object], build: Build
) -> None:
    assert_linear(read, build, smallest=250, largest=16_000)
