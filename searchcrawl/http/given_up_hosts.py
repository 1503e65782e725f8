"""Ends the requests to hosts that are given up (``frontier.last_retries``): those under way, and those that wait for a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from searchcrawl.http.visit_end import HostGivenUp
from searchcrawl.politeness.backoff import explain_given_up

P = TypeVar("P")
T = TypeVar("T")


class GivenUpHosts:
    """The hosts (``host:port``) that get no request any more in this process; for the event loop, but for ``give_up``."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        #: by host, the tasks with requests under way; those that were ended
        self._under_way: dict[str, set[asyncio.Task[Any]]] = {}
        self._ended: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def give_up(self, codes: Mapping[str, int]) -> None:
        """Ends all requests to hosts, each with its code; any thread may call it."""
        self._codes |= codes
        # Before the first request nothing is under way.
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end, list(codes))

    # No context manager: there is a call for each request, and one costs as much as all the rest here.
    async def send(self, host: str, send: Callable[[P], Awaitable[T]], request: P) -> T:
        """What ``send`` returns of a request to the host; raises HostGivenUp once that is given up."""
        self._refuse(host)
        self._loop, task = asyncio.get_running_loop(), asyncio.current_task()
        under_way = self._under_way.setdefault(host, set())
        under_way.add(task)  # type: ignore[arg-type]  # a coroutine runs in one
        try:
            return await send(request)
        except asyncio.CancelledError:
            if task is not None and task in self._ended:
                task.uncancel()
                self._refuse(host)
            raise
        finally:
            under_way.discard(task)
            self._ended.discard(task)
            if not under_way and self._under_way.get(host) is under_way:
                del self._under_way[host]

    def _refuse(self, host: str) -> None:
        if (code := self._codes.get(host)) is not None:
            raise HostGivenUp(explain_given_up(host), code=code)

    def _end(self, hosts: list[str]) -> None:
        for host in hosts:
            for task in self._under_way.get(host, ()):
                self._ended.add(task)
                task.cancel()
