"""What rendering brought for sets of URLs, from run to run (C10)."""

from __future__ import annotations

from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import pattern_table
from searchcrawl.store.urls.pattern_table import Gains

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1


def test_c10_gains_when_written_again_then_the_last_ones_of_each_source_are_read(database: Database) -> None:
    with database.write_once() as transaction:
        one, other = (run_table.find_or_add_source(transaction, name) for name in ("one", "other"))
        pattern_table.store_gains(transaction, one, {LOWEST: Gains(1, 0), 5: Gains(2, 2)})
        pattern_table.store_gains(transaction, other, {5: Gains(9, 9)})
        pattern_table.store_gains(transaction, one, {5: Gains(3, 2), HIGHEST: Gains(1, 1)})
        pattern_table.store_gains(transaction, one, {})

    with database.read_once() as transaction:
        loaded = pattern_table.load_gains(transaction, one)
        found = [pattern_table.find_gains(transaction, one, key) for key in (LOWEST, 5, 6)]
    with database.write_once() as transaction:
        pattern_table.forget_gains(transaction, one)
        left = [pattern_table.load_gains(transaction, source) for source in (one, other)]
    assert left == [{}, {5: Gains(9, 9)}]
    assert loaded == {LOWEST: Gains(1, 0), 5: Gains(3, 2), HIGHEST: Gains(1, 1)}
    assert found == [Gains(1, 0), Gains(3, 2), None]
