"""A run that leaves no trace: no lease, no row, nothing in cache or index, for looking at one page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from searchcrawl import clock
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_boundary
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.hosts import host_table
from searchcrawl.store.runs import run_table
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.runs.run_table import RunRow
from searchcrawl.store.states import RunKind

T = TypeVar("T")

#: A host that is blocked for longer gets the request all the same: a person waits for the answer.
_MAX_WAIT_SECONDS: Final = 30.0


class DryRun(Run):
    """A run whose writes are rolled back; its lease is nobody's."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """What ``work`` answers, in a transaction that is undone."""
        answers: list[T] = []

        def undone(transaction: Transaction) -> None:
            answers.append(work(transaction))
            raise _Undone

        with suppress(_Undone):
            self.database.write(undone)
        return answers[-1]


class _Undone(Exception):
    """Rolls a transaction back."""


class DryRunRateLimiter(RateLimiter):
    """Keeps the delay of one process that requests one page, and begins after what other processes have reserved."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._delays: dict[str, float] = {}
        self._next: dict[str, float] = {}

    async def wait_until_allowed(self, host: str) -> None:
        if host not in self._next:
            self._next[host] = clock.monotonic() + await asyncio.to_thread(self._wait_seconds, host)
        pause = min(self._next[host] - clock.monotonic(), _MAX_WAIT_SECONDS)
        if pause > 0:
            await asyncio.sleep(pause)
        self.start_delay(host)

    async def acquire_request(self, host: str) -> None:
        await self.wait_until_allowed(host)

    def set_crawl_delay(self, host: str, *, delay_seconds: float) -> None:
        self._delays[host] = max(delay_seconds, self._delays.get(host, 0.0))

    def start_delay(self, host: str) -> None:
        delay_seconds = max(self._run.source.fetch.delay_seconds, self._delays.get(host, 0.0))
        self._next[host] = max(self._next.get(host, 0.0), clock.monotonic() + delay_seconds)

    def pause(self, host: str, *, seconds: float) -> None:
        self._next[host] = max(self._next.get(host, 0.0), clock.monotonic() + seconds)

    def _wait_seconds(self, host: str) -> float:
        allowed_ms = self._run.read(lambda transaction: host_table.find_allowed_ms(transaction, host))
        return 0.0 if allowed_ms is None else (allowed_ms - clock.now_ms()) / 1000


def dry_run(project: Project, source: Source, database: Database) -> DryRun:
    """A run for looking at pages of a source; raises ConfigurationError, StoreError."""
    source_id = database.read(lambda transaction: run_table.find_source(transaction, source.name)) or 0
    now_ms = clock.now_ms()
    return DryRun(
        project=project,
        source=source,
        database=database,
        boundary=build_boundary(source),
        source_id=source_id,
        lease=Lease(source_id, 0),
        row=RunRow(
            id=0,
            kind=RunKind.MAINTENANCE,
            started_ms=now_ms,
            horizon_ms=now_ms,
            ended_ms=None,
            end_reason=None,
            exit_code=None,
            counts={},
            fingerprint=None,
        ),
        fingerprint="",
    )
