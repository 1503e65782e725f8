"""Links are counted by document, whatever their order, and however few fit into memory."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from searchcrawl.delivery.anchors import LinkCounts, LinkedDocument
from searchcrawl.rules.host_texts import Linked


def count(calls: Sequence[tuple[int, str, int | None]], in_memory: int) -> list[LinkedDocument]:
    with LinkCounts(in_memory=in_memory) as counts:
        for url_id, text, host in calls:
            if host is None:
                counts.add_document(url_id, text)
            else:
                counts.add_link(url_id, text, host)
        first = list(counts.by_document())
        assert list(counts.by_document()) == first
        return first


@pytest.mark.parametrize("in_memory", [1, 3, 1_000])
def test_links_when_they_are_counted_then_each_document_has_its_own(in_memory: int) -> None:
    calls = [(1 << 40, "Title", None), (1 << 40, "Text", 7), (2, "", None), (2, "Ä", 7), (2, "ä", 7), (2, "ä", 8)]
    # No document has this row; this one has no links.
    calls += [(3, "text", 7), (4, "Alone", None)]

    for seed in range(10):
        repeated = random.Random(seed).sample(calls * 3, len(calls) * 3)
        assert count(repeated, in_memory) == [
            LinkedDocument(2, "", [Linked("ä", "Ä", 7, 3), Linked("ä", "ä", 7, 3), Linked("ä", "ä", 8, 3)]),
            LinkedDocument(1 << 40, "Title", [Linked("text", "Text", 7, 3)]),
        ]


def test_links_when_there_are_none_then_there_is_no_document() -> None:
    assert count([], 1) == count([(1, "Title", None)], 1) == []
