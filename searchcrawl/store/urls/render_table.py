"""What rendering brought for sets of URLs that are alike (rules.rendering): kept from run to run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import bindparam, delete, select

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.schema import render_patterns


class Gains(NamedTuple):
    """Pages of a set that were rendered without being known to need it, and how many of them had more text then."""

    rendered: int = 0
    gained: int = 0


def load(transaction: Transaction, source_id: int) -> dict[int, Gains]:
    """What is known of the sets of a source, by their keys."""
    columns = (render_patterns.c.key, render_patterns.c.rendered, render_patterns.c.gained)
    rows = transaction.execute(select(*columns).where(render_patterns.c.source_id == source_id))
    return {row.key: Gains(row.rendered, row.gained) for row in rows}


def find(transaction: Transaction, source_id: int, key: int) -> Gains | None:
    """What is known of one set; None if no page of it was rendered."""
    query = select(render_patterns.c.rendered, render_patterns.c.gained).where(
        render_patterns.c.source_id == bindparam("source"), render_patterns.c.key == bindparam("set_key")
    )
    row = transaction.execute(query, {"source": source_id, "set_key": key}).one_or_none()
    return None if row is None else Gains(row.rendered, row.gained)


def forget(transaction: Transaction, source_id: int) -> None:
    """Forgets what is known of all sets of a source: its pages are rendered in another way from now on."""
    transaction.execute(delete(render_patterns).where(render_patterns.c.source_id == source_id))


def store(transaction: Transaction, source_id: int, gains: Mapping[int, Gains]) -> None:
    """Writes what is known of some sets."""
    if gains:
        transaction.execute(
            dialect_of(transaction).upsert(
                render_patterns,
                ["source_id", "key"],
                lambda new: {"rendered": new.rendered, "gained": new.gained},
            ),
            [
                {"source_id": source_id, "key": key, "rendered": known.rendered, "gained": known.gained}
                for key, known in gains.items()
            ],
        )
