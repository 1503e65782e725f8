"""Lets a host wait for DNS in the window: a request that waits for it would keep others from being sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.name_lookups import NameLookups, choose_first, is_address
from searchcrawl.politeness.host_names import HostNames
from searchcrawl.politeness.host_registry import HostRegistry

#: Those whose next request never comes stay: their host was blocked, say.
_MOST_PASSED: Final = 20_000


class NameGate(HostNames):
    """Connects ``hosts`` with ``lookups``; ``changed`` is called when requests may go that waited for DNS.

    Names that ``guard`` has addresses of are not looked up.
    """

    def __init__(
        self, lookups: NameLookups, guard: AddressGuard, hosts: HostRegistry, *, changed: Callable[[], None]
    ) -> None:
        self._lookups = lookups
        self._guard = guard
        self._hosts = hosts
        self._changed = changed
        #: by name, the hosts that wait for it: each of its ports is one
        self._waiting: dict[str, set[str]] = {}
        #: hosts that have waited: their next request goes, even if the answer is old by then
        self._passed: set[str] = set()
        lookups.on_answer = self._note_answer

    def look_ahead(self, hosts: Iterable[str]) -> None:
        self._lookups.look_ahead([name for name in map(self._find_name, hosts) if name is not None])

    def is_known(self, host: str) -> bool:
        name = self._find_name(host)
        if name is None or self._lookups.is_known(name):
            self._passed.discard(host)
            return True
        if host in self._passed:
            self._passed.remove(host)
            return True
        self._waiting.setdefault(name, set()).add(host)
        return False

    def find_address(self, host: str) -> str:
        name = host.rpartition(":")[0]
        if is_address(name):
            return name.strip("[]")
        return choose_first(name, self._guard.addresses_for(name) or self._lookups.peek(name), self._guard)

    def _find_name(self, host: str) -> str | None:
        """The name that DNS is asked for; None where it is an address, or the source file names one."""
        name = host.rpartition(":")[0]
        return None if is_address(name) or self._guard.addresses_for(name) else name

    def _note_answer(self, name: str) -> None:
        hosts = self._waiting.pop(name, None)
        if hosts:
            if len(self._passed) > _MOST_PASSED:
                self._passed.clear()
            self._passed |= hosts
            self._hosts.note_names(hosts)
            self._changed()
