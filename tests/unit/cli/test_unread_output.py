"""A list that nobody reads any more is not written to its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from searchcrawl.cli.output import print_objects, while_read
from searchcrawl.terminal import GuardedStream


@pytest.fixture
def unread() -> Iterator[GuardedStream]:
    """A stream whose reader has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1, encoding="utf-8") as inner:
        yield GuardedStream(inner)


def test_list_when_its_reader_has_ended_then_the_rest_is_not_asked_for(
    unread: GuardedStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", unread)
    rows = iter([{"number": number} for number in range(10)])

    print_objects(rows)

    assert not unread.is_read
    assert next(rows) == {"number": 1}


def test_list_when_it_is_read_then_all_of_it_comes() -> None:
    assert list(while_read(range(3))) == [0, 1, 2]


def test_stream_when_its_reader_has_ended_then_more_may_be_written_to_it(unread: GuardedStream) -> None:
    for _ in range(3):
        unread.write("line\n")
        unread.flush()

    assert not unread.is_read
