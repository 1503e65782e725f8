from __future__ import annotations

import pytest

from searchcrawl.codes import Code
from searchcrawl.convert.converter import Converter
from searchcrawl.convert.html_converter import HTML
from searchcrawl.convert.pdf_converter import PDF
from searchcrawl.convert.registry import choose_converter, find_mimetype, is_binary
from searchcrawl.convert.text_converter import TEXT
from searchcrawl.exceptions import DocumentError, NoConverter
from searchcrawl.items import Headers


def typed(content_type: str) -> Headers:
    return ((b"Content-Type", content_type.encode()),)


PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01"


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/html; charset=utf-8", HTML),
        ("Application/XHTML+XML", HTML),
        ("text/plain", TEXT),
        ("text/markdown", TEXT),
        ("text/csv;header=present", TEXT),
        ("application/pdf", PDF),
    ],
)
def test_converter_when_type_is_known_then_is_chosen(content_type: str, expected: Converter) -> None:
    mimetype = find_mimetype(b"text", typed(content_type))

    assert choose_converter(mimetype, b"text", typed(content_type)) is expected


@pytest.mark.parametrize("mimetype", ["image/png", "application/zip", "text/css", "application/json", "video/mp4"])
def test_converter_when_type_is_unknown_then_refuses_with_908(mimetype: str) -> None:
    with pytest.raises(NoConverter) as caught:
        choose_converter(mimetype, b"", ())

    assert caught.value.code == Code.NO_CONVERTER


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"%PDF-1.7\n", "", "application/pdf"),
        (b"\n%PDF-1.7\n", "application/octet-stream", "application/pdf"),
        (b"\xef\xbb\xbf \n<!DOCTYPE HTML><p>", "", "text/html"),
        (b"<!-- a --><html lang=en>", "application/octet-stream", "text/html"),
        (b"<?xml version='1.0'?><html>", "nonsense", "text/html"),
        (b"just words", "", "text/plain"),
        (b"just words", "application/octet-stream", "application/octet-stream"),
        (PNG, "", "application/octet-stream"),
        (b"%PDF-1.7\n", "text/plain", "text/plain"),
        (b"<htmlish>", "", "text/plain"),
        (b"", "", "text/plain"),
    ],
)
def test_mimetype_when_header_says_nothing_then_bytes_say_it(body: bytes, content_type: str, expected: str) -> None:
    assert find_mimetype(body, typed(content_type)) == expected


@pytest.mark.parametrize("content_type", ["text/html", "text/plain; charset=utf-8", "application/xhtml+xml"])
@pytest.mark.parametrize(
    "body", [PNG, b"%PDF-1.4 text", b"PK\x03\x04abc", bytes(range(256)) * 20, b"\x00\x01"], ids=range(5)
)
def test_converter_when_binary_is_sent_as_text_then_refuses_with_1009(body: bytes, content_type: str) -> None:
    with pytest.raises(DocumentError) as caught:
        choose_converter(find_mimetype(body, typed(content_type)), body, typed(content_type))

    assert caught.value.code == Code.BINARY_AS_TEXT


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<p>text".encode("utf-16"), "text/html"),
        ("<p>text".encode("utf-16-le"), "text/html; charset=utf-16"),
        (b"<p>" + b"words " * 20 + b"\x00", "text/html"),
        ("<p>日本語".encode("iso2022_jp"), "text/html"),
        ("日本語".encode("euc_jp"), "text/plain"),
        (b"\x1b[1mbold\x1b[0m", "text/plain"),
        (b"", "text/html"),
    ],
)
def test_looks_binary_when_it_is_text_then_says_no(body: bytes, content_type: str) -> None:
    assert not is_binary(body, typed(content_type))
