"""A store of each kind, with one source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchcrawl.store.engine.database import Database
from tests.unit.store.support_store import open_store


@pytest.fixture
def database(tmp_path: Path, store_url: str) -> Iterator[Database]:
    with open_store(tmp_path, store_url) as database:
        yield database
