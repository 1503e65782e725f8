"""What DNS said of host names, for all processes of a store: each name is looked up by one of them (C12).

A process claims a name before it asks DNS. Others wait for its answer, but no longer than a lookup takes: one that dies
blocks nobody. All moments are those of the clock that the processes share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from sqlalchemy import bindparam, delete, or_, select, update

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.many_rows import upsert_rows
from searchcrawl.store.schema import name_answers, name_turns
from searchcrawl.store.statements import split
from searchcrawl.terminal import to_one_line

#: The longest use of an answer. Its own time to live is unknown: the resolver of the system does not tell it.
KEPT_MS: Final = 60_000
#: The same of an answer that there is no address.
FAILED_MS: Final = 5_000
#: So long others wait for the answer of a lookup.
CLAIMED_MS: Final = 5_000
#: No row holds for longer: its moment is that of a clock that was ahead.
_MOST_MS: Final = 600_000
_NAME: Final = re.compile(r"[a-z0-9._-]{1,253}")
_MOST_ADDRESSES: Final = 64
_MOST_ERROR: Final = 200
_ONLY: Final = 1
_CLAIM: Final = (
    update(name_answers)
    .where(name_answers.c.name == bindparam("claimed"))
    .values(addresses=None, error=None, until_ms=bindparam("until"))
)


class DnsAnswer(NamedTuple):
    """The addresses of a name as DNS named them, or why there are none; ``kept_ms`` is how long that holds yet."""

    addresses: tuple[str, ...]
    error: str | None = None
    kept_ms: int = KEPT_MS


class Turn(NamedTuple):
    """This process is to look a name up, once ``wait_ms`` have passed."""

    wait_ms: int


def is_shared(name: str) -> bool:
    """Whether a name is one that can be stored; others are looked up by each process."""
    return _NAME.fullmatch(name) is not None


def find(transaction: Transaction, names: Sequence[str], *, locks: bool = False) -> dict[str, DnsAnswer | None]:
    """What is known of names: an answer that holds, or None where somebody is looking it up. Others are left out."""
    found: dict[str, DnsAnswer | None] = {}
    for part in split(sorted(names)):
        query = select(name_answers).where(name_answers.c.name.in_(part)).order_by(name_answers.c.name)
        rows = transaction.execute(query.with_for_update() if locks else query).all()
        # Not before the rows: they may have been waited for.
        now_ms = dialect_of(transaction).read_clock_ms(transaction)
        for row in rows:
            if now_ms < row.until_ms <= now_ms + _MOST_MS:
                found[row.name] = read_row(row.addresses, row.error, row.until_ms - now_ms)
    return found


def read_row(addresses: str | None, error: str | None, kept_ms: int) -> DnsAnswer | None:
    """A row, checked as if a stranger had written it; whether an address may be reached is decided for each connection."""
    if error is not None:
        return DnsAnswer((), to_one_line(error[:_MOST_ERROR]), min(kept_ms, FAILED_MS))
    if addresses is None:
        return None
    listed = tuple(each for each in addresses.split(" ", _MOST_ADDRESSES)[:_MOST_ADDRESSES] if _is_address(each))
    return DnsAnswer(listed, None if listed else "no address", min(kept_ms, KEPT_MS))


def _is_address(text: str) -> bool:
    try:
        ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def claim(transaction: Transaction, names: Sequence[str], *, interval_ms: int) -> dict[str, DnsAnswer | Turn | None]:
    """As ``find``, and names of which nothing is known are for this process to look up, ``interval_ms`` apart."""
    wanted = sorted(names)
    statement = dialect_of(transaction).upsert(name_answers, ["name"])
    transaction.execute(statement, [{"name": name} for name in wanted])
    # Locked by rising name: no two processes wait for each other.
    known = find(transaction, wanted, locks=True)
    mine = [name for name in wanted if name not in known]
    now_ms = dialect_of(transaction).read_clock_ms(transaction)
    waits = _take_turns(transaction, len(mine), interval_ms, now_ms)
    turns = {name: Turn(wait_ms) for name, wait_ms in zip(mine, waits, strict=True)}
    if turns:
        rows = [{"claimed": name, "until": now_ms + turn.wait_ms + CLAIMED_MS} for name, turn in turns.items()]
        transaction.execute(_CLAIM, rows)
    return {**known, **turns}


def _take_turns(transaction: Transaction, count: int, interval_ms: int, now_ms: int) -> list[int]:
    """How long to wait before each of so many lookups."""
    if not interval_ms or not count:
        return [0] * count
    transaction.execute(dialect_of(transaction).upsert(name_turns, ["id"]), {"id": _ONLY})
    row = transaction.execute(select(name_turns).where(name_turns.c.id == _ONLY).with_for_update()).one()
    # No further from now than it was when it was noted, by a clock that was ahead perhaps.
    first_ms = max(row.next_ms - max(row.noted_ms - now_ms, 0), now_ms)
    values = {"next_ms": first_ms + count * interval_ms, "noted_ms": now_ms}
    transaction.execute(update(name_turns).where(name_turns.c.id == _ONLY).values(values))
    return [first_ms + number * interval_ms - now_ms for number in range(count)]


def tell(transaction: Transaction, answers: Mapping[str, DnsAnswer]) -> None:
    """Stores what DNS said."""
    now_ms = dialect_of(transaction).read_clock_ms(transaction)
    rows = [
        {
            "name": name,
            "addresses": " ".join(answer.addresses[:_MOST_ADDRESSES]),
            "error": None if answer.error is None else to_one_line(answer.error[:_MOST_ERROR]),
            "until_ms": now_ms + min(answer.kept_ms, KEPT_MS if answer.error is None else FAILED_MS),
        }
        for name, answer in sorted(answers.items())
    ]
    upsert_rows(transaction, name_answers, ("name",), rows, ("addresses", "error", "until_ms"))


def drop_old(transaction: Transaction) -> None:
    """Drops rows that hold no more, but for those that another process has locked: it uses them."""
    now_ms = dialect_of(transaction).read_clock_ms(transaction)
    over = or_(name_answers.c.until_ms <= now_ms, name_answers.c.until_ms > now_ms + _MOST_MS)
    rows = select(name_answers.c.name).where(over).order_by(name_answers.c.name).limit(10_000)
    names = list(transaction.execute(rows.with_for_update(skip_locked=True)).scalars())
    for part in split(names):
        transaction.execute(delete(name_answers).where(name_answers.c.name.in_(part)))
