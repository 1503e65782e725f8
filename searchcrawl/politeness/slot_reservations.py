"""The data of hosts that all processes share, in the host table: slots, failures, blocks (C2, X-R10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from searchcrawl import clock
from searchcrawl.politeness.host_registry import HostRegistry, SlotRequest
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.host_table import HostPause, HostReport, SlotReservation

#: Seconds between two reads of the blocks of other processes.
_READ_SECONDS: Final = 1.0
#: Slots of so many hosts are remembered, to be given back where they were not used.
_MAX_SLOTS: Final = 100_000
#: Of more blocks that are in force only those of the hosts in use are read.
_MOST_BLOCKS: Final = 1000


class SlotReservations:
    """Carries slots, reports and blocks between the registry and the host table.

    ``wake`` is called when ``update`` has something to do. ``update`` is for the claiming thread only. The scheduler
    has the blocks read before the first request of the run: side requests respect them, too.
    """

    def __init__(self, database: Database, hosts: HostRegistry, *, wake: Callable[[], None]) -> None:
        self._database = database
        self._hosts = hosts
        self._since_ms = clock.now_ms()
        self._read_at = 0.0
        self._reserved: dict[str, SlotReservation] = {}
        hosts.share(wake)

    def update(self) -> bool:
        """Reserves slots, writes reports and reads blocks; returns whether more claims may go now."""
        reserved = self.write()
        unknown = self._hosts.take_unknown()
        if unknown:
            self._hosts.set_blocks(self._read_some(unknown), unknown)
        blocked = clock.monotonic() - self._read_at >= _READ_SECONDS and self.read_blocks()
        return reserved or bool(unknown) or blocked

    def write(self) -> bool:
        """Reserves slots and writes reports; returns whether there were slots to reserve. For a dry run, too."""
        requests, reports = self._hosts.take_slot_requests(), self._hosts.take_reports()
        if requests or reports:
            ids = self._find_ids([*(request.name for request in requests), *reports])
            reserved, offset = self._database.write(
                lambda transaction: self._apply(transaction, ids, requests, reports)
            )
            for name, slot in reserved.items():
                self._reserved[name] = slot
                self._hosts.grant(name, slot.start_ms / 1000 + offset)
        return bool(requests)

    def _find_ids(self, names: list[str]) -> Mapping[str, int]:
        """The ids of hosts. They are asked for each time: a host that was not used for days may have got another one."""
        if len(self._reserved) > _MAX_SLOTS:
            self._reserved.clear()
        ids = self._database.read(lambda transaction: host_table.find_in_use(transaction, names))
        missing = [name for name in names if name not in ids]
        if missing:
            ids |= self._database.write(lambda transaction: host_table.find_or_add(transaction, missing))
        return ids

    def _apply(
        self,
        transaction: Transaction,
        ids: Mapping[str, int],
        requests: list[SlotRequest],
        reports: dict[str, HostReport],
    ) -> tuple[dict[str, SlotReservation], float]:
        """The new slots, and the difference of monotonic seconds from theirs: the clock may be set before they are used."""
        now_ms = clock.now_ms()
        offset = clock.monotonic() - now_ms / 1000
        reserved: dict[str, SlotReservation] = {}
        by_name = {request.name: request for request in requests}
        # By rising id, so that no two processes wait for each other.
        for name in sorted({*by_name, *reports}, key=ids.__getitem__):
            host_id = ids[name]
            if name in reports:
                host_table.add_report(transaction, host_id, reports[name], since_ms=self._since_ms, now_ms=now_ms)
            request = by_name.get(name)
            if request is not None:
                reserved[name] = host_table.reserve_slot(
                    transaction,
                    host_id,
                    now_ms=now_ms,
                    delay_ms=round(request.delay_seconds * 1000),
                    not_before_ms=round((request.not_before - offset) * 1000),
                    unused=self._reserved.get(name) if request.missed else None,
                )
        return reserved, offset

    def read_blocks(self) -> bool:
        """Reads which hosts are blocked by any process; returns whether there is one.

        The cost does not rise with their number.
        """
        self._read_at = clock.monotonic()
        blocks = self._database.read(
            lambda transaction: host_table.find_blocks(transaction, clock.now_ms(), most=_MOST_BLOCKS + 1)
        )
        if len(blocks) <= _MOST_BLOCKS:
            self._hosts.set_blocks(blocks)
        else:
            used = self._hosts.list_used()
            self._hosts.set_blocks(self._read_some(used), used, only=True)
        return bool(blocks)

    def _read_some(self, names: list[str]) -> list[HostPause]:
        return self._database.read(
            lambda transaction: host_table.find_blocks(transaction, clock.now_ms(), names=names) if names else []
        )
