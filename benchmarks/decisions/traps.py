"""Traps without an end, each beside 500 good pages: how much of them was visited and stays, and what it cost the good ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.decisions.crawl import CrawledSite, crawl_site
from benchmarks.decisions.site import TRAP
from tests.trap_kinds import KINDS
from tests.trap_site import LIST, Pages, TrapSite, token_of

#: Good pages beside each trap.
GOOD: Final = 500
#: A crawl ends after so many visits, whatever it takes for a trap.
LIMIT: Final = 5_000
_HOST: Final = "traps.acme.test"
_MOST_VISITED: Final = 1_000
_MOST_DOCUMENTS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TrapResult:
    """What became of a trap. ``good`` counts the good pages whose text is in the index, at whatever URL.

    ``good_before`` are those that had been fetched when the trap had got its first 500 requests. ``end`` is how the run ended,
    ``refused`` how many URLs were taken for a trap.
    """

    name: str
    own_text: bool
    good: int
    good_before: int
    visited: int
    documents: int
    refused: int
    end: str

    def find_passed(self) -> Iterator[str]:
        """The bounds that it passes."""
        if self.good < GOOD:
            yield f"{self.name}: {self.good} of {GOOD} good pages in the index"
        if self.own_text:
            if self.good_before < GOOD:
                yield f"{self.name}: {self.good_before} of {GOOD} good pages before the first {GOOD} of the trap"
            return
        if self.visited > _MOST_VISITED:
            yield f"{self.name}: {self.visited:,} pages of the trap visited, at most {_MOST_VISITED:,}"
        if self.documents > _MOST_DOCUMENTS:
            yield f"{self.name}: {self.documents:,} documents of the trap in the index, at most {_MOST_DOCUMENTS}"
        if self.end != "finished":
            yield f"{self.name}: it did not end by itself ({self.end})"

    def as_dict(self) -> dict[str, Any]:
        """For a file of JSON."""
        return asdict(self)


def measure_trap(name: str, folder: Path) -> TrapResult:
    """Crawls a trap anew."""
    with TrapSite(GOOD, module="tests.trap_kinds", arguments=[name]) as site:
        crawled = crawl_site(folder, host=_HOST, port=site.port, starts=[""], limit=LIMIT)
        requested = site.requested()
    good = set(Pages(GOOD).good_paths())
    trap = [target for target in requested if not _is_own(target, good)]
    documents = [row for row in crawled.read_documents() if not _is_own(_target(row["url"]), good)]
    status = json.loads((folder / "crawl.out").read_text(encoding="utf-8"))
    return TrapResult(
        name=name,
        own_text=KINDS[name].own_text,
        good=_count_good(crawled),
        good_before=_count_before(requested, good),
        visited=len(trap),
        documents=len(documents),
        refused=sum(1 for row in crawled.read_urls() if row["code"] == TRAP),
        end=status["run"]["end_reason"],
    )


def _count_good(crawled: CrawledSite) -> int:
    wanted = {token_of(number) for number in range(GOOD)}
    found = (word for row in crawled.read_documents() for word in row.get("content", "").split())
    return len(wanted.intersection(found))


def _count_before(requested: Sequence[str], good: set[str]) -> int:
    """The good pages that were asked for before the trap had got as many requests."""
    fetched: set[str] = set()
    of_trap = 0
    for target in requested:
        if target in good:
            fetched.add(target)
        elif not _is_own(target, good):
            of_trap += 1
            if of_trap >= GOOD:
                break
    return len(fetched)


def _is_own(target: str, good: set[str]) -> bool:
    """Whether a path with its query is a good page, a list of them or the start page."""
    return target in good or target == "/" or LIST.fullmatch(target) is not None


def _target(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
