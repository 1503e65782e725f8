"""Which URL gave a page is said by its document: a later visit that failed changes neither the choice among copies nor
what is asked of the site (F3, C6, D2).
"""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from searchcrawl import clock, urls
from searchcrawl.commit import document_rows
from searchcrawl.commit.decide import decide
from searchcrawl.items import Claim, Document, Hop, Outcome, Place
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import NewUrl
from tests.factories import document, outcome
from tests.unit.commit.support_world import SITE, SOURCE

SHORT, LONG = f"{SITE}t", f"{SITE}a-longer-name"
DATE = "Mon, 01 Jan 2024 00:00:00 GMT"


@pytest.fixture
def database(database: Database) -> Database:
    with database.write_once() as transaction:
        host = host_table.find_or_add(transaction, ["a.test:80"])["a.test:80"]
        rows = [NewUrl(key=urls.key(url), url=url, host_id=host, depth=1) for url in (SHORT, LONG)]
        url_table.add(transaction, 1, rows, 0)
    return database


def claim_all(database: Database) -> dict[str, Claim]:
    with database.write_once() as transaction:
        far = clock.now_ms() * 2
        claims = url_table.claim(transaction, 1, 1, limit=9, now_ms=far, horizon_ms=far, forced=False)
        url_table.release(transaction, [one.url_id for one in claims])
    return {one.url: one for one in claims}


def visit(database: Database, *items: Document | Outcome) -> None:
    group = decide(items, SOURCE)
    place = Place(segment=1, offset=0, response_bytes=1, fields_bytes=1)
    with database.write_once() as transaction:
        document_rows.write_documents(transaction, 1, group, {one.claim.url_id: place for one in group.stored})
        url_table.settle(transaction, group.settled)


def redirected(claim: Claim, **values: Any) -> Document:
    return document("same", claim=claim, base_url=f"{SITE}away", redirects=(Hop(claim.url, 302),), **values)


def codes(database: Database) -> dict[str, int]:
    """The codes of documents."""
    with database.read_once() as transaction:
        query = text("SELECT url, documents.code FROM documents JOIN urls ON urls.id = documents.url_id")
        return {row.url: row.code for row in transaction.execute(query)}


def test_copies_when_the_visit_of_one_that_redirects_failed_then_it_still_stands_for_no_page_that_answers_itself(
    database: Database,
) -> None:
    visit(database, redirected(claim_all(database)[SHORT]))
    alone = codes(database)
    visit(database, outcome(503, claim=claim_all(database)[SHORT]))
    # The choice is made now, while the row says nothing of a redirect.
    visit(database, document("same", claim=claim_all(database)[LONG]))

    assert alone == {SHORT: 200}
    assert codes(database) == {SHORT: 909, LONG: 200}


def test_copies_when_the_visit_of_one_that_answered_itself_failed_after_a_redirect_then_it_is_still_the_better_one(
    database: Database,
) -> None:
    visit(database, document("same", claim=claim_all(database)[SHORT]))
    claim = claim_all(database)[SHORT]
    visit(database, outcome(503, claim=claim, redirects=(Hop(claim.url, 302),)))
    visit(database, document("same", claim=claim_all(database)[LONG]))

    assert codes(database) == {SHORT: 200, LONG: 909}


def test_claim_when_a_page_came_by_a_redirect_and_its_next_visit_failed_then_it_has_no_validator_of_the_other_url(
    database: Database,
) -> None:
    rows = claim_all(database)
    visit(database, redirected(rows[SHORT], last_modified=DATE))
    by_redirect = claim_all(database)[SHORT]
    visit(database, outcome(503, claim=by_redirect))
    after_failure = claim_all(database)[SHORT]
    visit(database, document("same", claim=after_failure, last_modified=DATE, etag='"1"'))
    by_itself = claim_all(database)[SHORT]

    assert [(one.redirected, one.etag, one.last_modified) for one in (by_redirect, after_failure, by_itself)] == [
        (True, None, None),
        (True, None, None),
        (False, '"1"', DATE),
    ]


def test_copies_when_one_that_redirects_answers_itself_after_a_failure_then_the_choice_is_made_anew(
    database: Database,
) -> None:
    rows = claim_all(database)
    visit(database, redirected(rows[SHORT]), document("same", claim=rows[LONG]))
    visit(database, outcome(503, claim=claim_all(database)[SHORT]))
    visit(database, document("same", claim=claim_all(database)[SHORT]))

    assert (codes(database)[SHORT], codes(database)[LONG]) == (200, 909)
