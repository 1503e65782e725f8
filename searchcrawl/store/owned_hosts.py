"""What people are told of the processes that ask hosts: who has one, who is next, and how many a run has (``host_owners``)."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import and_, func, select, text

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.host_owners import HANDED, is_living
from searchcrawl.store.host_table import cut_name, find_pause_end
from searchcrawl.store.run_schema import leases
from searchcrawl.store.runs import holder
from searchcrawl.store.schema import host_owners, hosts, sources

#: As in its index: a planner does not see the values of parameters.
_IS_OWNED: Final = text("owner_id != 0")


class Asking(NamedTuple):
    """A living process that asks hosts, for people; its source is None for a command that crawls none."""

    process: str
    source: str | None

    def describe(self) -> str:
        """Both."""
        return self.process if self.source is None else f"{self.process} (source {self.source})"


class HostTurn(NamedTuple):
    """Who asks a host now, and who is next; None where nobody waits for it."""

    now: Asking
    following: Asking | None


class HostCounts(NamedTuple):
    """Hosts of a run: those that it alone may ask now; those that it asks next, once another process hands them over; those
    of the first that asked for a pause which is not over.
    """

    in_hand: int
    waiting: int
    pausing: int


def find_turn(transaction: Transaction, name: str) -> HostTurn | None:
    """Who asks ``host:port``; None where no living process does."""
    row = transaction.execute(select(hosts).where(hosts.c.name == cut_name(name))).one_or_none()
    now = None if row is None else _find_asking(transaction, row.owner_id)
    if row is None or now is None:
        return None
    return HostTurn(now, None if row.wanted_id in {0, HANDED} else _find_asking(transaction, row.wanted_id))


def _find_asking(transaction: Transaction, owner_id: int) -> Asking | None:
    row = transaction.execute(select(host_owners).where(host_owners.c.id == owner_id)).one_or_none()
    if row is None or not is_living(transaction, row):
        return None
    of_source = and_(leases.c.source_id == sources.c.id, leases.c.renewed_ms.is_not(None))
    query = select(sources.c.name).join(leases, of_source).where(leases.c.holder == row.holder)
    return Asking(holder.describe(row.holder), transaction.execute(query).scalars().first())


def count_hosts(transaction: Transaction, source_id: int, now_ms: int) -> HostCounts:
    """The hosts of the run of a source that is going on."""
    of_source = select(leases.c.holder).where(leases.c.source_id == source_id, leases.c.renewed_ms.is_not(None))
    found = transaction.execute(select(host_owners).where(host_owners.c.holder == of_source.scalar_subquery()))
    numbers = [row.id for row in found if is_living(transaction, row)]
    owned = hosts.c.owner_id.in_(numbers), _IS_OWNED
    in_hand = transaction.execute(select(func.count()).select_from(hosts).where(*owned)).scalar_one()
    pauses = transaction.execute(select(hosts).where(*owned, hosts.c.closed_until_ms > now_ms)).all()
    query = select(func.count()).select_from(hosts).where(hosts.c.wanted_id.in_(numbers), _IS_OWNED)
    waiting = transaction.execute(query).scalar_one()
    return HostCounts(in_hand, waiting, sum(find_pause_end(row, now_ms) > now_ms for row in pauses))
