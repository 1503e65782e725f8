"""Which of several copies is indexed (F2, F3)."""

from __future__ import annotations

from itertools import permutations

import pytest

from searchcrawl.codes import Code
from searchcrawl.dedup.survivor import CopyChange, rank, resolve
from searchcrawl.store.document_table import Copy
from searchcrawl.store.states import DocumentState

A, BB, CCC = "http://a.test/a.html", "http://a.test/bb.html", "http://a.test/ccc.html"


def copy(
    url_id: int,
    url: str,
    state: DocumentState = DocumentState.CACHED,
    *,
    duplicate_of: int | None = None,
    body: bytes = b"1",
) -> Copy:
    return Copy(url_id=url_id, url=url, state=state, cached=True, duplicate_of=duplicate_of, body_digest=body)


def withheld(url_id: int, survivor: int) -> CopyChange:
    return CopyChange(url_id, DocumentState.WITHHELD, survivor, Code.DUPLICATE)


def sent(url_id: int) -> CopyChange:
    return CopyChange(url_id, DocumentState.CACHED, None, 200)


def test_rank_when_urls_differ_then_no_query_few_segments_short_and_first_by_alphabet() -> None:
    urls = [
        "http://a.test/x?id=1",
        "http://a.test/deep/a.html",
        "http://a.test/longer.html",
        "http://a.test/b.html",
        "http://a.test/a.html",
    ]

    assert sorted(urls, key=rank) == urls[::-1]


def test_resolve_when_a_body_is_there_once_then_nothing_changes() -> None:
    assert resolve([copy(1, A), copy(2, BB, body=b"2")]) == []


@pytest.mark.parametrize("order", list(permutations([0, 1, 2])))
def test_resolve_when_copies_are_new_then_the_same_one_survives_in_every_order(order: tuple[int, ...]) -> None:
    copies = [copy(1, A), copy(2, BB), copy(3, CCC)]

    changes = resolve([copies[number] for number in order])

    # The survivor is on its way already, with the list of its copies as it is when it is sent.
    assert set(changes) == {withheld(2, 1), withheld(3, 1)}


def test_resolve_when_a_copy_comes_to_one_that_is_indexed_then_that_is_sent_again_with_its_list() -> None:
    changes = resolve([copy(1, A, DocumentState.PRESENT), copy(2, BB)])

    assert set(changes) == {withheld(2, 1), sent(1)}


def test_resolve_when_a_better_copy_comes_then_the_old_survivor_steps_back() -> None:
    changes = resolve(
        [copy(2, BB, DocumentState.PRESENT), copy(1, A), copy(3, CCC, DocumentState.WITHHELD, duplicate_of=2)]
    )

    assert set(changes) == {withheld(2, 1), withheld(3, 1)}


def test_resolve_when_the_survivor_is_gone_then_the_next_takes_its_place() -> None:
    waiting = DocumentState.WITHHELD

    changes = resolve([copy(2, BB, waiting, duplicate_of=1), copy(3, CCC, waiting, duplicate_of=1)])

    assert set(changes) == {sent(2), withheld(3, 2)}


def test_resolve_when_the_last_copy_is_left_alone_then_it_is_sent() -> None:
    assert resolve([copy(3, CCC, DocumentState.WITHHELD, duplicate_of=1)]) == [sent(3)]


def test_resolve_when_all_is_as_it_should_be_then_nothing_changes() -> None:
    copies = [copy(1, A, DocumentState.PRESENT), copy(2, BB, DocumentState.WITHHELD, duplicate_of=1)]

    assert resolve(copies) == []
