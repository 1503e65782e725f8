"""The name that a server gives a file (RFC 6266, RFC 8187)."""

from __future__ import annotations

import pytest

from searchcrawl.html.content_disposition import parse_disposition


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("attachment; filename=plans.pdf", "plans.pdf"),
        ('inline; FILENAME = "the \\"plans\\".pdf" ; x=y', 'the "plans".pdf'),
        ("attachment; filename=old.pdf; filename*=UTF-8''%E2%82%AC%20rates.pdf", "€ rates.pdf"),
        ("attachment; filename*=UTF-8''%E2%82%AC.pdf; filename=old.pdf", "€.pdf"),
        ("attachment; filename=good.pdf; filename*=UTF-8''%E4.pdf", "good.pdf"),
        ("attachment; filename=good.pdf; filename*=koi8-r''%C1.pdf", "good.pdf"),
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
