"""No character that XML, PostgreSQL or a terminal does not take leaves the parser (X-R12)."""

from __future__ import annotations

import random
import re
from typing import Final

import orjson
import pytest

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.page import parse_html, parse_page
from searchcrawl.html.page_text import BLOCK_MARK, collapse, collapse_lines, collapse_segments, remove_illegal
from searchcrawl.http.visit_end import join_lines
from searchcrawl.items import Page
from searchcrawl.terminal import to_one_line as escaped_line
from tests.conformance.corpus import cases

#: What XML 1.0 §2.2 forbids.
FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
#: Controls, surrogates, non-characters, marks of direction, blanks of all sorts; and a few that are plain.
ALPHABET: Final = (
    [chr(code) for code in (*range(0xA1), 0xAD, 0x61C, *range(0x2000, 0x2070), 0xFEFF, 0xFFF9, 0xFFFD, 0xFFFE, 0xFFFF)]
    + [chr(code) for code in (0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0x1F600, 0x1FFFE, 0xE0001, 0x10FFFF)]
    + list("aé蜘<>&\"'=/ ") * 6
)
#: Not printable for Python, and part of ordinary text: blanks, joiners, marks of direction, a hyphen at the end of lines.
HARMLESS: Final = re.compile("[\xa0\xad\u061c\u2000-\u200f\u202f\u205f]")


def random_texts(count: int) -> list[str]:
    chosen = random.Random(12)
    return ["".join(chosen.choices(ALPHABET, k=chosen.randrange(1, 60))) for _ in range(count)]


def assert_clean(page: Page) -> None:
    """Every text of a page can be written anywhere, and every URL is plain ASCII."""
    for text in (page.title, page.text, page.description, page.author, page.subject, page.language):
        assert FORBIDDEN.search(text) is None, repr(text)
        text.encode("utf-8")
        orjson.dumps(text)
    for url in [link.url for link in page.links] + [page.canonical or "", page.refresh or ""]:
        assert url.isascii(), repr(url)
        assert url.isprintable(), repr(url)
        assert " " not in url


def collapse_blocks(text: str) -> str:
    return collapse_segments(text.split(BLOCK_MARK))[0]


@pytest.mark.parametrize("clean", [collapse, collapse_blocks, collapse_lines])
def test_r12_text_when_of_any_characters_then_is_legal_with_single_blanks(clean: object) -> None:
    assert callable(clean)
    for text in random_texts(3_000):
        cleaned = clean(text)

        assert FORBIDDEN.search(cleaned) is None
        assert cleaned == "\n".join(" ".join(line.split()) for line in cleaned.split("\n"))


def test_r12_legal_when_text_is_mixed_then_only_what_is_forbidden_goes() -> None:
    for text in random_texts(3_000):
        assert remove_illegal(text) == FORBIDDEN.sub("", text)


@pytest.mark.parametrize("line", [join_lines, escaped_line])
def test_r12_line_when_of_any_characters_then_steers_no_terminal(line: object) -> None:
    assert callable(line)
    for text in random_texts(3_000):
        shown = line(text)

        assert HARMLESS.sub("", shown).isprintable()
        shown.encode("utf-8")


def page_with(text: str) -> str:
    return (
        f"<html lang='{text}'><head><title>{text}</title><meta name=description content='{text}'>"
        f'<meta name=author content="{text}"><link rel=canonical href="/{text}"><base href="/{text}">'
        f"<meta http-equiv=refresh content='5;url={text}'></head>"
        f"<body><p>{text}<a href='{text}'>x</a><a href=\"/x?{text}\">x</a><img alt='{text}'></body></html>"
    )


def test_r12_page_when_of_any_characters_then_all_it_says_is_clean() -> None:
    for text in random_texts(1_500):
        assert_clean(parse_page(page_with(text), ConversionContext(url="http://a.test/")))


def test_r12_page_when_of_any_bytes_then_all_it_says_is_clean() -> None:
    chosen = random.Random(13)
    for charset in ("utf-8", "utf-16", "windows-1252", "iso-2022-jp", "gb18030", "utf-7", "x-none", ""):
        for _ in range(150):
            body = page_with("\n").encode().replace(b"\n", chosen.randbytes(chosen.randrange(1, 60)))
            page = parse_html(
                body,
                ConversionContext(
                    url="http://a.test/",
                    headers=((b"Content-Type", f"text/html; charset={charset}".encode()),),
                    user_agent="searchcrawl",
                ),
            )

            assert_clean(page)


@pytest.mark.parametrize(
    "reference", [0xD800, 0xDFFF, 0, 1, 0x1B, 0x80, 0x9B, 0xFFFE, 0xFFFF, 0x1FFFE, 0x110000, 10**30]
)
def test_r12_character_reference_when_of_what_is_none_then_is_clean(reference: int) -> None:
    for written in (f"&#{reference};", f"&#x{reference:x};"):
        assert_clean(parse_page(page_with(written), ConversionContext(url="http://a.test/")))


def test_r12_strings_when_naughty_then_pages_and_urls_take_them() -> None:
    strings = [case["string"] for case in cases("naughty_strings.json")]
    for text in strings:
        assert_clean(parse_page(page_with(text), ConversionContext(url="http://a.test/")))
        try:
            url = urls.resolve(text, "http://a.test/")
        except InvalidUrl:
            continue

        assert url.isascii()
        assert url.isprintable()
    assert len(strings) > 500
