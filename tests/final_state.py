"""What the crawl of a project came to, in a form that can be compared: see ``searchcrawl.selftest.final_state``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from searchcrawl.selftest import final_state
from searchcrawl.selftest.final_state import FinalState, Select
from searchcrawl.sources.loading import load_project
from tests.stored_rows import query, query_columns


def read_state(folder: Path, source: str) -> FinalState:
    """The state of a project with one source."""
    return final_state.read_state(load_project(folder), source, _select(folder))


def fetching(folder: Path) -> set[str]:
    """URLs of rows that a process has in hand, or had when it died."""
    return final_state.fetching(_select(folder))


def settled(folder: Path) -> set[str]:
    """URLs of rows whose visit is over."""
    return {row[0] for row in query(folder, "SELECT url FROM urls WHERE fetch_state = 2")}


def ended_runs(folder: Path) -> int:
    """How many runs have ended, by the store."""
    return final_state.ended_runs(_select(folder))


def last_counts(folder: Path) -> dict[str, int]:
    """The counts of the latest run."""
    return final_state.last_counts(_select(folder))


def find_wrong_counters(folder: Path) -> list[str]:
    """What is wrong with the counters of the last run: whether they add up, and are those of its URL table (J1)."""
    return final_state.find_wrong_counters(_select(folder))


def _select(folder: Path) -> Select:
    return partial(query_columns, folder)
