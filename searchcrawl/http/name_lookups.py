"""Looks host names up, once for all parts of a crawl, and where the store is shared for all crawls (C12).

Addresses are kept as DNS named them: for each connection the guard decides whether an address may be reached.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from searchcrawl import clock
from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.shared_names import SharedNames
from searchcrawl.store.hosts.name_table import FAILED_MS, Answer, Turn

if TYPE_CHECKING:
    # What sends no request does without an HTTP client, which is slow to load.
    from aiohttp.resolver import ThreadedResolver

logger = logging.getLogger(__name__)

_MOST_NAMES: Final = 10_000
#: So long an answer holds that DNS itself did not answer: a visit is repeated after a second.
_TRY_AGAIN_MS: Final = 500


class NameCache:
    """What was found out about the last ``most_names`` names, each as long as its answer holds."""

    def __init__(self, *, most_names: int) -> None:
        self._most_names = most_names
        self._known: dict[str, tuple[float, Answer]] = {}

    def find(self, name: str) -> Answer | None:
        """What is known of a name; None where it is to be looked up."""
        known = self._known.get(name)
        return known[1] if known is not None and clock.monotonic() < known[0] else None

    def store(self, name: str, answer: Answer) -> None:
        """Stores an answer."""
        self._known.pop(name, None)
        if self._most_names <= 0:
            return
        if len(self._known) >= self._most_names:
            del self._known[next(iter(self._known))]
        self._known[name] = (clock.monotonic() + answer.kept_ms / 1000, answer)


class NameLookups:
    """The addresses of names for one crawl; requests that need the same name at the same time share one lookup.

    ``per_second`` limits the lookups, 0 does not; with ``shared`` those of all processes of its store together.
    """

    def __init__(self, shared: SharedNames | None = None, *, per_second: float = 0.0) -> None:
        self._shared = shared
        self._interval_seconds = 1 / per_second if per_second else 0.0
        self._next_turn = 0.0
        self._dns: ThreadedResolver | None = None
        self._known = NameCache(most_names=_MOST_NAMES)
        self._lookups: dict[str, asyncio.Task[Answer]] = {}

    @property
    def is_limited(self) -> bool:
        """Whether a lookup may have to wait for its turn."""
        return self._interval_seconds > 0

    async def find(self, host: str) -> tuple[str, ...]:
        """The addresses of a host, one at least; raises OSError."""
        name = host.lower()
        answer = self._known.find(name) or await self._look_up(name)
        if answer.error is not None:
            raise OSError(answer.error)
        return answer.addresses

    async def prepare(self, url: str, guard: AddressGuard) -> None:
        """Looks up the host of a URL that is about to be requested; what fails is reported by the request."""
        import yarl  # noqa: PLC0415  # it comes with the HTTP client
        from aiohttp.helpers import is_ip_address  # noqa: PLC0415  # heavy

        with suppress(OSError, ValueError):
            host = yarl.URL(url, encoded=True).host
            if host and not is_ip_address(host) and not guard.addresses_for(host):
                await self.find(host)

    async def close(self) -> None:
        """Ends lookups that are under way."""
        for task in list(self._lookups.values()):
            task.cancel()
        if self._dns is not None:
            await self._dns.close()
        if self._shared is not None:
            await asyncio.to_thread(self._shared.close)

    async def _look_up(self, name: str) -> Answer:
        task = self._lookups.get(name)
        if task is None:
            task = self._lookups[name] = asyncio.ensure_future(self._ask(name))
            task.add_done_callback(functools.partial(self._forget_lookup, name))
        # If one request is cancelled, the others still need the answer.
        return await asyncio.shield(task)

    async def _ask(self, name: str) -> Answer:
        """Asks the other processes, then DNS."""
        found = await self._shared.find(name) if self._shared is not None else None
        if not isinstance(found, Answer):
            await self._wait_for_turn(found)
            began = clock.monotonic()
            answer = await self._ask_dns(name)
            said = answer.error or " ".join(answer.addresses)
            logger.debug("name look-up of %s: %s, %.0f ms", name, said, (clock.monotonic() - began) * 1000)
            if self._shared is not None:
                self._shared.tell(name, answer)
        else:
            answer = found
        self._known.store(name, answer)
        return answer

    async def _wait_for_turn(self, turn: Turn | None) -> None:
        if turn is not None:
            seconds = turn.wait_ms / 1000
        else:
            # Nobody else is asked: at least this process keeps the limit.
            now = clock.monotonic()
            self._next_turn = max(self._next_turn, now) + self._interval_seconds
            seconds = self._next_turn - self._interval_seconds - now
        if seconds > 0:
            await asyncio.sleep(seconds)

    async def _ask_dns(self, name: str) -> Answer:
        if self._dns is None:
            from aiohttp.resolver import ThreadedResolver  # noqa: PLC0415  # heavy

            # There is no event loop before the crawl begins.
            self._dns = ThreadedResolver()
        try:
            found = await self._dns.resolve(name, 0, socket.AF_UNSPEC)
        except OSError as error:
            kept_ms = _TRY_AGAIN_MS if error.errno == socket.EAI_AGAIN else FAILED_MS
            return Answer((), error.strerror or str(error) or "no address", kept_ms)
        addresses = tuple(dict.fromkeys(result["host"] for result in found))
        return Answer(addresses) if addresses else Answer((), "no address", FAILED_MS)

    def _forget_lookup(self, name: str, task: asyncio.Task[Answer]) -> None:
        del self._lookups[name]
        if not task.cancelled():
            # Read the error: otherwise asyncio logs one that nobody waits for.
            task.exception()
