"""Failed runs of a URL by what failed, and how many confirm that a page is gone (D5)."""

from __future__ import annotations

import pytest

from searchcrawl.codes import Code, FailureKind, facts_of, find_failure_kind, is_failure
from searchcrawl.rules.failures import Failures, is_confirmed

REMOVE_ON = (404, 410)


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
