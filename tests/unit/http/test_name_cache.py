"""How long the answers of DNS are kept, and how many."""

from __future__ import annotations

import pytest

from searchcrawl import clock
from searchcrawl.http.name_cache import NameCache
from searchcrawl.store.name_table import FAILED_MS, KEPT_MS, DnsAnswer

SECONDS = KEPT_MS / 1000


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [1000.0]
    monkeypatch.setattr(clock, "monotonic", lambda: moment[0])
    return moment


def test_cache_when_an_answer_is_old_then_it_is_forgotten(now: list[float]) -> None:
    cache = NameCache(most_names=10)
    cache.store("a.test", DnsAnswer(("8.8.8.1",)))
    cache.store("gone.test", DnsAnswer((), "unknown", FAILED_MS))
    now[0] += FAILED_MS / 1000
    failed = cache.find("gone.test")
    now[0] += SECONDS - FAILED_MS / 1000 - 0.1
    fresh = cache.find("a.test")

    now[0] += 0.1

    assert (failed, fresh) == (None, DnsAnswer(("8.8.8.1",)))
    assert cache.find("a.test") is None


def test_cache_when_full_then_the_oldest_goes(now: list[float]) -> None:
    cache = NameCache(most_names=2)

    for host in ("a", "b", "a", "c"):
        cache.store(host, DnsAnswer(("8.8.8.1",)))

    assert [cache.find(host) is None for host in ("a", "b", "c")] == [False, True, False]
