from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from searchcrawl import urls as identity
from searchcrawl.store import host_table, listing_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import NewUrl
from tests.unit.store.support_store import NOW_MS, SOURCE, open_store


def add_things(database: Database, source_id: int, names: Sequence[str]) -> dict[int, int]:
    """Rows of things; their ids by key."""
    with database.write_once() as transaction:
        host_id = host_table.find_or_add(transaction, ["localhost"])["localhost"]
        found = {identity.key(f"file:///{name}"): f"file:///{name}" for name in names}
        rows = [NewUrl(key=key, url=url, host_id=host_id, depth=1) for key, url in found.items()]
        return dict(url_table.add(transaction, source_id, rows, NOW_MS))


@pytest.mark.parametrize("apart", [1, 2, 7])
def test_rows_of_things_when_those_of_another_source_lie_between_then_each_is_its_own(
    tmp_path: Path, apart: int
) -> None:
    with open_store(tmp_path) as database:
        other = database.write(run_table.find_or_add_source, "other")
        mine = dict[int, int]()
        for start in range(0, 600, 20):
            names = [f"{number}.txt" for number in range(start, start + 20)]
            mine |= add_things(database, SOURCE, names)
            # The same names, too: these keys are those of the other source.
            add_things(database, other, [*names, *(f"{more}-{name}" for more in range(apart) for name in names)])
        keys = [*mine, *(identity.key(f"file:///new{number}") for number in range(50))]

        found = database.read(listing_table.find_rows, SOURCE, keys)
        # Neither the first nor the last one is known, nor are they in order.
        turned = database.read(listing_table.find_rows, SOURCE, [keys[-1], *reversed(list(mine)), keys[-2]])
        none = database.read(listing_table.find_rows, SOURCE, keys[600:] * 3)

    assert {key: row.id for key, row in found.items() if key in keys} == mine
    assert {key: row.id for key, row in turned.items() if key in keys} == mine
    assert none == {}
