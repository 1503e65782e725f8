from __future__ import annotations

from dataclasses import replace

import pytest

from searchcrawl.clock import DAY_MS
from searchcrawl.items import Unread
from searchcrawl.rules.unread import compute_digest, dump, find_gap_ms, follow, parse

BODY = Unread(mimetype="image/png", digest=compute_digest(b"picture"), etag='"1"')


def test_gap_when_a_body_is_found_again_and_again_then_it_doubles_up_to_a_week() -> None:
    gaps = [find_gap_ms(replace(BODY, times=times)) for times in (1, 2, 3, 4, 5, 6, 10_000)]

    assert gaps == [days * DAY_MS for days in (0, 1, 2, 4, 7, 7, 7)]


def test_body_when_found_again_then_is_counted() -> None:
    assert follow(None, BODY) == BODY
    assert follow(replace(BODY, times=3), BODY).times == 4


@pytest.mark.parametrize(
    "other",
    [
        replace(BODY, etag='"2"'),
        replace(BODY, last_modified="Mon, 01 Jan 2024 00:00:00 GMT"),
        replace(BODY, digest=compute_digest(b"another")),
        replace(BODY, mimetype="image/gif"),
    ],
)
def test_body_when_it_is_another_one_then_counting_begins_anew(other: Unread) -> None:
    assert follow(replace(BODY, times=5), other) == other


def test_body_when_a_row_keeps_it_then_is_the_same() -> None:
    assert parse(dump(BODY)) == BODY
    assert parse(dump(None)) is None
