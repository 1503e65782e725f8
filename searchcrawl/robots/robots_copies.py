"""Copies of robots.txt files that outlive the process, for a run that goes on (B2, RFC 9309 §2.4)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from searchcrawl import clock
from searchcrawl.exceptions import SearchcrawlError
from searchcrawl.run import Run
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.hosts import robots_table

logger = logging.getLogger(__name__)

#: No copy is in force for longer.
_MAX_AGE_MS: Final = 30 * 86_400_000


class RobotsCopies:
    """The bodies of robots.txt files, by origin; only those that this run, or the one it goes on with, was sent.

    A run of its own asks anew, and what it cannot have forbids.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._swept = False

    async def keep(self, origin: str, body: bytes | None) -> None:
        """Keeps a good answer, None for one without a file.

        Without it a restart asks again, so that a store that fails costs no page.
        """
        try:
            await asyncio.to_thread(self._keep, origin, body)
        except SearchcrawlError as error:
            logger.warning("the copy of %s/robots.txt is not kept: %s", origin, error)

    async def recall(self, origin: str) -> bytes | None:
        """The last good answer of an origin; None without one. Raises SearchcrawlError."""
        since_ms = max(self._run.row.horizon_ms, clock.now_ms() - _MAX_AGE_MS)

        def find(transaction: Transaction) -> bytes | None:
            return robots_table.find(transaction, origin, since_ms=since_ms)

        return await asyncio.to_thread(self._run.read, find)

    def _keep(self, origin: str, body: bytes | None) -> None:
        if body is not None:
            self._run.write(lambda transaction: self._save(transaction, origin, body))
        # Most have none: the lock of a writer would cost each of them more than this look.
        elif self._run.read(lambda transaction: robots_table.find(transaction, origin)) is not None:
            self._run.write(lambda transaction: robots_table.drop(transaction, origin))

    def _save(self, transaction: Transaction, origin: str, body: bytes) -> None:
        now_ms = clock.now_ms()
        if not self._swept:
            robots_table.drop_before(transaction, now_ms - _MAX_AGE_MS)
            self._swept = True
        robots_table.save(transaction, origin, body, now_ms)
