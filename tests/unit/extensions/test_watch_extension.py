from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from scrapy.extensions.memusage import MemoryUsage
from scrapy.utils.test import get_crawler
from twisted.internet.base import ReactorBase

from searchcrawl import clock
from searchcrawl.addon import SearchcrawlAddon
from searchcrawl.exceptions import LeaseLost
from searchcrawl.extensions import watch_extension
from searchcrawl.extensions.watch_extension import HeartbeatExtension, MemoryExtension, count_monotonically
from searchcrawl.store.runs import lease
from tests.filled_store import FilledStore
from tests.unit.store.support_store import age_leases

_LIMIT_SECONDS = 20.0
_CHILD = (
    "from scrapy.utils.test import get_crawler;"
    "from searchcrawl.extensions.watch_extension import MemoryExtension;"
    "print(MemoryExtension(get_crawler()).get_virtual_size())"
)
_PARENT = (
    "import os, sys;"
    "much = bytearray(b'x') * 400_000_000;"
    "sys.stdout.flush();"
    "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])"
)


def test_memory_when_the_process_was_a_large_one_before_then_counts_its_own_alone() -> None:
    large = subprocess.run([sys.executable, "-c", _PARENT, _CHILD], capture_output=True, text=True, check=True)

    assert 20_000_000 < int(large.stdout) < 300_000_000


def test_extensions_when_a_spider_of_users_own_runs_then_its_memory_is_counted_the_same_way() -> None:
    crawler = get_crawler(settings_dict={"ADDONS": {SearchcrawlAddon: 0}, "MEMUSAGE_ENABLED": True})

    counting = [type(extension) for extension in crawler.extensions.middlewares if isinstance(extension, MemoryUsage)]

    assert counting == [MemoryExtension]


def test_extensions_when_a_user_took_the_memory_limit_out_then_it_stays_out() -> None:
    crawler = get_crawler(settings_dict={"ADDONS": {SearchcrawlAddon: 0}, "EXTENSIONS_BASE": {}})

    assert crawler.extensions.middlewares == ()


@pytest.fixture
def heartbeat(filled: FilledStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeartbeatExtension]:
    """A quick one that has begun; its engine has not."""
    monkeypatch.setattr(watch_extension, "BEAT_SECONDS", 0.02)
    heartbeat = HeartbeatExtension(filled.run, min_free_bytes=0)
    heartbeat.start()
    yield heartbeat
    heartbeat.stop("finished")
    heartbeat._thread.join()


def until(condition: threading.Event) -> None:
    assert condition.wait(_LIMIT_SECONDS)


def test_heartbeat_when_the_engine_has_not_started_yet_then_renews_the_lease(
    filled: FilledStore, heartbeat: HeartbeatExtension, monkeypatch: pytest.MonkeyPatch
) -> None:
    age_leases(filled.database, lease.EXPIRY_MS)
    renewed, renew = threading.Event(), lease.renew
    monkeypatch.setattr(lease, "renew", lambda *arguments: (renew(*arguments), renewed.set()))
    until(renewed)
    heartbeat.stop("finished")
    heartbeat._thread.join()

    assert filled.database.read(lease.is_held, filled.run.source_id)


def test_heartbeat_when_the_lease_is_lost_before_the_engine_started_then_the_run_ends_once_it_has(
    filled: FilledStore, heartbeat: HeartbeatExtension
) -> None:
    ended = threading.Event()
    age_leases(filled.database, lease.EXPIRY_MS)
    filled.database.write(lease.take, filled.run.source_id, name="demo")
    filled.run.shutdown.open(lambda reason: ended.set())
    heartbeat.engine_started()
    until(ended)

    assert isinstance(filled.run.shutdown.failure, LeaseLost)


class Reactor(ReactorBase):
    def installWaker(self) -> None:  # Twisted's name
        pass


def test_calls_when_the_clock_of_the_reactor_is_changed_then_those_that_wait_keep_their_pause() -> None:
    reactor = Reactor()
    reactor.callLater(100, print)
    count_monotonically(reactor)
    reactor.callLater(200, print)
    count_monotonically(reactor)

    pauses = sorted(call.getTime() - clock.monotonic() for call in reactor.getDelayedCalls())

    assert [round(pause) for pause in pauses] == [100, 200]
    assert 99 < (reactor.timeout() or 0) <= 100
