from __future__ import annotations

import pytest

from searchcrawl.convert.file_name import file_name_of, name_of
from searchcrawl.convert.plain_text import convert_text
from searchcrawl.items import Page


def page_of(body: bytes, *, content_type: str = "text/plain", robots_headers: tuple[str, ...] = ()) -> Page:
    return convert_text(
        body,
        url="http://example.com/files/read%20me.txt",
        content_type=content_type,
        default_charset="windows-1252",
        robots_headers=robots_headers,
        user_agent="searchcrawl",
    )


def test_text_when_converted_then_keeps_lines_and_takes_name_as_title() -> None:
    page = page_of("Grüße,\r\n\r\n  <b>Welt</b>\x00\t!\n".encode())

    assert page == Page(title="read me.txt", text="Grüße,\n<b>Welt</b> !", charset="utf-8")


def test_text_when_empty_then_has_no_title() -> None:
    assert page_of(b" \n ") == Page(charset="windows-1252")


def test_text_when_charset_is_declared_then_is_read_so() -> None:
    assert page_of("日本".encode("euc_jp"), content_type="text/plain; charset=euc-jp").text == "日本"


def test_text_when_header_forbids_indexing_then_page_says_so() -> None:
    assert page_of(b"x", robots_headers=("noindex",)).noindex


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.com/a/b.pdf?x=1", "b.pdf"),
        ("http://example.com/%E6%97%A5%E6%9C%AC.pdf", "日本.pdf"),
        ("http://example.com/%FF%00.pdf", "\ufffd.pdf"),
        ("http://example.com/a/", "example.com"),
    ],
)
def test_file_name_when_taken_from_url_then_is_readable(url: str, expected: str) -> None:
    assert file_name_of(url) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b'attachment; filename="../etc/plans \xc2\xa7.pdf"', "plans §.pdf"),
        (b"attachment; filename=caf\xe9.pdf", "café.pdf"),
        (rb'attachment; filename="C:\\temp\\x.pdf"', "x.pdf"),
        (b"attachment; filename*=UTF-8''a%00%0Ab.pdf", "a b.pdf"),
        (b"attachment; filename=", "download"),
        (b"inline", "download"),
    ],
)
def test_name_of_when_the_server_sends_one_then_it_wins(header: bytes, expected: str) -> None:
    headers = ((b"Content-Type", b"text/plain"), (b"content-disposition", header))

    assert name_of(headers, "http://a.test/download?id=5") == expected


@pytest.mark.parametrize(("url", "expected"), [("http://a.test/x/", ""), ("http://a.test/x/a%20b.txt", "a b.txt")])
def test_name_of_when_the_server_sends_none_then_it_is_that_of_the_url(url: str, expected: str) -> None:
    assert name_of((), url) == expected


def test_title_when_the_server_names_the_file_then_is_that_name() -> None:
    page = convert_text(
        b"words",
        url="http://a.test/download",
        content_type="text/plain",
        default_charset="windows-1252",
        robots_headers=(),
        user_agent="x",
        name="plans.txt",
    )

    assert page.title == "plans.txt"
