"""Whether the counters of the last run of a project add up, and are those of its URL table (J1)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from searchcrawl.selftest import final_state
from tests.stored_rows import query_columns


def find_wrong_counters(folder: Path) -> list[str]:
    """What is wrong with them, after ``kill -9`` as well."""
    return final_state.find_wrong_counters(partial(query_columns, folder))
