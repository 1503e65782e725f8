"""Everything again from the cache to the index: a real store, cache and local index (E7)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.operations import quarantine
from searchcrawl.store.batches import batch_table, removal_table
from searchcrawl.store.batches.removal_table import Before
from searchcrawl.store.documents import document_table
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
    status,
    verified,
    with_threshold,
)


@pytest.fixture
def filled(tmp_path: Path, store_url: str) -> Iterator[CachedStore]:
    store = CachedStore(tmp_path, store_url)
    yield store
    store.close()


def test_resend_when_the_index_was_emptied_then_the_same_documents_are_in_with_new_versions(
    filled: CachedStore,
) -> None:
    filled.fetch(*NAMES)
    version = filled.send()
    filled.end()
    empty_the_index(filled)
    before = verified(filled)

    done = resend(filled)

    assert len(before["missing"]) == 4
    assert done == sent(4)
    assert verified(filled)["ok"]
    assert {entry.crawl_version for entry in filled.index.scan(None)}.isdisjoint({version})
    assert status(filled)["counts"]["indexed"] == 0
    assert states(filled) == dict.fromkeys(NAMES, "indexed")


def test_resend_when_the_index_holds_more_then_what_the_table_does_not_know_stays(filled: CachedStore) -> None:
    filled.fetch("/a")
    filled.send()
    filled.put([filled.document(f"{SITE}/stale", checksum="00")], 1)
    filled.end()

    done = resend(filled)

    assert done == sent(1)
    assert [entry["url"].removeprefix(SITE) for entry in verified(filled)["extra"]] == ["/stale"]


def test_resend_when_deletions_wait_then_their_documents_go_in_and_still_wait(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.hold_back("/a", "/b")
    with filled.database.write_once() as transaction:
        document_table.mark_evidence(transaction, [filled.ids["/c"]], "404")
    filled.end(exit_code=9)
    empty_the_index(filled)

    done = resend(filled)

    assert done == sent(4)
    assert filled.indexed_urls() == list(NAMES)
    assert verified(filled)["ok"]
    assert [row["url"].removeprefix(SITE) for row in quarantine.list_waiting(filled.database, filled.source)] == [
        "/a",
        "/b",
    ]
    with filled.database.read_once() as transaction:
        assert [
            row.url_id for row in removal_table.find_candidates(transaction, filled.run.source_id, before=Before(0, 0))
        ] == [filled.ids["/c"]]


def test_resend_when_the_index_had_refused_a_document_then_it_is_tried_again(filled: CachedStore) -> None:
    filled.fetch("/a", "/b")
    refuse(filled, "/b")
    filled.end()

    assert status(filled)["warnings"][-1]["code"] == "refused"
    assert flush(filled) == sent(0)
    assert resend(filled) == sent(2)
    assert (filled.indexed_urls(), status(filled)["warnings"]) == (["/a", "/b"], [])


def test_resend_when_the_index_refuses_a_document_again_then_it_failed_and_is_not_sent_for_ever(
    filled: CachedStore, caplog: pytest.LogCaptureFixture
) -> None:
    filled.fetch("/a", "/b")
    filled.send()
    filled.end()
    receiver = Refusing(filled, "/b")

    done = resend(filled, receiver)

    assert done == sent(1, failed=1)
    assert [len(batch.documents) for batch in receiver.batches] == [2]
    assert f"the index refuses {SITE}/b: immense" in caplog.messages
    assert states(filled) == {"/a": "indexed", "/b": "failed"}
    assert filled.indexed_urls() == ["/a", "/b"]


def test_resend_when_the_cache_has_lost_records_then_these_are_counted(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.end()
    with filled.database.write_once() as transaction:
        batch_table.forget_segment(transaction, filled.run.source_id, 1)

    done = resend(filled)

    assert done == sent(0, to_fetch=4)
    assert resend(filled) == done
    assert states(filled) == dict.fromkeys(NAMES, "todo")


def test_resend_when_a_record_is_damaged_then_its_page_is_fetched_again(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.end()
    filled.damage("/b")

    done = resend(filled)

    assert done == sent(3, to_fetch=1)
    assert states(filled) == {"/a": "indexed", "/b": "todo", "/c": "indexed", "/d": "indexed"}
    assert filled.indexed_urls() == list(NAMES)


def test_resend_when_cut_off_then_a_flush_sends_the_rest_alone(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.end()
    empty_the_index(filled)
    with_threshold(filled, 0.00005)
    receiver = Watched(filled, failing_after(2))

    with pytest.raises(IndexUnavailable):
        resend(filled, receiver)
    warned = [warning["code"] for warning in status(filled)["warnings"]]
    rest = Watched(filled)
    done = flush(filled, rest)

    assert [len(batch.documents) for batch in receiver.batches] == [1, 1]
    assert warned == ["waiting", "resend"]
    assert done == sent(2)
    assert [document.fields["url"].removeprefix(SITE) for batch in rest.batches for document in batch.documents] == [
        "/c",
        "/d",
    ]
    assert verified(filled)["ok"]
    assert flush(filled, Watched(filled, away)) == sent(0)


def test_resend_when_the_cache_preserves_nothing_then_nothing_is_given_up_before_its_end(filled: CachedStore) -> None:
    filled.fetch(*NAMES)
    filled.send()
    filled.end()
    with_threshold(filled, 0.00005)
    cache = filled.project.cache.model_copy(update={"preserve": False})
    filled.project = filled.project.model_copy(update={"cache": cache})

    done = resend(filled)

    assert done == sent(4)
    assert list(filled.cache.list_segments()) == []
    with filled.database.read_once() as transaction:
        assert url_queries.count_indexed_without_record(transaction, filled.run.source_id) == 4
