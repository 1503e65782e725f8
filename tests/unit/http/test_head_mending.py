"""Heads that browsers read and strict parsers refuse (X-R7)."""

from __future__ import annotations

import pytest

from searchcrawl.http.head_mending import Unmendable, mend_head

LINE = b"HTTP/1.1 200 OK\r\n"


def mended(received: bytes) -> bytes:
    found = mend_head(received)
    assert found is not None
    return found.head


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"http/1.1 200 OK", b"HTTP/1.1 200 OK"),
        (b"Http/1.0 404", b"HTTP/1.0 404 "),
        (b"HTTP/1.1  200\tOK", b"HTTP/1.1 200 OK"),
        (b"HTTP/1.1 200OK", b"HTTP/1.1 200 OK"),
        (b"HTTP/2 200", b"HTTP/1.1 200 "),
        (b"HTTP/1.2 200 OK", b"HTTP/1.1 200 OK"),
        (b"HTTP/0.9 200 OK", b"HTTP/1.0 200 OK"),
        (b"\xef\xbb\xbfHTTP/1.1 200 OK", b"HTTP/1.1 200 OK"),
        (b"\r\n\r\nHTTP/1.1 200 OK", b"HTTP/1.1 200 OK"),
    ],
)
def test_status_line_when_a_browser_reads_it_then_is_mended(line: bytes, expected: bytes) -> None:
    assert mended(line + b"\r\n\r\n") == expected + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([b"A: b", b"C : d", b"\tfolded"], [b"A: b", b"C: d", b"\tfolded"]),
        ([b"A \t: b"], [b"A: b"]),
        ([b"Content-Length: 5", b"A: b", b"content-length : 05,5"], [b"A: b", b"Content-Length: 5"]),
        ([b"Transfer-Encoding: identity, Identity", b"Transfer-Encoding:", b"A: b"], [b"A: b"]),
        ([b"Transfer-Encoding: identity, chunked"], [b"Transfer-Encoding: identity, chunked"]),
        ([b"Content-Length:"], [b"Content-Length: "]),
        ([b"Content-Length: +5"], [b"Content-Length: +5"]),
        ([], []),
        *(
            ([line, b" folded", b"A: b"], [b"A: b"])
            for line in (b"no colon", b": b", b"X A: b", b"X\x01: b", b"\xfc: b")
        ),
        ([b"Transfer-Encoding: Chunked", b"Content-Length: 5"], [b"Transfer-Encoding: Chunked"]),
        ([b"Content-Length: 5", b"Content-Length: 6", b"Transfer-Encoding: chunked"], [b"Transfer-Encoding: chunked"]),
    ],
)
@pytest.mark.parametrize("ending", [b"\r\n", b"\n"])
def test_lines_when_a_browser_reads_them_then_are_mended(
    lines: list[bytes], expected: list[bytes], ending: bytes
) -> None:
    received = ending.join([b"HTTP/1.1 200 OK", *lines, b"", b"body"])

    assert mend_head(received) == (b"\r\n".join([b"HTTP/1.1 200 OK", *expected, b"", b""]), b"body")


@pytest.mark.parametrize(
    "received",
    [
        b"<html>a page without a head, as servers sent it before HTTP/1.0</html>",
        b"ICY 200 OK\r\n\r\n" + b"x" * 40,
        b"HTTP/1.1\r\n\r\n" + b"x" * 40,
        b"HTTP/1.1 2000 OK\r\n\r\n" + b"x" * 40,
        b"HTTP/1.1 99 OK\r\n\r\n" + b"x" * 40,
        LINE + b"A: b\rc\r\n\r\n",
        LINE + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        LINE + b"Content-Length: 5,\r\n\r\n",
        *(LINE + line + b"\r\n\r\n" for line in (b"no\0colon", b"Content-Length 5", b"My Transfer-Encoding: chunked")),
        LINE + b"Transfer-Encoding\x0b: chunked\r\n\r\n",
        LINE + b"no colon\r\n Content-Length: 5\r\n\r\n",
        LINE + b"Transfer-Encoding: gzip\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    ],
)
def test_r7_answer_when_it_is_no_http_or_its_end_in_doubt_then_stays_broken(received: bytes) -> None:
    with pytest.raises(Unmendable):
        mend_head(received)


@pytest.mark.parametrize("received", [b"", b"http", LINE, LINE + b"A: b\r\n\r", b"HTTP/1.1 100 Go\r\n\r\nHTTP"])
def test_head_when_its_end_has_not_come_then_is_waited_for(received: bytes) -> None:
    assert mend_head(received) is None


def test_head_when_others_come_before_the_final_one_then_are_dropped() -> None:
    early = b"HTTP/1.0 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

    assert mended(early * 20 + LINE + b"\r\n") == LINE + b"\r\n"
    assert mended(b"HTTP/1.1 101 Switching\r\n\r\n").startswith(b"HTTP/1.1 101")
