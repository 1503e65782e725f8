"""What tests of the commit have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A store with one source, ``demo``, which has the id 1."""
    with closing(Database("sqlite:///store.db", tmp_path)) as database:
        database.write(run_table.find_or_add_source, "demo")
        yield database
