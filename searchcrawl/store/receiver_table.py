"""How far receivers besides the index have got with the change log of a source, and what they do not have (L14)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, exists, func, select, update

from searchcrawl import clock
from searchcrawl.store import log_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.log_table import NOT_NOW, START, LogPlace
from searchcrawl.store.many_rows import count_rows, find_among, upsert_rows, write_parts
from searchcrawl.store.run_schema import faulty, receivers
from searchcrawl.store.schema import documents, urls

#: A version has the number of an entry in so many bits, and the generation above them.
_SEQ_BITS: Final = 28
#: A generation is a moment, in tenths of a second since 2020: that of a row, or of a store, that was lost is lower.
_FIRST_MS: Final = 1_577_836_800_000
_UNIT_MS: Final = 100
#: The error of a document that could not be sent; its page is fetched again, and so it gets a new entry.
NO_RECORD: Final = "the cache has no record of it any more: it is fetched again"


class Sweep(IntEnum):
    """Whether what a receiver has besides is removed."""

    NO = 0
    #: it begins anew: within the limits on deleting
    WITHIN_LIMITS = 1
    #: somebody asked for it (``resend --receiver``)
    ASKED = 2


class Fault(NamedTuple):
    """Why a receiver does not have an entry: its number, the reason, and whether it has an earlier version."""

    seq: int
    error: str
    is_known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverRow:
    """How far a receiver has got with a source; the fields are columns of ``receivers``."""

    name: str
    place: LogPlace = START
    generation: int = 0
    sent: int = 0
    acknowledged: int = 0
    is_paused: bool = False
    sweeping: Sweep = Sweep.NO
    error: str | None = None
    error_ms: int | None = None
    number: int = 0
    file: str | None = None

    @property
    def lowest_version(self) -> int:
        """The version below which it has nothing since everything was sent again."""
        return self.generation << _SEQ_BITS

    def compute_version(self, seq: int) -> int:
        """The version of an entry as this receiver gets it."""
        return self.lowest_version + seq

    def find_generation_above(self, version: int) -> int:
        """A generation whose versions are all above one."""
        return max(self.generation + 1, (version >> _SEQ_BITS) + 1, _now())


#: Columns whose values are fields as they are.
_AS_STORED: Final = ("name", "generation", "sent", "acknowledged", "error", "error_ms", "number", "file")


def find(transaction: Transaction, source_id: int, name: str) -> ReceiverRow | None:
    """What is known of a receiver; None for one that has nothing yet."""
    return next((row for row in load(transaction, source_id) if row.name == name), None)


def require(transaction: Transaction, source_id: int, name: str) -> ReceiverRow:
    """What is known of a receiver; one that is new has nothing."""
    return find(transaction, source_id, name) or ReceiverRow(name=name)


def load(transaction: Transaction, source_id: int) -> list[ReceiverRow]:
    """All receivers that a source has or had, by their names."""
    query = select(receivers).where(receivers.c.source_id == source_id).order_by(receivers.c.name)
    return [
        ReceiverRow(
            place=LogPlace(row.seq, row.url_id),
            is_paused=bool(row.paused),
            sweeping=Sweep(row.sweeping),
            **{name: getattr(row, name) for name in _AS_STORED},
        )
        for row in transaction.execute(query)
    ]


def list_unheard(transaction: Transaction, source_id: int) -> list[str]:
    """The receivers for which something waits."""
    rows = load(transaction, source_id)
    return [row.name for row in rows if log_table.count_waiting(transaction, source_id, row.place)]


def keep(transaction: Transaction, source_id: int, names: Collection[str]) -> None:
    """Adds those of ``names`` that are new, at the beginning of the log, and forgets all others.

    One whose file waits for its name stays until it has it.
    """
    rows = load(transaction, source_id)
    known = {row.name for row in rows}
    for name in {row.name for row in rows if row.file is None} - set(names):
        for table, column in ((faulty, faulty.c.receiver), (receivers, receivers.c.name)):
            transaction.execute(delete(table).where(table.c.source_id == source_id, column == name))
    for name in set(names) - known:
        _add(transaction, source_id, name)


def pause(transaction: Transaction, source_id: int, name: str, *, paused: bool) -> bool:
    """Has a receiver get nothing, or lets it go on; whether that is new."""
    row = find(transaction, source_id, name)
    _add(transaction, source_id, name)
    transaction.execute(_update(source_id, name).values(paused=int(paused)))
    return paused != (row is not None and row.is_paused)


def move(
    transaction: Transaction,
    source_id: int,
    name: str,
    *,
    place: LogPlace,
    acknowledged: int,
    refused: Mapping[int, Fault],
    taken: Sequence[int],
) -> None:
    """Notes that a receiver has all entries up to a place, but for ``refused``, by row. ``taken`` are rows that it has."""
    transaction.execute(
        _update(source_id, name).values(
            seq=place.seq, url_id=place.url_id, acknowledged=acknowledged, error=None, error_ms=None
        )
    )
    note_later(transaction, source_id, name, taken)
    _add_faults(transaction, source_id, name, refused)
    log_table.drop_tombstones(transaction, source_id)


def note_file(
    transaction: Transaction,
    source_id: int,
    name: str,
    *,
    file: str | None,
    number: int,
    place: LogPlace,
    faults: Mapping[int, Fault],
    later: Sequence[int] = (),
) -> None:
    """Notes that the content of a file is on the disk: from now on it counts, with all entries up to a place but for ``faults``.

    ``later`` are rows that it has besides.
    """
    transaction.execute(_update(source_id, name).values(seq=place.seq, url_id=place.url_id, file=file, number=number))
    newer = exists().where(documents.c.url_id == faulty.c.url_id, documents.c.seq > faulty.c.seq)
    transaction.execute(delete(faulty).where(_is_of(source_id, name), newer))
    note_later(transaction, source_id, name, later)
    _add_faults(transaction, source_id, name, faults)
    log_table.drop_tombstones(transaction, source_id)


def find_unknown(transaction: Transaction, source_id: int, name: str, url_ids: Sequence[int]) -> set[int]:
    """Those of the rows of whose documents a receiver never had any version."""
    return {*find_among(transaction, faulty.c.url_id, url_ids, _is_of(source_id, name), faulty.c.known == 0)}


def note_sending(transaction: Transaction, source_id: int, name: str, version: int) -> None:
    """Notes that a version is about to be handed over."""
    statement = _update(source_id, name).where(receivers.c.sent < version)
    transaction.execute(statement.values(sent=version))


def begin_anew(transaction: Transaction, source_id: int, name: str, *, above: int, sweeping: Sweep) -> None:
    """Has everything sent again to a receiver, with versions above one; ``sweeping`` is what becomes of what it has besides."""
    row = require(transaction, source_id, name)
    _add(transaction, source_id, name)
    values = {"seq": 0, "url_id": 0, "sent": 0, "acknowledged": 0, "sweeping": max(int(sweeping), int(row.sweeping))}
    transaction.execute(_update(source_id, name).values(**values, generation=row.find_generation_above(above)))
    transaction.execute(delete(faulty).where(_is_of(source_id, name)))


def set_error(transaction: Transaction, source_id: int, name: str, error: str, now_ms: int) -> None:
    """Notes why a receiver gets nothing; the moment is that of the first time."""
    since = func.coalesce(receivers.c.error_ms, now_ms)
    transaction.execute(_update(source_id, name).values(error=error, error_ms=since))


def note(transaction: Transaction, /, source_id: int, name: str, **values: object) -> None:
    """Writes columns: a file has its name (``file``), nothing is left to be removed (``sweeping``), it answers (``error``)."""
    transaction.execute(_update(source_id, name).values(values))


def count_faulty(transaction: Transaction, source_id: int, name: str, *, lost: bool) -> int:
    """How many documents a receiver refused, or with ``lost`` did not get because the cache had lost them."""
    wanted = faulty.c.error == NO_RECORD if lost else faulty.c.error.not_in([NO_RECORD, NOT_NOW])
    return count_rows(transaction, faulty, _is_of(source_id, name), wanted)


def find_faulty(transaction: Transaction, source_id: int, name: str, *, limit: int) -> list[tuple[str, str]]:
    """Some of both: the URL and the reason of each, by rising row."""
    query = select(urls.c.url, faulty.c.error).join(urls, urls.c.id == faulty.c.url_id)
    query = query.where(_is_of(source_id, name), faulty.c.error != NOT_NOW)
    return [(row.url, row.error) for row in transaction.execute(query.order_by(faulty.c.url_id).limit(limit))]


def note_later(transaction: Transaction, source_id: int, name: str, taken: Sequence[int]) -> None:
    """Notes that a receiver has documents now that it passed before."""
    write_parts(transaction, delete(faulty).where(_is_of(source_id, name)), faulty.c.url_id, taken)


def _add_faults(transaction: Transaction, source_id: int, name: str, faults: Mapping[int, Fault]) -> None:
    of_receiver = {"source_id": source_id, "receiver": name}
    rows = [
        {**of_receiver, "url_id": url_id, "seq": fault.seq, "error": fault.error, "known": int(fault.is_known)}
        for url_id, fault in faults.items()
    ]
    upsert_rows(transaction, faulty, ("source_id", "receiver", "url_id"), rows, ("seq", "error", "known"))


def _add(transaction: Transaction, source_id: int, name: str) -> None:
    """Adds a receiver; one that is there stays as it is."""
    row = {"source_id": source_id, "name": name, "generation": _now()}
    upsert_rows(transaction, receivers, ("source_id", "name"), [row])


def _now() -> int:
    return (clock.now_ms() - _FIRST_MS) // _UNIT_MS


def _update(source_id: int, name: str) -> Any:
    return update(receivers).where(receivers.c.source_id == source_id, receivers.c.name == name)


def _is_of(source_id: int, name: str) -> ColumnElement[bool]:
    return and_(faulty.c.source_id == source_id, faulty.c.receiver == name)
