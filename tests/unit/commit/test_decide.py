"""What the end of each visit means for its row and its document (D2-D5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from searchcrawl import clock
from searchcrawl.clock import DAY_MS
from searchcrawl.codes import ROBOTS_UNAVAILABLE, Code, FailureKind
from searchcrawl.commit.decide import Group, decide
from searchcrawl.items import Claim, Document, Link, Outcome, Page
from searchcrawl.rules.lifecycle import Failures
from searchcrawl.rules.recrawl import HOUR_MS, Word
from searchcrawl.sources.config import Source
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls.link_table import Nofollow
from searchcrawl.store.urls.url_table import Settled
from tests.factories import claim, document, outcome

NOW_MS = 5_000_000
ADAPTIVE = {"recrawl_every_hours": 24, "recrawl_min_hours": 1, "recrawl_max_hours": 100}
#: Two days before the pages of ``document`` were fetched.
VISITED_MS = clock.to_ms(document().fetched_at) - 2 * DAY_MS


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: NOW_MS)


def source(**tables: Any) -> Source:
    start, scope = {"urls": ["http://site.test/"]}, {"include_hosts": ["site.test"]}
    return Source.model_validate(
        {"name": "demo", "path": "sources/demo.toml", "start": start, "scope": scope, **tables}
    )


def decided(*items: Document | Outcome, **tables: Any) -> Group:
    return decide(items, source(**tables))


def known(body: str = "old", **values: Any) -> Claim:
    """A row whose document is in the cache, with ``body``."""
    before = document(body)
    digests = {"body_digest": before.body_digest, "fields_digest": before.fields_digest}
    return claim(**{"has_document": True, "code": 200, **digests, **values})


def counted(group: Group) -> set[str]:
    return {name for name, count in group.counts.items() if count}


def test_document_when_new_then_stored_and_its_links_are_found() -> None:
    page = Page(title="t", text="x", links=(Link("http://site.test/a"),))

    group = decided(document(claim=claim(3, depth=2), page=page))

    assert [one.claim.url_id for one in group.stored] == [3]
    assert [(one.code, one.fetch_state) for one in group.settled] == [(200, FetchState.SETTLED)]
    assert [(found.page_id, found.depth, list(found.links)) for found in group.found] == [(3, 3, list(page.links))]
    assert counted(group) == {"new"}


def test_document_when_its_author_says_nofollow_then_no_link_is_found() -> None:
    page = Page(text="x", nofollow=True, links=(Link("http://site.test/a"),))

    assert [list(found.links) for found in decided(document(page=page)).found] == [[]]


@pytest.mark.parametrize(("by_header", "kind"), [(False, Nofollow.META), (True, Nofollow.HEADER)])
def test_document_when_a_page_and_a_link_say_nofollow_then_each_counts_for_what_it_says(
    by_header: bool, kind: Nofollow
) -> None:
    said, unsaid = (Link("http://site.test/a", nofollow=True), Link("http://site.test/b"))
    page = Page(text="x", nofollow=True, nofollow_by_header=by_header, links=(said, unsaid))

    (found,) = decided(document(page=page)).found
    (unlinked,) = decided(document(page=page), scope={"include_hosts": ["site.test"], "follow_links": False}).found

    assert (list(found.links), list(found.unfollowed), found.nofollow) == ([said], [unsaid], kind)
    assert (list(unlinked.links), list(unlinked.unfollowed)) == ([], [])


def test_document_when_robots_directives_are_ignored_then_its_links_are_found_though_it_says_nofollow() -> None:
    said, unsaid = (Link("http://site.test/a", nofollow=True), Link("http://site.test/b"))
    page = Page(text="x", nofollow=True, links=(said, unsaid))

    # That of a link is said of the link, not of the page.
    assert [list(found.links) for found in decided(document(page=page), keep={"meta_robots": False}).found] == [
        [said, unsaid]
    ]


def test_document_when_only_its_bytes_differ_then_it_is_not_sent() -> None:
    row = known("old")

    group = decided(document("old<!-- comment -->", text="old", claim=row))

    assert group.stored == []
    assert [(one.url_id, one.send_again) for one in group.confirmed] == [(row.url_id, False)]
    assert counted(group) == {"unchanged"}


@pytest.mark.parametrize(
    ("visited", "stored", "counter"),
    [
        pytest.param(document("new", claim=known("old")), [200], "changed", id="another text"),
        pytest.param(document("old", claim=known("old"), page=None), [], "unchanged", id="the same bytes"),
        pytest.param(
            document("old", claim=known("old"), code=Code.NOT_INDEXED), [952], "non_indexable", id="noindex replaces it"
        ),
    ],
)
def test_document_when_it_is_known_then_what_differs_is_stored_and_what_does_not_is_not_sent(
    visited: Document, stored: list[int], counter: str
) -> None:
    group = decided(visited)

    assert [one.code for one in group.stored] == stored
    assert counted(group) == {counter}
    # The links of a page that was not read stand.
    assert (group.found == []) is (visited.page is None)


def test_document_when_its_date_moved_then_it_is_sent_again_only_where_dates_count() -> None:
    row = known("old", last_modified="Mon, 01 Jan 2029 00:00:00 GMT")
    visited = document("old", claim=row, last_modified="Tue, 02 Jan 2029 00:00:00 GMT")

    by_date, by_checksum = decided(visited), decided(visited, change={"condition": ["checksum"]})

    assert [one.send_again for one in by_date.confirmed] == [True]
    assert [one.send_again for one in by_checksum.confirmed] == [False]


def test_document_when_it_lost_its_text_then_the_known_one_stays() -> None:
    row = known("old")

    group = decided(document("", claim=row, code=Code.EMPTY))

    assert (group.stored, group.with_evidence) == ([], [])
    assert [one.code for one in group.settled] == [911]


def test_answer_304_when_it_comes_then_confirmed_with_nothing_to_send() -> None:
    row = known()

    group = decided(outcome(304, claim=row, etag='"2"'))

    assert [(one.url_id, one.etag) for one in group.confirmed] == [(row.url_id, '"2"')]
    assert [one.url_id for one in group.unchanged] == [row.url_id]
    assert counted(group) == {"not_modified"}


def test_answer_304_when_the_page_failed_before_then_its_copies_are_looked_at_again() -> None:
    row = known(code=404)

    assert decided(outcome(304, claim=row)).recovered == [row.url_id]


@pytest.mark.parametrize(
    ("code", "rule", "leaves"),
    [
        *((code, None, True) for code in (404, 410, Code.MOVED, Code.META_REFRESH)),
        (Code.ROBOTS, "Disallow: /", True),
        (Code.OUTSIDE_BOUNDARY, "scope.depth: depth = 1", True),
        *((code, None, False) for code in (401, 403, 418, 500, 503)),
        *((code, None, False) for code in (902, 903, 904, 905, 906, 907, 958, 960, 962, 963, 1003, 1006, 1009)),
        (Code.ROBOTS, ROBOTS_UNAVAILABLE, False),
        (Code.TRAP_LIMIT, "scope.max_path_segments", False),
    ],
)
def test_outcome_when_it_is_evidence_then_the_document_is_to_leave_and_else_it_stays(
    code: int, rule: str | None, leaves: bool
) -> None:
    row = known()

    group = decided(outcome(code, rule=rule, claim=row))

    assert (group.with_evidence, group.stored, group.confirmed) == ([row.url_id] if leaves else [], [], [])


def test_outcome_when_remove_on_names_other_codes_then_these_count() -> None:
    group = decided(outcome(404, claim=claim(1)), outcome(451, claim=claim(2)), lifecycle={"remove_on": [451]})

    assert group.with_evidence == [2]


def _tries(attempts: Sequence[int], **values: Any) -> list[tuple[FetchState, int | None]]:
    items = [outcome(503, claim=claim(attempt=attempt), transient=True, **values) for attempt in attempts]
    group = decided(*items, fetch={"retries": 3})
    return [(one.fetch_state, None if one.due_ms is None else one.due_ms - NOW_MS) for one in group.settled]


def test_failure_when_it_may_pass_then_tried_again_with_growing_pauses_until_it_has_failed() -> None:
    todo = FetchState.TODO

    assert _tries([0, 1, 2, 3]) == [(todo, 1000), (todo, 2000), (todo, 4000), (FetchState.SETTLED, 0)]


def test_failure_when_the_server_names_a_pause_then_it_is_kept_up_to_a_minute() -> None:
    assert _tries([0], retry_after_seconds=30) == [(FetchState.TODO, 30_000)]
    assert _tries([0], retry_after_seconds=3600) == [(FetchState.SETTLED, 0)]


def test_failure_when_it_goes_on_for_runs_then_counted_and_a_success_ends_it() -> None:
    row = claim(failed_runs=4)

    failed = decided(outcome(500, claim=row)).settled[0]
    well = decided(document(claim=row)).settled[0]

    assert (failed.failed_runs, well.failed_runs) == (5, 0)


def test_failures_when_they_go_on_then_are_kept_by_kind_until_a_good_visit() -> None:
    before = Failures().add(FailureKind.SERVER, after_run=1).dump()
    row = claim(failures=before, failed_runs=1)
    ends = [
        outcome(404, claim=row),
        outcome(503, claim=row, transient=True),
        outcome(Code.MOVED, claim=row),
        outcome(304, claim=row),
        document(claim=row),
    ]

    settled = [decide([end], source(fetch={"retries": 3}), after_run=7) for end in ends]

    kept = [Failures.parse((one.settled or one.unchanged)[0].failures).counts for one in settled]
    # A visit that is tried again in the run has not ended yet.
    assert kept == [{"server": 1, "gone": 1}, {"server": 1}, {}, {}, {}]


def test_failure_when_it_comes_again_in_the_same_run_then_the_run_counts_once() -> None:
    before = Failures().add(FailureKind.SERVER, after_run=7).dump()

    (settled,) = decide([outcome(404, claim=claim(failures=before, failed_runs=2))], source(), after_run=7).settled

    assert (settled.failed_runs, Failures.parse(settled.failures).counts) == (2, {"gone": 1})


@pytest.mark.parametrize(
    ("code", "seen", "evidence", "hidden"),
    [
        (404, 2, True, False),
        (404, 1, False, True),
        (404, 0, False, False),
        (503, 2, False, True),
        (503, 1, False, True),
    ],
)
def test_known_document_when_its_page_fails_then_enough_runs_decide(
    code: int, seen: int, evidence: bool, hidden: bool
) -> None:
    failures = Failures()
    for number in range(seen):
        failures = failures.add(FailureKind.GONE, after_run=number)
    row = known(url_id=9, is_known=True, failures=failures.dump(), failed_runs=seen)
    keys = {"gone_confirmations": 3, "error_runs_before_hidden": 2}

    group = decide([outcome(code, claim=row)], source(lifecycle=keys), after_run=99)

    assert (group.with_evidence, list(group.hidden)) == ([9] if evidence else [], [9] if hidden else [])


def test_refusal_when_no_request_was_sent_then_not_due_again_and_the_time_of_the_fetch_stands() -> None:
    group = decided(outcome(Code.OUTSIDE_BOUNDARY, rule="scope.depth: depth = 1"))

    assert [(one.due_ms, one.fetched_ms, one.failed_runs) for one in group.settled] == [(None, None, 0)]
    assert counted(group) == set()


def test_outcome_when_put_off_then_the_row_is_to_do_later_and_as_it_was() -> None:
    visited = claim(9, code=200, attempt=2, failed_runs=1)

    group = decided(outcome(200, claim=visited, again_ms=12_345))

    [row] = group.settled
    assert (row.url_id, row.fetch_state, row.due_ms, row.code, row.keep_rule) == (9, FetchState.TODO, 12_345, 200, True)
    assert (row.attempts, row.failed_runs, row.fetched_ms) == (2, 1, None)
    assert (group.released, group.unread, counted(group)) == ([], [], set())


def test_outcome_when_released_then_the_row_goes_back_untouched() -> None:
    group = decided(outcome(0, claim=claim(9), released=True))

    assert (group.released, group.settled, counted(group)) == ([9], [], set())


def test_moved_when_the_target_is_allowed_then_it_is_admitted_at_the_same_depth() -> None:
    target = Link("http://site.test/new")

    group = decided(outcome(Code.MOVED, claim=claim(9, depth=4), links=(target,)))

    assert [(found.page_id, found.depth, list(found.links)) for found in group.found] == [(9, 4, [target])]


def test_decide_when_the_clock_was_set_back_in_the_run_then_the_row_is_not_due_in_it_again() -> None:
    horizon_ms = NOW_MS + 3_600_000

    group = decide([outcome(404), document(fetched_at=clock.from_ms(NOW_MS))], source(), horizon_ms=horizon_ms)

    assert [visit.due_ms for visit in group.settled] == [horizon_ms + 1, horizon_ms + 1]


@pytest.mark.parametrize(
    ("body", "values", "hours"),
    [
        ("old", {}, 36),
        ("new", {}, 12),
        ("old", {"visited_ms": -HOUR_MS}, 24),
        # These say nothing of the page: it is processed again, new, or came back from a failure.
        ("new", {"anew": True}, 24),
        ("old", {"anew": True}, 24),
        ("new", {"code": 0, "has_document": False}, 24),
        ("old", {"code": 503, "failed_runs": 1}, 36),
    ],
)
def test_interval_when_a_page_was_visited_then_is_half_after_a_change_and_half_as_long_again_without(
    body: str, values: dict[str, Any], hours: float
) -> None:
    visited = document(body).fetched_at
    row = {"interval_ms": 24 * HOUR_MS, **values}
    row["visited_ms"] = clock.to_ms(visited) + row.get("visited_ms", -25 * HOUR_MS)

    begun_ms = clock.to_ms(visited) - HOUR_MS
    one = document(body, claim=known(**row))
    (settled,) = _ends(decide([one], source(lifecycle=ADAPTIVE), horizon_ms=begun_ms))

    assert settled.interval_ms == hours * HOUR_MS
    # From the beginning of the run, less a fiftieth.
    assert settled.due_ms == begun_ms + hours * HOUR_MS * 49 // 50


def test_interval_when_the_source_was_edited_or_the_visit_failed_then_it_stays_and_304_is_no_change() -> None:
    row = {"interval_ms": 24 * HOUR_MS, "visited_ms": 0}

    edited = decide([document("new", claim=known(**row))], source(lifecycle=ADAPTIVE), edited=("keep.min_bytes",))
    failed = decide([outcome(503, claim=known(**row))], source(lifecycle=ADAPTIVE), horizon_ms=NOW_MS)
    same = decide([outcome(304, claim=known(**row | {"visited_ms": -25 * HOUR_MS}))], source(lifecycle=ADAPTIVE))

    intervals = [_ends(group)[0].interval_ms for group in (edited, failed, same)]
    assert intervals == [24 * HOUR_MS, None, 36 * HOUR_MS]
    # It is tried again soon, whatever its interval.
    assert _ends(failed)[0].due_ms == NOW_MS + HOUR_MS * 49 // 50


@pytest.mark.parametrize(
    ("body", "lastmod_ms", "values", "proof"),
    [
        ("new", VISITED_MS + 1000, {}, (Word.CHANGED, True)),
        ("old", VISITED_MS + 1000, {}, (Word.CHANGED, False)),
        ("new", VISITED_MS - 1000, {}, (Word.SAME, True)),
        ("old", VISITED_MS - 1000, {}, (Word.SAME, False)),
        ("old", VISITED_MS + 400 * DAY_MS, {}, None),
        ("old", None, {}, None),
        ("old", VISITED_MS + 1000, {"anew": True}, None),
        ("old", VISITED_MS + 1000, {"attempt": 1}, None),
        ("old", VISITED_MS + 1000, {"failed_runs": 1}, None),
    ],
)
def test_date_of_a_sitemap_when_a_page_was_visited_then_is_proven_right_or_wrong(
    body: str, lastmod_ms: int | None, values: dict[str, Any], proof: tuple[Word, bool] | None
) -> None:
    row = known(visited_ms=VISITED_MS, sitemap_id=3, lastmod_ms=lastmod_ms, **values)

    group = decided(document(body, claim=row), lifecycle=ADAPTIVE)

    assert [(one.sitemap_id, one.said, one.changed) for one in group.proofs] == ([(3, *proof)] if proof else [])
    assert decided(document(body, claim=row)).proofs == []


def _ends(group: Group) -> list[Settled]:
    return [*group.settled, *group.unchanged]
