from __future__ import annotations

from benchmarks.comparing import compare, compare_plain

Document = dict[str, str | list[str]]
A, B, C = (f"http://127.0.0.1/{name}.html" for name in "abc")


def test_compare_when_each_page_is_accounted_for_once_then_is_equal() -> None:
    documents = [{"access_url": A, "duplicates": [B], "mimetype": "text/html"}]
    rows = [{"access_url": C, "code": 952}]

    comparison = compare({A, B, C}, documents, rows)

    assert comparison.equal
    assert comparison.explained == {952: 1}


def test_compare_when_a_page_is_nowhere_then_it_is_missing() -> None:
    documents = [{"access_url": A, "mimetype": "text/html"}]
    rows = [{"access_url": B, "code": 902}]

    comparison = compare({A, B}, documents, rows)

    assert not comparison.equal
    assert comparison.missing == [B]


def test_compare_when_a_page_is_indexed_and_a_duplicate_then_it_is_doubled() -> None:
    documents: list[Document] = [
        {"access_url": A, "duplicates": [B], "mimetype": "text/html"},
        {"access_url": B, "mimetype": "text/html"},
    ]

    comparison = compare({A, B}, documents, [])

    assert not comparison.equal
    assert comparison.doubled == [B]


def test_compare_when_the_index_has_a_page_that_wget_did_not_reach_then_it_is_extra() -> None:
    documents: list[Document] = [
        {"access_url": A, "mimetype": "text/html"},
        {"access_url": B, "mimetype": "text/html"},
        {"access_url": C, "mimetype": "application/pdf"},
    ]

    comparison = compare({A}, documents, [])

    assert not comparison.equal
    assert comparison.extra == [B]


def test_compare_plain_when_a_peer_spells_urls_in_its_own_way_then_pages_are_told_by_identity() -> None:
    documents = [{"url": A + "#top"}, {"url": "http://127.0.0.1:80/b.html"}, {"url": B}]

    comparison = compare_plain({A, B, C}, documents)

    assert (comparison.missing, comparison.doubled, comparison.extra) == ([C], [B], [])
