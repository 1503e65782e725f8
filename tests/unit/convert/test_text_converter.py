from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from searchcrawl.bodies import LargeBody, put_down
from searchcrawl.codes import Code
from searchcrawl.convert.converter import RunsIn
from searchcrawl.convert.text_converter import JSON, convert_csv, convert_json, convert_large_csv, convert_text
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.context import ConversionContext
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


CONTEXT = ConversionContext(url="http://a.test/files/data.json")


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        ('{"title": "Air", "items": [{"a": "x"}, "y", 2.5, null, true]}', "Air", "title Air\na x\nitems y\nitems 2.5"),
        ('{"name": {"de": "Luft"}}', "data.json", "de Luft"),
        ('{"a": 1}\n{"a": "zwei"}\n', "data.json", "a 1\na zwei"),
        ('"words"', "data.json", "words"),
        ("[]", "", ""),
        (" \n", "", ""),
    ],
)
def test_json_when_converted_then_its_values_are_lines(text: str, title: str, expected: str) -> None:
    page = convert_json(text.encode(), CONTEXT)

    assert (page.title, page.text) == (title, expected)


def test_r15_json_when_a_long_name_has_many_values_then_fails_with_904_before_they_are_written() -> None:
    body = b'{"%b": [%b1]}' % (b"n" * 3_000, b"1," * 400_000)

    tracemalloc.start()
    with pytest.raises(ConversionFailed) as caught:
        convert_json(body, CONTEXT)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert caught.value.code == Code.CONVERSION_LIMIT
    assert most < 200 << 20
    assert JSON.choose_place(body) is RunsIn.PROCESS


@pytest.mark.parametrize("text", ["{", "words", "{}\nwords", "[" * 100_000])
def test_json_when_it_is_none_then_fails_with_903(text: str) -> None:
    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_FAILED):
        convert_json(text.encode(), CONTEXT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a,b\n"c ""d"", e",f\n', 'a b\nc "d", e f'),
        ("a;b\nc;d", "a b\nc d"),
        ("a\tb\r\nc\td", "a b\nc d"),
        ('a,"b\nc,d\n', "a b c,d"),
        ('a,"' + "words " * 30_000, 'a,"' + " ".join(["words"] * 30_000)),
        ("", ""),
    ],
)
def test_csv_when_converted_then_its_rows_are_lines(text: str, expected: str) -> None:
    assert convert_csv(text.encode(), CONTEXT).text == expected


@pytest.mark.parametrize(
    "body",
    [
        "a;b\n1;größe\n".encode(),
        b'\xef\xbb\xbfa,b\r\n"c\r\nd","e""f"\r',
        b"plain,letters\n  ,\n",
        "Größe;Maß\n".encode("latin-1"),
        "Größe\tMaß\n".encode("utf-16"),
        b"a,\x1b$B,b\n",
        b'a,b\n"' + b"x" * 200_000,
        b"",
    ],
    ids=["utf-8", "mark", "ascii", "latin-1", "utf-16", "escape", "no end", "empty"],
)
@pytest.mark.parametrize("content_type", ["text/csv", "text/csv; charset=utf-8", "text/csv; charset=iso-8859-1"])
def test_csv_when_it_is_a_file_then_its_page_is_that_of_the_same_bytes_in_memory(
    tmp_path: Path, body: bytes, content_type: str
) -> None:
    context = ConversionContext(url="http://a.test/a.csv", headers=((b"Content-Type", content_type.encode()),))
    large = put_down(body + b"\n", tmp_path, 0)
    assert isinstance(large, LargeBody)

    assert convert_large_csv(large, context) == convert_csv(body + b"\n", context)


def test_csv_when_it_is_in_another_charset_then_is_read() -> None:
    assert convert_csv("Größe;Maß\nzwölf;über".encode("latin-1"), CONTEXT).text == "Größe Maß\nzwölf über"
