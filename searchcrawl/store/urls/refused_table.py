"""How many links were refused that have no row, by rule and host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sqlalchemy import bindparam, delete, insert, select, update

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import write_rows
from searchcrawl.store.schema import refused_links
from searchcrawl.store.statements import split

#: A source keeps so many pairs of rule and host, those with the most links; all others are one entry.
MOST_PAIRS: Final = 200
#: A name in DNS is shorter.
_MAX_HOST_CHARACTERS: Final = 300
#: Rule and host of the entry of all others.
_OTHERS: Final = (None, None)


class RefusedPair(NamedTuple):
    """Links that a rule refused on a host; without both: those of all pairs that have no entry of their own."""

    rule: str | None
    host: str | None
    links: int


def load(transaction: Transaction, source_id: int) -> list[RefusedPair]:
    """What was counted for a source: the pair with the most links first, all others last."""
    found = [RefusedPair(*pair, links) for pair, (_, links) in _load(transaction, source_id).items()]
    return sorted(found, key=lambda row: (row.rule is None, -row.links, row.rule, row.host))


def add(transaction: Transaction, source_id: int, counts: Mapping[tuple[str, str], int]) -> None:
    """Adds to the numbers of links, by rule and host."""
    if not counts:
        return
    known = _load(transaction, source_id)
    sums = {pair: links for pair, (_, links) in known.items() if pair != _OTHERS}
    for (rule, host), links in counts.items():
        pair = (rule, host[:_MAX_HOST_CHARACTERS])
        sums[pair] = sums.get(pair, 0) + links
    ordered = sorted(sums, key=lambda pair: (-sums[pair], pair))
    wanted: dict[tuple[str | None, str | None], int] = {pair: sums[pair] for pair in ordered[:MOST_PAIRS]}
    rest = sum(sums[pair] for pair in ordered[MOST_PAIRS:]) + known.get(_OTHERS, (0, 0))[1]
    if rest:
        wanted[_OTHERS] = rest
    _write(transaction, source_id, known, wanted)


def clear(transaction: Transaction, source_id: int) -> None:
    """Begins to count anew."""
    transaction.execute(delete(refused_links).where(refused_links.c.source_id == source_id))


def _load(transaction: Transaction, source_id: int) -> dict[tuple[str | None, str | None], tuple[int, int]]:
    """Id and number of links by rule and host."""
    query = select(refused_links).where(refused_links.c.source_id == source_id)
    return {(row.rule, row.host): (row.id, row.links) for row in transaction.execute(query)}


_UPDATE: Final = (
    update(refused_links).where(refused_links.c.id == bindparam("row_id")).values(links=bindparam("new_links"))
)
_INSERT: Final = insert(refused_links)


def _write(
    transaction: Transaction,
    source_id: int,
    known: Mapping[tuple[str | None, str | None], tuple[int, int]],
    wanted: Mapping[tuple[str | None, str | None], int],
) -> None:
    for part in split([row_id for pair, (row_id, _) in known.items() if pair not in wanted]):
        transaction.execute(delete(refused_links).where(refused_links.c.id.in_(part)))
    changed = [
        {"row_id": known[pair][0], "new_links": links}
        for pair, links in wanted.items()
        if pair in known and known[pair][1] != links
    ]
    write_rows(transaction, _UPDATE, changed)
    fresh = [
        {"source_id": source_id, "rule": pair[0], "host": pair[1], "links": links}
        for pair, links in wanted.items()
        if pair not in known
    ]
    write_rows(transaction, _INSERT, fresh)
