"""Which documents stand for others, as the store answers and keeps it (F2, F3, A4), on each store."""

from __future__ import annotations

import pytest

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.documents import document_table, duplicate_key_table
from searchcrawl.store.documents.duplicate_key_table import DuplicateKeys
from searchcrawl.store.engine.database import Database
from searchcrawl.store.removal_table import Before
from searchcrawl.store.states import DocumentState
from searchcrawl.store.urls import url_table
from tests.unit.store.support_store import (
    NOW_MS,
    SOURCE,
    cached,
    document,
    mark,
    present,
    row,
    settle,
    states,
    store,
)

NONE, CACHED, _, PRESENT, WITHHELD, _, QUARANTINED, RECORD_LOST = DocumentState


def key(name: str) -> int:
    return urls.key(f"http://a.test:80/{name}")


def stand(database: Database, url_id: int, code: int, other: int | None, state: DocumentState | None) -> None:
    database.write(duplicate_key_table.set_results, [(url_id, code, other, state)])


def test_heads_when_a_body_is_there_several_times_then_only_who_stands_for_it_and_does_not_leave(
    database: Database,
) -> None:
    ids = cached(database, "a", "b", "c", "d", body=b"same")
    stand(database, ids[1], Code.DUPLICATE, ids[0], WITHHELD)
    mark(database, ids[2:3])
    store(database, ids[3:], body=b"same", code=952, state=NONE)

    with database.read_once() as transaction:
        keys = DuplicateKeys(transaction, SOURCE)
        heads, copies = keys.find_survivors([b"same", b"other"]), keys.find_copies(ids)

    assert [member.url_id for member in heads] == ids[:1]
    assert [(member.url_id, member.duplicate_of) for member in copies] == [(ids[1], ids[0])]


def test_named_and_naming_when_a_page_names_another_then_each_is_found_by_the_other(database: Database) -> None:
    (page,) = cached(database, "print", canonical_key=key("page"))
    (canonical,) = cached(database, "page")

    with database.read_once() as transaction:
        keys = DuplicateKeys(transaction, SOURCE)
        named, naming = keys.find_by_url([key("page"), key("missing")]), keys.find_by_canonical_url([key("page")])
        targets = duplicate_key_table.find_canonical_targets(transaction, [page, canonical])
        others = [duplicate_key_table.has_canonicals(transaction, source) for source in (SOURCE, SOURCE + 1)]

    assert ([member.url_id for member in named], [member.url_id for member in naming]) == ([canonical], [page])
    assert targets == {page: canonical}
    assert others == [True, False]


def test_move_when_a_better_copy_comes_then_all_copies_follow_but_not_who_lost_a_display_url(
    database: Database,
) -> None:
    ids = cached(database, "a", "b", "c", "d", "e")
    for number, code in ((1, Code.DUPLICATE), (2, Code.NOT_CANONICAL), (3, Code.DISPLAY_URL_CLASH)):
        stand(database, ids[number], code, ids[0], WITHHELD)

    database.write(duplicate_key_table.move_duplicates, 1, [(ids[0], ids[4])])

    assert [document(database, url_id).duplicate_of for url_id in ids] == [None, ids[4], ids[4], ids[0], None]


def test_standing_when_a_display_url_is_anothers_then_the_document_of_the_index_leaves_within_the_limits(
    database: Database,
) -> None:
    ids = [*present(database, "a", "b"), *cached(database, "c")]
    for url_id in ids[1:]:
        stand(database, url_id, Code.DISPLAY_URL_CLASH, ids[0], WITHHELD)

    with database.write_once() as transaction:
        leaving = [one.url_id for one in removal_table.find_candidates(transaction, SOURCE, before=Before(9, 0))]
        surplus = removal_table.find_new_copies(transaction, SOURCE, before=Before(9, 0))
        removal_table.seal(transaction, SOURCE, 1, NOW_MS, leaving, counted=True)
        removal_table.note_removed(transaction, leaving)

    assert (leaving, surplus) == (ids[1:2], [])
    assert states(database, ids) == [PRESENT, WITHHELD, WITHHELD]


@pytest.mark.parametrize("code", [Code.DUPLICATE, Code.NOT_CANONICAL])
def test_surplus_when_the_survivor_is_indexed_then_the_copy_goes_and_stays_known(database: Database, code: int) -> None:
    ids = present(database, "a", "b")
    stand(database, ids[1], code, ids[0], WITHHELD)

    with database.write_once() as transaction:
        surplus = removal_table.find_new_copies(transaction, SOURCE, before=Before(0, 0))
        removal_table.seal(transaction, SOURCE, 1, NOW_MS, [one.url_id for one in surplus], counted=True)
        under_way = duplicate_key_table.load(transaction, ids)[ids[1]]
        removal_table.note_removed(transaction, ids[1:])

    assert [(one.url_id, one.code) for one in surplus] == [(ids[1], code)]
    assert under_way.is_good
    assert states(database, ids) == [PRESENT, WITHHELD]
    assert document(database, ids[1]).duplicate_of == ids[0]


def test_evidence_when_a_copy_is_gone_then_nobody_stands_for_it_any_more(database: Database) -> None:
    ids = [*present(database, "a", "b"), *cached(database, "c")]
    for url_id in ids[1:]:
        stand(database, url_id, Code.DUPLICATE, ids[0], WITHHELD)

    mark(database, ids[1:])

    rows = [document(database, url_id) for url_id in ids[1:]]
    assert [(one.code, one.duplicate_of, one.leaving) for one in rows] == [(200, None, 1), (200, None, 0)]
    # The index may have an earlier text of the first one.
    assert states(database, ids[1:]) == [CACHED, NONE]


def test_resend_when_the_record_is_gone_then_the_page_is_wanted(database: Database) -> None:
    ids = present(database, "a", "b")
    database.write(batch_table.forget_segment, SOURCE, 1)
    store(database, ids[1:])

    lost = database.write(document_table.send_again, ids)

    assert lost == ids[:1]
    assert states(database, ids) == [RECORD_LOST, CACHED]


def test_claim_when_a_document_is_wanted_then_its_page_is_asked_for_whole(database: Database) -> None:
    ids = present(database, "a")
    database.write(batch_table.mark_records_lost, ids)
    database.write(url_table.reopen, ids)
    claims = database.write(url_table.claim, SOURCE, 1, limit=9, now_ms=NOW_MS, horizon_ms=NOW_MS, forced=False)

    assert [(claim.has_document, claim.etag, claim.body_digest) for claim in claims] == [(False, None, None)]
    assert document(database, ids[0]).body_digest is not None


def test_codes_when_the_last_visit_failed_then_the_row_keeps_saying_so(database: Database) -> None:
    ids = cached(database, "a", "b")
    settle(database, ids[1:], code=503)

    database.write(url_table.set_codes, dict.fromkeys(ids, Code.DUPLICATE))

    assert [row(database, url_id).code for url_id in ids] == [909, 503]


def test_duplicates_when_they_are_more_than_a_document_lists_then_the_first_ones_are_named(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicate_key_table, "MOST_DUPLICATES", 3)
    # By code points, in whatever order a language has them.
    ids = cached(database, "s", "z", "B", "a", "C", "other", "y")
    for url_id in ids[1:5]:
        stand(database, url_id, Code.DUPLICATE, ids[0], WITHHELD)
    stand(database, ids[6], Code.NOT_CANONICAL, ids[5], WITHHELD)

    found = database.read(duplicate_key_table.find_duplicates, ids)

    listed = {survivor: [copy.url.rpartition("/")[2] for copy in copies] for survivor, copies in found.items()}
    assert listed == {ids[0]: ["B", "C", "a"], ids[5]: ["y"]}
    assert found[ids[5]][0][1:] == (None, SOURCE)


@pytest.mark.parametrize("change", ["copy", "clash", "noindex", "sent again"])
def test_receipt_when_it_was_lost_with_the_process_then_the_document_still_leaves_the_index(
    database: Database, change: str
) -> None:
    other, sending = *present(database, "a"), *cached(database, "b")
    assert database.write(batch_table.seal_documents, SOURCE, 1, NOW_MS) is not None

    # It is in the index by now, and nobody has written that down.
    if change == "noindex":
        store(database, [sending], code=952, state=NONE, segment=None)
    elif change == "sent again":
        database.write(document_table.send_again, [sending])
        mark(database, [sending])
    else:
        code = Code.DUPLICATE if change == "copy" else Code.DISPLAY_URL_CLASH
        stand(database, sending, code, other, WITHHELD)

    with database.read_once() as transaction:
        going = [
            *removal_table.find_new_copies(transaction, SOURCE, before=Before(0, 0)),
            *removal_table.find_candidates(transaction, SOURCE, before=Before(0, 0)),
        ]
    assert [one.url_id for one in going] == [sending]


def test_refused_or_held_back_when_asked_then_only_the_good_ones_stand(database: Database) -> None:
    ids = present(database, "a", "b", body=b"same")
    database.write(document_table.mark_evidence, ids[:1], "404")
    database.write(removal_table.quarantine, ids[:1], 1)

    found = database.read(duplicate_key_table.load, ids)

    assert [found[url_id].is_good for url_id in ids] == [False, True]
    assert found[ids[0]].state == QUARANTINED
