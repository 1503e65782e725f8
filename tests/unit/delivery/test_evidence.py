"""Which documents that moved for good may leave: the ends of their redirects, a hop at a time (L3, C6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.codes import Code, FailureKind
from searchcrawl.delivery.removals import MAX_HOPS, select_with_evidence
from searchcrawl.rules.lifecycle import Failures
from searchcrawl.sources.config import Lifecycle
from searchcrawl.store.engine.database import Database
from searchcrawl.store.removal_table import RemovalCandidate
from searchcrawl.store.runs import run_table
from searchcrawl.store.states import FetchState, Leaving
from searchcrawl.store.urls import link_table
from tests.statements import statements
from tests.unit.store import support_store as store

MOVED, REFRESH = int(Code.MOVED), int(Code.META_REFRESH)


@pytest.fixture
def database(tmp_path: Path, store_url: str) -> Iterator[Database]:
    database = Database(store_url, tmp_path)
    database.write(run_table.find_or_add_source, "demo")
    yield database
    database.close()


def lead(database: Database, *ids: int, last: int | None = None) -> None:
    """Makes each row lead to the next one, by turns with 301 and with a meta refresh, and the last one to ``last``."""
    targets = [*ids[1:], *([] if last is None else [last])]
    for place, (page, target) in enumerate(zip(ids, targets, strict=False)):
        store.settle(database, [page], code=REFRESH if place % 2 else MOVED)
        database.write(link_table.store, {page: [target]})


def leave(
    database: Database,
    *ids: int,
    leaving: Leaving = Leaving.EVIDENCE,
    completed: bool = True,
    evidence: str | None = None,
    **lifecycle: Any,
) -> list[int]:
    """Those of the rows whose documents may leave now."""
    with database.read_once() as transaction:
        candidates = [
            RemovalCandidate(
                one, "", row.code, row.rule, leaving, row.failures, row.failed_runs, row.redirects is not None, evidence
            )
            for one in ids
            for row in [store.row(database, one)]
        ]
        return [
            row.url_id
            for row in select_with_evidence(transaction, candidates, Lifecycle(**lifecycle), completed=completed)
        ]


@pytest.mark.few(24)
@pytest.mark.parametrize(
    ("code", "rule", "leaves"),
    [
        (200, None, True),
        (Code.DUPLICATE, None, True),
        (Code.NOT_CANONICAL, None, True),
        (404, None, True),
        (410, None, True),
        (Code.ROBOTS, "Disallow: /x", True),
        (Code.OUTSIDE_BOUNDARY, "scope.exclude_urls: *x*", True),
        (Code.MALFORMED_URL, "scope.max_url_length: max_url_length = 9", True),
        (Code.NOT_INDEXED, "noindex", True),
        (MOVED, "scope.include_hosts: no include matches", True),
        (REFRESH, "scope.max_url_length: max_url_length = 9", True),
        (MOVED, "scope.max_path_segments: max_path_segments = 3", False),
        (REFRESH, "scope.max_repeated_segments: max_repeated_segments = 3", False),
        (Code.OUTSIDE_BOUNDARY, "scope.max_urls: 5", False),
        (Code.TRAP_LIMIT, "scope.trap_after: http://a.test/{n}", False),
        (Code.ROBOTS, "robots.unavailable", False),
        (Code.EMPTY, None, False),
        *((code, None, False) for code in (401, 403, 408, 429, 500, 502, 503, 504)),
        *(
            (code, None, False)
            for code in (902, 903, 904, 905, 906, 907, 908, 958, 959, 960, 962, 963, 965, 1003, 1009)
        ),
    ],
)
def test_document_when_its_redirects_end_then_leaves_only_if_the_end_is_good_or_gone(
    database: Database, code: int, rule: str | None, leaves: bool
) -> None:
    for rows in (1, 2, 5, MAX_HOPS):
        *chain, end = store.add(database, [f"{rows}/{place}" for place in range(rows + 1)])
        lead(database, *chain, last=end)
        store.settle(database, [end], code=int(code), rule=rule)

        assert (rows, leave(database, chain[0])) == (rows, chain[:1] if leaves else [])


def test_documents_when_the_end_was_not_visited_or_is_to_be_visited_again_then_stay(database: Database) -> None:
    first, second, fresh, again = store.add(database, ["first", "second", "fresh", "again"])
    lead(database, first, last=fresh)
    lead(database, second, last=again)
    store.settle(database, [again], code=404, fetch_state=FetchState.TODO)

    assert leave(database, first, second) == []


def test_documents_when_their_redirects_lead_in_a_circle_or_too_far_or_nowhere_then_stay(database: Database) -> None:
    ids = store.add(database, [str(place) for place in range(MAX_HOPS + 6)])
    circle, alone, lost, chain = ids[:3], ids[3], ids[4], ids[5:]
    lead(database, *circle, last=circle[0])
    lead(database, alone, last=alone)
    store.settle(database, [lost], code=MOVED)
    lead(database, *chain)

    assert leave(database, *circle, alone, lost, chain[0]) == []
    # The last row of the chain was fetched well; from the next row on it is near enough.
    store.settle(database, chain[-1:])
    assert leave(database, *chain[:2]) == chain[:2]


@pytest.mark.parametrize("code", [500, 403, Code.TIMEOUT, Code.EMPTY, Code.SENTINEL, Code.TRAP_LIMIT])
def test_document_when_a_later_visit_failed_then_stays_in_spite_of_earlier_evidence(
    database: Database, code: int
) -> None:
    ids = store.add(database, ["a", "b"])
    store.settle(database, ids[:1], code=int(code))
    store.settle(database, ids[1:], code=404)

    assert leave(database, *ids) == ids[1:]


def test_document_when_its_page_leads_to_an_excluded_url_then_leaves_only_for_that_rule(database: Database) -> None:
    ids = store.add(database, ["own", "moved", "end"])
    rule, trail = "scope.exclude_urls: */login", '[{"url": "http://a.test/", "code": 302}]'
    for led_away in (ids[0], ids[2]):
        store.settle(database, [led_away], code=int(Code.OUTSIDE_BOUNDARY), rule=rule, redirects=trail)
    lead(database, ids[1], last=ids[2])

    # For a while it may lead to a login, whatever an earlier visit brought.
    assert leave(database, *ids[:2], evidence="404") == []
    assert leave(database, *ids[:2], evidence=f"955 {rule}") == [ids[0]]


def test_chains_when_there_are_many_then_each_hop_takes_a_few_statements(database: Database) -> None:
    chains = [store.add(database, [f"{name}/{place}" for place in range(5)]) for name in range(100)]
    for *chain, end in chains:
        lead(database, *chain, last=end)
    store.settle(database, [chain[-1] for chain in chains])
    starts = [chain[0] for chain in chains]
    with database.read_once() as transaction:
        candidates = [RemovalCandidate(one, "", MOVED, None) for one in starts]
        with statements(database) as executed:
            found = select_with_evidence(transaction, candidates, Lifecycle(), completed=True)

    assert [row.url_id for row in found] == starts
    assert len(executed) == 2 * 4


@pytest.mark.parametrize("runs", [2, 3])
def test_documents_when_a_page_is_gone_then_leave_once_enough_runs_saw_it_also_at_the_end_of_redirects(
    database: Database, runs: int
) -> None:
    gone, moved, other = store.add(database, ["gone", "moved", "other"])
    lead(database, moved, last=gone)
    seen = Failures()
    for run in range(runs - 1):
        seen = seen.add(FailureKind.GONE, after_run=run)
    store.settle(database, [gone], code=404, failures=seen.dump(), failed_runs=runs - 1)
    store.settle(database, [other], code=404, failures=seen.add(FailureKind.GONE, after_run=runs).dump())

    assert leave(database, gone, moved, other) == [gone, moved, other]
    assert leave(database, gone, moved, other, gone_confirmations=runs) == [other]


@pytest.mark.parametrize(("limit", "leaves"), [(0, False), (1, True), (3, True), (4, False)])
def test_document_when_it_failed_in_some_runs_then_leaves_only_at_the_end_of_a_completed_one(
    database: Database, limit: int, leaves: bool
) -> None:
    ids = store.add(database, ["a"])
    store.settle(database, ids, code=503, failed_runs=3)

    cut_short = leave(database, *ids, leaving=Leaving.FAILED, completed=False, error_runs_before_hidden=limit)
    completed = leave(database, *ids, leaving=Leaving.FAILED, error_runs_before_hidden=limit)

    assert (cut_short, completed) == ([], ids if leaves else [])
