"""The store of the tests of admission."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table


@pytest.fixture
def database(tmp_path: Path, store_url: str) -> Iterator[Database]:
    """A store with a source, the first one."""
    database = Database(store_url, tmp_path)
    database.write(run_table.find_or_add_source, "demo")
    yield database
    database.close()
