from __future__ import annotations

from searchcrawl.convert.converter import ConversionContext
from searchcrawl.convert.text_converter import convert_text
from searchcrawl.items import Page


def page_of(body: bytes, *, content_type: str = "text/plain", robots_headers: tuple[str, ...] = ()) -> Page:
    tags = tuple((b"X-Robots-Tag", value.encode()) for value in robots_headers)
    headers = ((b"Content-Type", content_type.encode()), *tags)
    url = "http://example.com/files/read%20me.txt"
    return convert_text(body, ConversionContext(url=url, headers=headers, user_agent="searchcrawl"))


def test_text_when_converted_then_keeps_lines_and_takes_name_as_title() -> None:
    page = page_of("Grüße,\r\n\r\n  <b>Welt</b>\x00\t!\n".encode())

    assert page == Page(title="read me.txt", name_title="read me.txt", text="Grüße,\n<b>Welt</b> !", charset="utf-8")


def test_text_when_empty_then_has_no_title() -> None:
    assert page_of(b" \n ") == Page(charset="windows-1252")


def test_text_when_charset_is_declared_then_is_read_so() -> None:
    assert page_of("日本".encode("euc_jp"), content_type="text/plain; charset=euc-jp").text == "日本"


def test_text_when_header_forbids_indexing_then_page_says_so() -> None:
    assert page_of(b"x", robots_headers=("noindex",)).noindex


def test_title_when_the_server_names_the_file_then_is_that_name() -> None:
    headers = ((b"Content-Disposition", b"attachment; filename=plans.txt"),)

    page = convert_text(b"words", ConversionContext(url="http://a.test/download", headers=headers))

    assert page.title == "plans.txt"
