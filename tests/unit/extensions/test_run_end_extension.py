"""How a run ended, as a reason and as an exit code ."""

from __future__ import annotations

import pytest

from searchcrawl import urls
from searchcrawl.exceptions import IndexUnavailable, StoreError
from searchcrawl.extensions.run_end_extension import find_end_reason, find_exit_code
from searchcrawl.rules.rewriting import NormalisedUrl
from searchcrawl.run import Run, begin
from searchcrawl.store import host_table
from searchcrawl.store.runs import lease
from searchcrawl.store.states import EndReason
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import NewUrl
from tests.filled_store import SITE, FilledStore

_START = f"{SITE}/"


@pytest.fixture
def run(filled: FilledStore) -> Run:
    filled.run.starts = (NormalisedUrl(_START),)
    return filled.run


def settle_start(run: Run, code: int) -> None:
    with run.database.write_once() as transaction:
        host = urls.host_and_port(_START)
        host_id = host_table.find_or_add(transaction, [host])[host]
        row = NewUrl(key=urls.key(_START), url=_START, host_id=host_id, depth=0, code=code)
        url_table.add(transaction, run.source_id, [row], 0)


@pytest.mark.parametrize(
    ("reason", "failed", "expected"),
    [
        ("finished", False, EndReason.FINISHED),
        ("shutdown", False, EndReason.STOPPED),
        ("limit", False, EndReason.LIMIT),
        ("memusage_exceeded", False, "memusage_exceeded"),
        ("finished", True, EndReason.STORE_FAILED),
    ],
)
def test_end_reason_when_scrapy_names_one_then_ours(reason: str, failed: bool, expected: str) -> None:
    found = find_end_reason(reason, failed=failed)

    assert found == expected


@pytest.mark.parametrize(
    ("start", "counts", "reason", "expected"),
    [
        (503, {"fetch_failures": 1}, EndReason.FINISHED, 8),
        # Nothing was due, whatever failed before.
        (503, {}, EndReason.FINISHED, 0),
        # Outside the boundary, as in each run.
        (955, {}, EndReason.FINISHED, 8),
        (200, {"fetched": 1}, EndReason.FINISHED, 0),
        (None, {}, EndReason.LIMIT, 3),
        # More than half of the pages failed the login.
        (200, {"fetched": 2, "fetch_failures": 3, "login_failures": 3}, EndReason.FINISHED, 8),
        (200, {"fetched": 3, "fetch_failures": 3, "login_failures": 3}, EndReason.FINISHED, 0),
        # Others failed for other reasons.
        (200, {"fetched": 1, "fetch_failures": 5, "login_failures": 2}, EndReason.FINISHED, 0),
        (200, {"fetched": 1, "fetch_failures": 2, "rejected": 100, "login_failures": 2}, EndReason.FINISHED, 8),
        (200, {}, EndReason.FINISHED, 0),
    ],
)
def test_exit_code_when_a_run_ended_then_by_its_start_urls_and_counts(
    run: Run, start: int | None, counts: dict[str, int], reason: EndReason, expected: int
) -> None:
    if start is not None:
        settle_start(run, start)
    run.count(**counts)

    assert find_exit_code(run, reason) == expected


def test_failed_logins_when_the_run_is_cut_off_then_are_counted_on(run: Run) -> None:
    settle_start(run, 200)
    run.write_counted(lambda _: {"fetch_failures": 2, "login_failures": 2})

    run.database.write(lease.release, run.lease)
    resumed = begin(run.project, run.source, run.database)

    assert resumed.id == run.id
    assert find_exit_code(resumed, EndReason.FINISHED) == 8


def test_exit_code_when_documents_wait_then_6_but_a_failed_store_goes_first(run: Run) -> None:
    run.delivery_failure = IndexUnavailable("away")
    waiting = find_exit_code(run, EndReason.FINISHED)
    run.shutdown.failure = StoreError("gone")
    failed = find_exit_code(run, EndReason.FINISHED)

    assert (waiting, failed) == (6, 7)
