"""The name that a server gives a file (RFC 6266, RFC 8187)."""

from __future__ import annotations

import pytest

from searchcrawl.html.file_name import build_title, find_file_name, parse_disposition


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("attachment; filename=plans.pdf", "plans.pdf"),
        ('inline; FILENAME = "the \\"plans\\".pdf" ; x=y', 'the "plans".pdf'),
        ("attachment; filename=old.pdf; filename*=UTF-8''%E2%82%AC%20rates.pdf", "€ rates.pdf"),
        ("attachment; filename*=UTF-8''%E2%82%AC.pdf; filename=old.pdf", "€.pdf"),
        ("attachment; filename=good.pdf; filename*=UTF-8''%E4.pdf", "good.pdf"),
        ("attachment; filename=good.pdf; filename*=x-none''%C1.pdf", "good.pdf"),
        ("attachment; filename=bad.pdf; filename*=koi8-r''%C1.pdf", "а.pdf"),
        ("attachment; filename*=Shift_JIS'ja'%93%FA%96%7B.pdf", "日本.pdf"),
        ("attachment; filename*=\"UTF-8''%E2%82%AC.pdf\"", "€.pdf"),
        ("attachment; filename*=UTF-8''100%2525.pdf", "100%25.pdf"),
        ('attachment; filename="=?UTF-8?B?5pel5pys?= =?utf-8?q?=E8=AA=9E_1?=.pdf"', "日本語 1.pdf"),
        ("attachment; filename==?iso-2022-jp?B?GyRCRnxLXBsoQg==?=.pdf", "日本.pdf"),
        ('attachment; filename="=?x-none?B?5pel?= =?utf-8?B?!?=.pdf"', "=?x-none?B?5pel?==?utf-8?B?!?=.pdf"),
        ("attachment; filename=%E6%97%A5%E6%9C%AC.pdf", "日本.pdf"),
        ('attachment; filename="100% of %E4.pdf"', "100% of %E4.pdf"),
        ("attachment; filename*0*=UTF-8''%e6%97; filename*1*=%a5%e6%9c%ac; filename*2=%41.pdf", "日本%41.pdf"),
        ('attachment; filename*1="html"; filename*0="foo."; filename*3="not"', "foo.html"),
        ("attachment; filename*0*=UTF-8''foo-%c3%a4; filename*1=.html", "foo-ä.html"),
        ('attachment; filename="unterminated', None),
        ('attachment; filename=""', None),
        ("attachment", None),
        ("", None),
        ("; ;=; filename", None),
        ('attachment; x="a;filename=no"; filename=yes', "yes"),
    ],
)
def test_name_when_sent_in_any_way_then_is_read(value: str, name: str | None) -> None:
    assert parse_disposition(value).file_name == name


def test_disposition_when_endless_then_is_read_as_far_as_anybody_means_it() -> None:
    long = "attachment; " + "filename*=UTF-8''" + "%41" * 1_000_000

    assert parse_disposition(long).type == "attachment"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.com/a/b.pdf?x=1", "b.pdf"),
        ("http://example.com/%E6%97%A5%E6%9C%AC.pdf", "日本.pdf"),
        ("http://example.com/%FF%00.pdf", "\ufffd.pdf"),
        ("http://example.com/a/", "example.com"),
    ],
)
def test_title_when_taken_from_url_then_is_readable(url: str, expected: str) -> None:
    assert build_title((), url) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b'attachment; filename="../etc/plans \xc2\xa7.pdf"', "plans §.pdf"),
        (b"attachment; filename=caf\xe9.pdf", "café.pdf"),
        (b"attachment; filename=\x80\x96rates.pdf", "€–rates.pdf"),
        (b"attachment; filename=\xc3\x81\x81\xe9.pdf", "Ã\x81\x81é.pdf"),
        (b"attachment; filename=..%2F..%2Fetc%5Cpasswd", "passwd"),
        (rb'attachment; filename="C:\\temp\\x.pdf"', "x.pdf"),
        (b"attachment; filename*=UTF-8''a%00%0Ab.pdf", "a b.pdf"),
        (b"attachment; filename=", "download"),
        (b"inline", "download"),
    ],
)
def test_file_name_when_the_server_sends_one_then_it_wins(header: bytes, expected: str) -> None:
    headers = ((b"Content-Type", b"text/plain"), (b"content-disposition", header))

    assert find_file_name(headers, "http://a.test/download?id=5") == expected


@pytest.mark.parametrize(("url", "expected"), [("http://a.test/x/", ""), ("http://a.test/x/a%20b.txt", "a b.txt")])
def test_file_name_when_the_server_sends_none_then_it_is_that_of_the_url(url: str, expected: str) -> None:
    assert find_file_name((), url) == expected
