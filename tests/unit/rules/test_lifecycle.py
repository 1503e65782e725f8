"""Change conditions by the 8-case matrix of D2, due times, and what removes a known document (D4, D5, L3)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from searchcrawl.clock import DAY_MS
from searchcrawl.codes import Code, FailureKind, facts_of, find_failure_kind, is_failure
from searchcrawl.items import Unread
from searchcrawl.rules.lifecycle import (
    Condition,
    Failures,
    PageVersion,
    digest_unread,
    dump_unread,
    find_unread_gap_ms,
    follow_unread,
    has_changed,
    is_confirmed,
    is_evidence,
    parse_unread,
)
from searchcrawl.sources.config import Lifecycle

REMOVE_ON = frozenset({404, 410})
BEFORE = PageVersion(last_modified="Mon, 02 Mar 2026 10:00:00 GMT", etag='"a"', checksum=b"a")
OTHER = PageVersion(last_modified="Tue, 03 Mar 2026 10:00:00 GMT", etag='"b"', checksum=b"b")


@pytest.mark.parametrize("condition", [["date"], ["checksum"], ["etag"], ["date", "checksum"], list(Condition)])
@pytest.mark.parametrize(("date", "checksum", "etag"), list(product([False, True], repeat=3)))
def test_page_when_any_listed_trait_differs_then_is_changed(
    condition: list[str], date: bool, checksum: bool, etag: bool
) -> None:
    after = PageVersion(
        last_modified=(OTHER if date else BEFORE).last_modified,
        etag=(OTHER if etag else BEFORE).etag,
        checksum=(OTHER if checksum else BEFORE).checksum,
    )

    differing = {name for name, differs in (("date", date), ("checksum", checksum), ("etag", etag)) if differs}

    assert has_changed(condition, BEFORE, after) is bool(differing & set(condition))


@pytest.mark.parametrize("condition", [["date"], ["etag"], []])
@pytest.mark.parametrize("lacking", ["before", "after", "both"])
@pytest.mark.parametrize("same", [True, False])
def test_trait_when_not_sent_then_falls_back_to_the_checksum(condition: list[str], lacking: str, same: bool) -> None:
    checksum_only = PageVersion(checksum=b"a")
    before = checksum_only if lacking != "after" else BEFORE
    after = PageVersion(checksum=b"a" if same else b"b")
    if lacking == "before":
        after = PageVersion(last_modified="x", etag="y", checksum=after.checksum)

    assert has_changed(condition, before, after) is not same


def test_page_when_there_was_no_good_body_then_is_changed() -> None:
    assert has_changed(["checksum"], PageVersion(), PageVersion(checksum=b"a"))


def test_etags_when_one_is_weak_then_are_compared_weakly() -> None:
    assert not has_changed(["etag"], PageVersion(etag='W/"a"', checksum=b"a"), PageVersion(etag='"a"', checksum=b"b"))


def test_condition_when_unknown_then_is_an_error() -> None:
    with pytest.raises(ValueError, match="size"):
        has_changed(["size"], BEFORE, BEFORE)


@pytest.mark.parametrize("code", [404, 410, 952, 953, 954, 955, 1004])
def test_code_when_it_is_about_the_url_itself_then_is_evidence(code: int) -> None:
    assert is_evidence(code, "rule", REMOVE_ON)
    assert is_evidence(code, None, REMOVE_ON)


@pytest.mark.parametrize(
    "code",
    [0, 200, 302, 304, 401, 403, 429, 500, 503, *range(902, 912), 956, *range(958, 966), 1003, 1006, 1009, 1010],
)
def test_code_when_it_may_pass_then_is_no_evidence(code: int) -> None:
    assert not is_evidence(code, "rule", REMOVE_ON)


@pytest.mark.parametrize(
    ("rule", "expected"), [("Disallow: /tmp/", True), ("robots.unavailable", False), (None, False), ("", False)]
)
def test_robots_when_a_line_forbids_then_is_evidence_but_not_when_unavailable(rule: str | None, expected: bool) -> None:
    assert is_evidence(951, rule, REMOVE_ON) is expected


def test_code_when_listed_by_the_source_then_is_evidence() -> None:
    assert is_evidence(403, None, frozenset({403}))
    assert not is_evidence(404, None, frozenset({403}))


@pytest.mark.parametrize(
    ("removals", "documents", "percent", "most", "expected"),
    [
        (0, 0, 10, 1000, True),
        (10, 10, 10, 1000, True),
        (11, 20, 10, 1000, False),
        (10, 500, 0, 1000, True),
        (50, 500, 10, 1000, True),
        (51, 500, 10, 1000, False),
        (11, 105, 10, 1000, False),
        (11, 110, 10, 1000, True),
        (1000, 100_000, 10, 1000, True),
        (1001, 100_000, 10, 1000, False),
        (5, 500, 10, 4, False),
        (1, 500, 10, 0, False),
        (500, 500, 100, 1000, True),
    ],
)
def test_removals_when_more_than_either_limit_then_are_refused(
    removals: int, documents: int, percent: float, most: int, expected: bool
) -> None:
    limits = Lifecycle(max_delete_percent=percent, max_delete_documents=most)

    assert limits.allows(removals, documents) is expected


BODY = Unread(mimetype="image/png", digest=digest_unread(b"picture"), etag='"1"')


def test_gap_when_a_body_is_found_again_and_again_then_it_doubles_up_to_a_week() -> None:
    gaps = [find_unread_gap_ms(replace(BODY, times=times)) for times in (1, 2, 3, 4, 5, 6, 10_000)]

    assert gaps == [days * DAY_MS for days in (0, 1, 2, 4, 7, 7, 7)]


def test_body_when_found_again_then_is_counted() -> None:
    assert follow_unread(None, BODY) == BODY
    assert follow_unread(replace(BODY, times=3), BODY).times == 4


@pytest.mark.parametrize(
    "other",
    [
        replace(BODY, etag='"2"'),
        replace(BODY, last_modified="Mon, 01 Jan 2024 00:00:00 GMT"),
        replace(BODY, digest=digest_unread(b"another")),
        replace(BODY, mimetype="image/gif"),
    ],
)
def test_body_when_it_is_another_one_then_counting_begins_anew(other: Unread) -> None:
    assert follow_unread(replace(BODY, times=5), other) == other


def test_body_when_a_row_keeps_it_then_is_the_same() -> None:
    assert parse_unread(dump_unread(BODY)) == BODY
    assert parse_unread(dump_unread(None)) is None


def count(*seen: tuple[FailureKind, int]) -> Failures:
    found = Failures()
    for kind, after_run in seen:
        found = Failures.parse(found.add(kind, after_run=after_run).dump())
    return found


def test_failures_when_they_are_of_different_runs_then_are_counted_by_what_failed() -> None:
    found = count((FailureKind.SERVER, 0), (FailureKind.GONE, 1), (FailureKind.SERVER, 2), (FailureKind.GONE, 5))

    assert found.counts == {"server": 2, "gone": 2}
    assert Failures.parse(None).counts == {}


def test_failures_when_a_run_that_ended_early_goes_on_then_the_last_one_counts_alone() -> None:
    same = count((FailureKind.GONE, 3), (FailureKind.GONE, 3), (FailureKind.GONE, 3))
    other = count((FailureKind.GONE, 2), (FailureKind.GONE, 3), (FailureKind.SERVER, 3))

    assert (same.counts, other.counts) == ({"gone": 1}, {"gone": 1, "server": 1})


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *((code, "unreachable") for code in (902, 905, 906, 907, 962)),
        *((code, "server") for code in (408, 425, 429, 500, 502, 503, 504, 599, 600, 958, 963, 1003, 1006, 951)),
        *((code, "client") for code in (400, 401, 403, 405, 451, 959)),
        *((code, "content") for code in (903, 904, 908, 960, 965, 1009)),
        *((code, "gone") for code in REMOVE_ON),
        # What a server may send as its status, although it is no failure of ours.
        (909, "server"),
        (964, "server"),
    ],
)
def test_failure_when_a_visit_failed_then_its_kind_is_known(code: int, kind: str) -> None:
    assert find_failure_kind(code, REMOVE_ON) == kind


def test_kinds_when_all_codes_are_asked_then_failures_have_one_and_no_other_code_has() -> None:
    own = {code: code.facts.failure is not None for code in Code}

    assert [code for code, has in own.items() if has and not is_failure(code, None)] == []
    assert [code for code in range(400, 600) if facts_of(code).failure is None] == []


@pytest.mark.parametrize(
    ("runs", "confirmations", "confirmed"), [(0, 1, True), (1, 2, False), (2, 2, True), (2, 3, False)]
)
def test_status_when_it_removes_then_is_confirmed_by_enough_runs(
    runs: int, confirmations: int, confirmed: bool
) -> None:
    seen = count(*((FailureKind.GONE, run) for run in range(runs)), (FailureKind.SERVER, 90)).dump()

    for code in REMOVE_ON:
        assert is_confirmed(code, seen, remove_on=REMOVE_ON, confirmations=confirmations) is confirmed
    # Any other evidence needs no confirmation.
    assert is_confirmed(951, None, remove_on=REMOVE_ON, confirmations=confirmations)
