"""What the claiming thread does at the host table: books turns, tells what was met, hears what others met (C2, X-R10)."""

from __future__ import annotations

from typing import Final

from searchcrawl import clock
from searchcrawl.frontier.window import Window
from searchcrawl.politeness.host_registry import Wish
from searchcrawl.politeness.host_state import HostNews
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.hosts import host_table
from searchcrawl.store.hosts.host_table import Turn, Weather

#: What other processes met is asked for so often.
_HEARING_SECONDS: Final = 1.0
_MAX_IDS: Final = 100_000


class HostTurns:
    """The window's side of the host table, for one thread; times become those of the window, monotonic."""

    def __init__(self, database: Database, window: Window) -> None:
        self._database = database
        self._window = window
        self._since_ms = clock.now_ms()
        self._heard_at = 0.0
        self._ids: dict[str, int] = {}
        self._turns: dict[str, Turn] = {}
        # Before the first request, also those outside the claims.
        self._hear()

    def settle(self) -> bool:
        """Does all that is to be done; whether claims may go now that could not before."""
        wishes, news = self._window.wishes(), self._window.news()
        if wishes or news:
            self._learn_ids([*(wish.name for wish in wishes), *news])
            given = self._database.write(lambda transaction: self._apply(transaction, wishes, news))
            offset = _offset()
            for name, turn in given.items():
                self._turns[name] = turn
                self._window.give(name, turn.first_ms / 1000 + offset)
        heard = self._hear() if clock.monotonic() - self._heard_at >= _HEARING_SECONDS else False
        return bool(wishes) or heard

    def _learn_ids(self, names: list[str]) -> None:
        if len(self._ids) > _MAX_IDS:
            self._ids.clear()
            self._turns.clear()
        missing = [name for name in names if name not in self._ids]
        if missing:
            self._ids |= self._database.write(lambda transaction: host_table.ids(transaction, missing))

    def _apply(self, transaction: Transaction, wishes: list[Wish], news: dict[str, HostNews]) -> dict[str, Turn]:
        now_ms, offset = clock.now_ms(), _offset()
        given: dict[str, Turn] = {}
        by_name = {wish.name: wish for wish in wishes}
        # By rising id, so that no two processes wait for each other.
        for name in sorted({*by_name, *news}, key=self._ids.__getitem__):
            host_id = self._ids[name]
            if name in news:
                host_table.tell(transaction, host_id, self._weather(news[name], offset), now_ms=now_ms)
            wish = by_name.get(name)
            if wish is not None:
                given[name] = host_table.book(
                    transaction,
                    host_id,
                    now_ms=now_ms,
                    delay_ms=round(wish.delay_seconds * 1000),
                    not_before_ms=round((wish.not_before - offset) * 1000),
                    unused=self._turns.get(name) if wish.missed else None,
                )
        return given

    def _weather(self, news: HostNews, offset: float) -> Weather:
        return Weather(
            failed=news.failed,
            answered=news.answered,
            first_seconds=news.first_seconds,
            limit_seconds=news.limit_seconds,
            until_ms=round((news.until - offset) * 1000) if news.until else 0,
            code=news.code,
            since_ms=self._since_ms,
        )

    def _hear(self) -> bool:
        """Takes in which hosts are left alone, by whatever process."""
        self._heard_at = clock.monotonic()
        closed = self._database.read(lambda transaction: host_table.closed(transaction, clock.now_ms()))
        offset = _offset()
        self._window.close_until({host.name: (host.until_ms / 1000 + offset, host.code) for host in closed})
        return bool(closed)


def _offset() -> float:
    """What makes monotonic seconds of seconds since 1970."""
    return clock.monotonic() - clock.now_ms() / 1000
