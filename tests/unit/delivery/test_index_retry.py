"""How long an index is waited for, and how often it is asked (X-I1, X-I5)."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from searchcrawl import clock
from searchcrawl.delivery.index_retry import IndexRetry
from searchcrawl.exceptions import IndexMisconfigured, IndexUnavailable


class Index:
    """Raises ``errors`` one after another, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self._left = list(errors)
        self.calls = 0

    def ask(self) -> str:
        self.calls += 1
        if self._left:
            raise self._left.pop(0)
        return "yes"


def unavailable(retry_after_seconds: float | None = None) -> IndexUnavailable:
    return IndexUnavailable("busy", retry_after_seconds=retry_after_seconds)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that are made; they pass at once."""
    made: list[float] = []
    now = clock.monotonic()

    def wait(self: threading.Event, timeout: float | None = None) -> bool:
        made.append(timeout or 0.0)
        return self.is_set()

    monkeypatch.setattr(threading.Event, "wait", wait)
    monkeypatch.setattr(clock, "monotonic", lambda: now + sum(made))
    return made


def test_i1_attempt_when_the_index_comes_back_then_pauses_grow_until_then(waits: list[float]) -> None:
    index = Index(*(unavailable() for _ in range(9)))

    assert IndexRetry(60).attempt(index.ask) == "yes"
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_i1_attempt_when_a_run_ends_then_the_rest_of_the_time_is_limited(waits: list[float]) -> None:
    index = Index(*(unavailable() for _ in range(100)))
    retry = IndexRetry(20)
    retry.limit_to_end()

    with pytest.raises(IndexUnavailable):
        retry.attempt(index.ask)

    assert waits == [0.5, 1, 2, 4, 8]


def test_i1_attempt_when_fetching_waits_too_then_the_time_is_limited_until_an_answer(waits: list[float]) -> None:
    retry = IndexRetry(20)
    retry.limit_until_answer()

    assert retry.attempt(Index(unavailable(), unavailable()).ask) == "yes"
    # The index has answered: there is no limit any more.
    assert retry.attempt(Index(*(unavailable() for _ in range(9))).ask) == "yes"


@pytest.mark.parametrize(("asked", "waited"), [(7, 7), (0.1, 0.5), (3600, 300), (None, 0.5)])
def test_i5_attempt_when_the_index_names_a_time_then_it_is_kept_within_bounds(
    waits: list[float], asked: float | None, waited: float
) -> None:
    assert IndexRetry(60).attempt(Index(unavailable(asked)).ask) == "yes"
    assert waits == [waited]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(unavailable(120), id="i5: the time named is longer than what is left"),
        pytest.param(IndexMisconfigured("no"), id="i6: the index is misconfigured"),
    ],
)
def test_attempt_when_another_one_is_in_vain_then_gives_up_at_once(
    waits: list[float], error: IndexUnavailable | IndexMisconfigured
) -> None:
    retry = IndexRetry(60)
    retry.limit_to_end()
    index = Index(error)

    with pytest.raises(type(error)):
        retry.attempt(index.ask)

    assert (index.calls, waits) == (1, [])


def test_i1_attempt_when_a_run_ends_in_a_long_pause_then_the_index_is_asked_once_more() -> None:
    retry = IndexRetry(0)
    index = Index(unavailable(300), unavailable(300))
    ended = ending(retry, index.ask)

    with pytest.raises(IndexUnavailable):
        retry.attempt(ended)

    assert index.calls == 2


def ending(retry: IndexRetry, call: Callable[[], str]) -> Callable[[], str]:
    """``call``, after whose first try the run ends."""
    calls = 0

    def ask() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            threading.Timer(0.05, retry.limit_to_end).start()
        return call()

    return ask
