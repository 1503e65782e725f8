"""Everything again from the cache to the index: a real store, cache and local index (E7)."""

from __future__ import annotations

import pytest

from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.operations import quarantine
from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.removal_table import Before
from searchcrawl.store.urls import url_queries
from tests.filled_store import SITE, CachedStore
from tests.redelivering import (
    NAMES,
    Refusing,
    Watched,
    away,
    empty_the_index,
    failing_after,
    flush,
    refuse,
    resend,
    sent,
    states,
    with_threshold,
)


def test_resend_when_the_index_was_emptied_then_the_same_documents_are_in_with_new_versions(
    cached: CachedStore,
) -> None:
    cached.fetch(*NAMES)
    version = cached.send()
    cached.end()
    empty_the_index(cached)
    before = cached.verify()

    done = resend(cached)

    assert len(before["missing"]) == 4
    assert done == sent(4)
    assert cached.verify()["ok"]
    assert {entry.crawl_version for entry in cached.index.scan(None)}.isdisjoint({version})
    assert cached.status()["counts"]["indexed"] == 0
    assert states(cached) == dict.fromkeys(NAMES, "indexed")


def test_resend_when_the_index_holds_more_then_what_the_table_does_not_know_stays(cached: CachedStore) -> None:
    cached.fetch("/a")
    cached.send()
    cached.put([cached.document(f"{SITE}/stale", checksum="00")], 1)
    cached.end()

    done = resend(cached)

    assert done == sent(1)
    assert [entry["url"].removeprefix(SITE) for entry in cached.verify()["extra"]] == ["/stale"]


def test_resend_when_deletions_wait_then_their_documents_go_in_and_still_wait(cached: CachedStore) -> None:
    cached.fetch(*NAMES)
    cached.send()
    cached.hold_back("/a", "/b")
    cached.database.write(document_table.mark_evidence, [cached.ids["/c"]], "404")
    cached.end(exit_code=9)
    empty_the_index(cached)

    done = resend(cached)

    assert done == sent(4)
    assert cached.indexed_urls() == list(NAMES)
    assert cached.verify()["ok"]
    assert [row["url"].removeprefix(SITE) for row in quarantine.list_waiting(cached.database, cached.source)] == [
        "/a",
        "/b",
    ]
    assert [
        row.url_id
        for row in cached.database.read(removal_table.find_candidates, cached.run.source_id, before=Before(0, 0))
    ] == [cached.ids["/c"]]


def test_resend_when_the_index_had_refused_a_document_then_it_is_tried_again(cached: CachedStore) -> None:
    cached.fetch("/a", "/b")
    refuse(cached, "/b")
    cached.end()

    assert cached.status()["warnings"][-1]["code"] == "refused"
    assert flush(cached) == sent(0)
    assert resend(cached) == sent(2)
    assert (cached.indexed_urls(), cached.status()["warnings"]) == (["/a", "/b"], [])


def test_resend_when_the_index_refuses_a_document_again_then_it_failed_and_is_not_sent_for_ever(
    cached: CachedStore, caplog: pytest.LogCaptureFixture
) -> None:
    cached.fetch("/a", "/b")
    cached.send()
    cached.end()
    receiver = Refusing(cached, "/b")

    done = resend(cached, receiver)

    assert done == sent(1, failed=1)
    assert [len(batch.documents) for batch in receiver.batches] == [2]
    assert f"the index refuses {SITE}/b: immense" in caplog.messages
    assert states(cached) == {"/a": "indexed", "/b": "failed"}
    assert cached.indexed_urls() == ["/a", "/b"]


def test_resend_when_the_cache_has_lost_records_then_these_are_counted(cached: CachedStore) -> None:
    cached.fetch(*NAMES)
    cached.send()
    cached.end()
    cached.database.write(batch_table.forget_segment, cached.run.source_id, 1)

    done = resend(cached)

    assert done == sent(0, to_fetch=4)
    assert resend(cached) == done
    assert states(cached) == dict.fromkeys(NAMES, "todo")


def test_resend_when_a_record_is_damaged_then_its_page_is_fetched_again(cached: CachedStore) -> None:
    cached.fetch(*NAMES)
    cached.send()
    cached.end()
    cached.damage("/b")

    done = resend(cached)

    assert done == sent(3, to_fetch=1)
    assert states(cached) == {"/a": "indexed", "/b": "todo", "/c": "indexed", "/d": "indexed"}
    assert cached.indexed_urls() == list(NAMES)


def test_resend_when_cut_off_then_a_flush_sends_the_rest_alone(cached: CachedStore) -> None:
    cached.fetch(*NAMES)
    cached.send()
    cached.end()
    empty_the_index(cached)
    with_threshold(cached, 0.00005)
    receiver = Watched(cached, failing_after(2))

    with pytest.raises(IndexUnavailable):
        resend(cached, receiver)
    warned = [warning["code"] for warning in cached.status()["warnings"]]
    rest = Watched(cached)
    done = flush(cached, rest)

    assert [len(batch.documents) for batch in receiver.batches] == [1, 1]
    assert warned == ["waiting", "resend"]
    assert done == sent(2)
    assert [document.fields["url"].removeprefix(SITE) for batch in rest.batches for document in batch.documents] == [
        "/c",
        "/d",
    ]
    assert cached.verify()["ok"]
    assert flush(cached, Watched(cached, away)) == sent(0)


def test_resend_when_the_cache_preserves_nothing_then_nothing_is_given_up_before_its_end(cached: CachedStore) -> None:
    cached.fetch(*NAMES)
    cached.send()
    cached.end()
    with_threshold(cached, 0.00005)
    cache = cached.project.cache.model_copy(update={"preserve": False})
    cached.project = cached.project.model_copy(update={"cache": cache})

    done = resend(cached)

    assert done == sent(4)
    assert list(cached.cache.list_segments()) == []
    assert cached.database.read(url_queries.count_indexed_without_record, cached.run.source_id) == 4
