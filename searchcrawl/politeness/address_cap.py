"""The cap on requests to one IP address, whatever the number of hosts that it has (``fetch.address_concurrency``, C3)."""

from __future__ import annotations

from collections.abc import Callable


class AddressCap:
    """Lets at most ``most`` requests (0: any number) be under way to one address at once; HostRegistry locks it.

    ``find_address`` names the address of a host (``host:port``), empty where there is no limit for it. Hosts whose claims have to
    wait are kept in the order in which they came; while they do, nothing else waits for them. Side requests ask again by themselves,
    and where both wait they alternate.
    """

    def __init__(self, most: int, find_address: Callable[[str], str]) -> None:
        self._most = most
        self._find_address = find_address
        self._under_way: dict[str, int] = {}
        #: by host with requests under way: the address that they went to, and how many they are
        self._held: dict[str, tuple[str, int]] = {}
        #: by address: hosts whose claims wait, those whose side requests do
        self._claims: dict[str, dict[str, None]] = {}
        self._sides: dict[str, dict[str, None]] = {}
        #: by host, the address for which its side requests wait
        self._side_of: dict[str, str] = {}
        #: by address, the host that ``next_waiting`` named last
        self._called: dict[str, str] = {}
        #: addresses to which a side request was sent after the last claim
        self._side_was_last: set[str] = set()
        #: addresses for which claims wait, and that may have room
        self._open: dict[str, None] = {}

    def acquire(self, host: str) -> bool:
        """Begins the request of a claim; where it may not go ``next_waiting`` names its host later."""
        if not self._most:
            return True
        address = self._address_of(host)
        side_is_next = address in self._sides and address not in self._side_was_last
        is_behind = address in self._claims and self._called.get(address) != host
        if not self._has_room(address) or side_is_next or is_behind:
            self._claims.setdefault(address, {})[host] = None
            self._note_open(address)
            return False
        self._called.pop(address, None)
        self._side_was_last.discard(address)
        self._drop(self._claims, address, host)
        self._begin(host, address)
        return True

    def acquire_side(self, host: str) -> bool:
        """Begins a side request; one that may not go is asked for again, or withdrawn."""
        if not self._most:
            return True
        address = self._address_of(host)
        if not self._has_room(address):
            self._sides.setdefault(address, {})[host] = None
            self._side_of[host] = address
            return False
        self._drop(self._sides, self._side_of.pop(host, address), host)
        self._side_was_last.add(address)
        self._begin(host, address)
        self._note_open(address)
        return True

    def withdraw_side(self, host: str) -> None:
        """Notes that no side request to a host waits for its address now."""
        address = self._side_of.pop(host, None)
        if address is not None:
            self._drop(self._sides, address, host)
            self._note_open(address)

    def release(self, host: str) -> None:
        """Notes the end of a request that was begun."""
        held = self._held.pop(host, None)
        if held is None:
            return
        address, count = held
        if count > 1:
            self._held[host] = address, count - 1
        self._under_way[address] -= 1
        if not self._under_way[address]:
            del self._under_way[address]
            self._side_was_last.discard(address)
            self._called.pop(address, None)
        self._note_open(address)

    def next_waiting(self) -> str | None:
        """Takes out a host whose claim waited, and may go now as far as its address is concerned; None if there is none."""
        while self._open:
            address = next(iter(self._open))
            waiting = self._claims.get(address)
            side_is_next = address in self._sides and address not in self._side_was_last
            if waiting and self._has_room(address) and not side_is_next:
                host = next(iter(waiting))
                self._drop(self._claims, address, host)
                self._called[address] = host
                return host
            del self._open[address]
        return None

    def _address_of(self, host: str) -> str:
        # Those under way count where they went.
        held = self._held.get(host)
        return self._find_address(host) if held is None else held[0]

    def _has_room(self, address: str) -> bool:
        return not address or self._under_way.get(address, 0) < self._most

    def _begin(self, host: str, address: str) -> None:
        if address:
            self._under_way[address] = self._under_way.get(address, 0) + 1
            self._held[host] = address, self._held.get(host, (address, 0))[1] + 1

    def _note_open(self, address: str) -> None:
        if address in self._claims:
            self._open[address] = None

    @staticmethod
    def _drop(waiting: dict[str, dict[str, None]], address: str, host: str) -> None:
        hosts = waiting.get(address)
        if hosts is not None:
            hosts.pop(host, None)
            if not hosts:
                del waiting[address]
