"""A store that is away is tried again with growing pauses, told of once, and given up in the end (X-S4, X-S9)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from searchcrawl.exceptions import LeaseLost, StoreAway, StoreError, StoreLocked
from searchcrawl.store.engine.outage_retry import OutageRetry

PATIENT = 60.0


def failing(*errors: Exception, answer: str = "done") -> Callable[[], str]:
    """A call that raises these one after the other, and then answers."""
    left = list(errors)

    def call() -> str:
        if left:
            raise left.pop(0)
        return answer

    return call


@pytest.fixture(autouse=True)
def levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_attempt_when_the_store_comes_back_then_answers_and_tells_once_of_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outage_retry, returned = OutageRetry(PATIENT), []
    outage_retry.on_return.append(lambda: returned.append(outage_retry.away))

    answer = outage_retry.attempt(failing(StoreLocked("locked"), StoreAway("gone"), StoreAway("gone")))

    assert (answer, returned, outage_retry.away) == ("done", [False], False)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert caplog.messages[0] == "locked; fetching pauses, waiting up to 60 s for it"


def test_attempt_when_only_readers_get_through_then_the_store_is_still_away() -> None:
    outage_retry = OutageRetry(PATIENT)
    over = threading.Event()

    def locked() -> None:
        if not over.is_set():
            raise StoreLocked("locked")

    writer = threading.Thread(target=outage_retry.attempt, args=[locked])
    writer.start()
    while not outage_retry.away:
        over.wait(0.01)
    read = outage_retry.attempt(failing(), writes=False)
    away = outage_retry.away
    over.set()
    writer.join()

    assert (read, away, outage_retry.away) == ("done", True, False)


def test_attempt_when_patience_is_over_then_raises_and_each_later_call_is_made_once() -> None:
    outage_retry = OutageRetry(0.05)

    with pytest.raises(StoreLocked, match=r"locked \(waited 0\.05 s\)"):
        outage_retry.attempt(failing(*[StoreLocked("locked")] * 1000))
    with pytest.raises(StoreAway):
        outage_retry.attempt(failing(StoreAway("gone")))

    assert outage_retry.attempt(failing()) == "done"
    assert not outage_retry.away


def test_attempt_without_patience_when_the_store_is_away_then_raises_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(StoreLocked, match=r"^locked$"):
        OutageRetry().attempt(failing(StoreLocked("locked")))

    assert caplog.messages == []


@pytest.mark.parametrize("error", [StoreError("full"), LeaseLost("taken"), ValueError("ours")])
def test_attempt_when_it_fails_for_good_then_raises_at_once(error: Exception) -> None:
    call = failing(error)

    with pytest.raises(type(error)):
        OutageRetry(PATIENT).attempt(call)

    assert call() == "done"


def test_attempt_when_the_lease_is_lost_after_an_outage_then_the_outage_is_over() -> None:
    outage_retry = OutageRetry(PATIENT)

    with pytest.raises(LeaseLost):
        outage_retry.attempt(failing(StoreAway("gone"), LeaseLost("taken")))

    assert not outage_retry.away


def test_attempt_when_only_locks_are_waited_for_then_another_outage_is_raised_at_once() -> None:
    outage_retry = OutageRetry(PATIENT)

    assert outage_retry.attempt(failing(StoreLocked("locked")), retry_on=StoreLocked) == "done"
    with pytest.raises(StoreAway):
        outage_retry.attempt(failing(StoreAway("gone")), retry_on=StoreLocked)
