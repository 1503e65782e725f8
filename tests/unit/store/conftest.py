"""A store of each kind, with one source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from tests.unit.store.support_store import SOURCE


@pytest.fixture
def database(tmp_path: Path, store_url: str) -> Iterator[Database]:
    database = Database(store_url, tmp_path)
    with database.write_once() as transaction:
        assert run_table.find_or_add_source(transaction, "demo") == SOURCE
    yield database
    database.close()
