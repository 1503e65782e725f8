"""A crawl whose store goes away while it runs, against one that nobody disturbed (X-S4, X-S9)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from searchcrawl.selftest.final_state import differences, inconsistencies
from tests.crawl_forks import Forks, Running
from tests.final_state import last_counts, read_state, settled
from tests.kill_rounds import Kind

PATIENT: Final = ("-s", "SEARCHCRAWL_STORE_PATIENCE_SECONDS=90")
WAITING: Final = "fetching pauses, waiting up to"
BACK: Final = "the store answers again"
#: However busy the machine is, the crawl is not over before its store is gone.
_SLOW: Final = ("--set", "fetch.delay_seconds=0.05")
_COUNTS: Final = ("fetched", "fetch_failures", "new", "non_indexable", "duplicates")


def log(folder: Path) -> str:
    path = folder / "var" / "log" / "demo.log"
    return path.read_text("utf-8") if path.exists() else ""


def output(folder: Path) -> str:
    return (folder / "output.txt").read_text("utf-8")


def in_its_middle(forks: Forks, folder: Path, *options: str) -> Running:
    """A crawl that has visited some pages."""
    running = forks.start(folder, "crawl", "demo", *_SLOW, *options)
    running.until(lambda: len(settled(folder)) >= 20)
    return running


def quiet(running: Running, kind: Kind) -> int:
    """How many requests the site has got once none came for two seconds."""
    seen, since = -1, time.monotonic()

    def rests() -> bool:
        nonlocal seen, since
        now = len(kind.site.log())
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > 2

    running.until(rests)
    return seen


def as_undisturbed(kind: Kind, folder: Path) -> list[str]:
    """How the end differs from that of the undisturbed crawl."""
    state = read_state(folder, "demo")
    counts = last_counts(folder)
    wrong = [f"{name}: {counts[name]}" for name in _COUNTS if counts[name] != kind.counts[name]]
    return differences(kind.expected, state) + inconsistencies(state) + wrong
