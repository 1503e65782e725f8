"""Compares what is listed with the table: what is new or differs is visited, and so is what is not there any more.

Absence is no evidence. Rows that a container read whole does not name any more are due; their visit is a second look, which
says whether they are gone (967). The writer thread calls it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from searchcrawl import clock, urls
from searchcrawl.admission.admit import FoundLinks
from searchcrawl.codes import Code
from searchcrawl.commit import document_rows
from searchcrawl.commit.decide import Group
from searchcrawl.counters import FAILED_LISTINGS
from searchcrawl.failpoints import reach
from searchcrawl.items import Link
from searchcrawl.listing.model import UNKNOWN, Entry, ListedPart, ListingEnd, to_version
from searchcrawl.rules.boundary import is_trap_limit
from searchcrawl.rules.listed import is_of_lister
from searchcrawl.run import Run
from searchcrawl.store import listing_table, sitemap_table
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.listing_table import Listed, ListedRow
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import link_table, url_table
from searchcrawl.store.urls.fetch_events import REFUSED_LATER
from searchcrawl.store.urls.url_table import Settled

#: The code of what was read.
_READ: Final = 200
#: The codes of containers that may not be read.
_DENIED: Final = frozenset({401, 403})
_UNDER_WAY: Final = frozenset({FetchState.FETCHING, FetchState.ALONE})


@dataclass(slots=True)
class _Compared:
    """What a part says that the table does not: new things by key, known rows by id, each with what it says."""

    container: _Open
    fresh: dict[int, Listed] = field(default_factory=dict)
    changed: dict[int, Listed] = field(default_factory=dict)
    #: known rows that the source file refuses by what the lister alone knows, each with the rule
    refused: dict[int, str] = field(default_factory=dict)
    #: those that are read again although they are as they were
    again: list[int] = field(default_factory=list)
    #: all of these rows that the container has, and those that another one has, or none
    here: list[int] = field(default_factory=list)
    elsewhere: list[ListedRow] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """A container that is being read: what it named so far."""

    container_id: int
    #: so many rows of its own, each once
    rows: int = 0
    children: set[int] = field(default_factory=set)
    #: containers in it that the source file refuses, each with the rule
    refused: dict[str, str] = field(default_factory=dict)


class ListedRows:
    """Writes the parts of containers of one run.

    ``compare`` and ``write`` are called within a transaction, which may be repeated, and ``note_commit`` after it. One bit is kept for
    each row that was listed in the run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._listed = bytearray()
        self._open: dict[str, _Open] = {}
        #: containers of which another one has taken rows since
        self._robbed = set[int]()
        self._compared: list[_Compared] = []
        self._staged: list[tuple[ListedPart, _Open]] = []
        self._ended: list[tuple[_Open, ListingEnd]] = []
        #: each run reads so large a part of all that is listed again; 0: none
        self._verify_runs: int = getattr(run.source.own, "verify_days", 0) if run.source.kind.is_listed else 0

    def compare(self, transaction: Transaction, parts: Sequence[ListedPart]) -> list[FoundLinks]:
        """What the parts name for the first time, to be admitted."""
        self._compared = []
        opened = self._find_containers(transaction, parts)
        self._staged = [(part, opened[part.url]) for part in parts]
        named = [(part, {urls.key(entry.url): entry for entry in part.entries}) for part in parts if part.entries]
        # Those of all parts at once: most containers have few things.
        known = listing_table.find_rows(transaction, self._run.source_id, [key for _, keys in named for key in keys])
        found = (self._compare(part, opened[part.url], entries, known) for part, entries in named)
        return [new for new in found if new is not None]

    def _find_containers(self, transaction: Transaction, parts: Sequence[ListedPart]) -> dict[str, _Open]:
        """The containers of parts, by URL; those in them are noted."""
        source_id = self._run.source_id
        named = {part.url for part in parts} - self._open.keys()
        rows = listing_table.find_containers(transaction, source_id, [*named, *(c for p in parts for c in p.children)])
        ids = {url: rows[url].id for url in named if url in rows}
        if unknown := named - ids.keys():
            ids |= sitemap_table.find_or_add(transaction, source_id, unknown)
        opened = {url: _Open(container_id) for url, container_id in ids.items()}
        opened |= {part.url: self._open[part.url] for part in parts if part.url in self._open}
        for part in parts:
            one = opened[part.url]
            known = [rows[url] for url in part.children if url in rows]
            fresh = [url for url in part.children if url not in rows]
            others = [row.id for row in known if row.parent_id != one.container_id]
            # One whose own parts came with these is there, without a parent.
            others += sitemap_table.add(transaction, source_id, fresh, parent_id=one.container_id) if fresh else []
            sitemap_table.give_to(transaction, others, one.container_id)
            back = [row.id for row in known if row.code == Code.NO_LONGER_LISTED]
            listing_table.note_back(transaction, back)
            one.children.update(others, (row.id for row in known))
        return opened

    def _compare(
        self, part: ListedPart, one: _Open, entries: Mapping[int, Entry], known: Mapping[int, ListedRow]
    ) -> FoundLinks | None:
        """Notes what a part says that the table does not; returns what is to be admitted, None for nothing."""
        compared, container_id = _Compared(one), one.container_id
        links, refusals = [], dict[str, str]()
        for key, (url, token, refusal, facts) in entries.items():
            row, version, of_facts = known.get(key), to_version(token), _hash_facts(facts)
            if refusal is not None and url.endswith("/"):
                one.refused[url] = refusal
            if row is not None:
                is_here = row.sitemap_id == container_id
                if is_here:
                    compared.here.append(row.id)
                else:
                    compared.elsewhere.append(row)
                is_same = is_here and row.version == version != UNKNOWN and row.facts == of_facts
                # What most rows of most runs are: read well, and as they were.
                if not (is_same and row.code == _READ and refusal is None):
                    self._compare_row(row, Listed(version, of_facts), refusal, compared)
                elif self._verify_runs:
                    self._verify(row, compared)
            elif self._run.source.finds_urls:
                compared.fresh[key] = Listed(version, of_facts)
                links.append(Link(url))
                if refusal is not None:
                    refusals[url] = refusal
        self._compared.append(compared)
        return FoundLinks(None, part.depth, links, is_normalised=True, refusals=refusals) if links else None

    def _compare_row(self, row: ListedRow, listed: Listed, refusal: str | None, compared: _Compared) -> None:
        if row.fetch_state in _UNDER_WAY:
            # It may be read as it was before: the next run sees the difference.
            return
        if refusal is not None and not _stays(row, refusal):
            if (row.code, row.rule) != (Code.OUTSIDE_BOUNDARY, refusal) or row.fetch_state != FetchState.SETTLED:
                compared.refused[row.id] = refusal
            return
        was_refused = row.code == Code.OUTSIDE_BOUNDARY and is_of_lister(row.rule)
        is_same = (row.version, row.facts) == listed and listed.version != UNKNOWN
        is_same = is_same and row.sitemap_id == compared.container.container_id
        # Its last reading found nothing: what is listed again may have the token of before.
        was_gone = row.code == Code.NO_LONGER_LISTED
        if not is_same or was_refused or was_gone:
            compared.changed[row.id] = listed
        else:
            self._verify(row, compared)

    def _verify(self, row: ListedRow, compared: _Compared) -> None:
        under_way = row.fetch_state in _UNDER_WAY
        if self._verify_runs and not under_way and (row.id + self._run.id) % self._verify_runs == 0:
            compared.again.append(row.id)

    def write(self, transaction: Transaction, find_row: Callable[[int], int | None]) -> Mapping[str, int]:
        """Writes what was compared, after what is new was admitted; returns what it adds to the counters."""
        counts: Mapping[str, int] = {}
        for compared in self._compared:
            added = {row: listed for key, listed in compared.fresh.items() if (row := find_row(key)) is not None}
            compared.here += added
            listing_table.set_listed(transaction, compared.container.container_id, {**added, **compared.changed})
            document_table.read_again(transaction, compared.again)
            url_table.reopen(transaction, [*compared.changed, *compared.again])
            if compared.refused:
                counts = _refuse(transaction, self._run, compared.refused)
                listing_table.drop_versions(transaction, list(compared.refused))
        return counts

    def note_commit(self) -> None:
        """Remembers what the last transaction wrote, and ends containers that were read. Raises StoreError, LeaseLost."""
        self._mark_all()
        for part, one in self._staged:
            self._open[part.url] = one
            if part.end is not None:
                self._ended.append((self._open.pop(part.url), part.end))
        self._staged, self._compared = [], []
        ended, self._ended = self._ended, []
        if not ended:
            return
        # Most containers have few things: a transaction for each would cost more than these.
        whole = [one.container_id for one, end in ended if end.whole and end.refusal is None]
        children = self._run.read(listing_table.group_children, whole)
        rows = self._run.read(listing_table.count_rows, whole)
        for one, end in ended:
            if end.refusal is not None:
                self._refuse_container(one.container_id, end.refusal)
            elif end.whole:
                self._leave(one, children.get(one.container_id, ()), rows.get(one.container_id, 0))
            elif end.code in _DENIED:
                self._ask_below(one.container_id)
        reach("listing.end")
        self._run.write_counted(self._write_ends, ended)

    def _write_ends(self, transaction: Transaction, ended: Sequence[tuple[_Open, ListingEnd]]) -> Mapping[str, int]:
        readings = {}
        for one, end in ended:
            code = Code.OUTSIDE_BOUNDARY if end.refusal is not None else end.code
            readings[one.container_id] = ListingEnd(code=int(code), error=end.refusal or end.error, mark=end.mark)
        listing_table.end(transaction, readings, run_id=self._run.id, now_ms=clock.now_ms())
        return {FAILED_LISTINGS: sum(end.is_failure for _, end in ended)}

    def _leave(self, one: _Open, children: Sequence[int], rows: int) -> None:
        """Has all looked for that a container does not name any more, in it and in the containers that have left it.

        ``rows`` is how many rows it has in the table: where it named so many of its own, it named all of them.
        """
        if one.rows != rows or one.container_id in self._robbed:
            self._look_for(one.container_id)
        run = self._run
        known = run.read(listing_table.find_containers, run.source_id, one.refused) if one.refused else {}
        for url, container in known.items():
            self._refuse_container(container.id, one.refused[url])
        refused = {container.id for container in known.values()}
        gone = [child for child in children if child not in one.children and child not in refused]
        levels = []
        while gone:
            levels.append(gone)
            for container_id in gone:
                self._look_for(container_id)
            gone = run.read(listing_table.find_children, gone)
        # From below: after a crash the next run finds what is left through what is above.
        for level in reversed(levels):
            run.write(listing_table.note_gone, level, run_id=run.id)

    def _ask_below(self, container_id: int) -> None:
        """Has all visited that is below a container which may not be read any more: who may see it is not known either.

        Not below a root: whoever may not read any of it has lost his own rights.
        """
        run = self._run
        below = [] if run.read(listing_table.is_root, container_id) else [container_id]
        while below:
            for each in below:
                for page in _read_rows(run, each):
                    run.write(url_table.reopen, page)
            below = run.read(listing_table.find_children, below)

    def _look_for(self, container_id: int) -> None:
        run = self._run
        for page in _read_rows(run, container_id):
            lost = [row for row in page if not self._is_marked(row)]
            if lost:
                run.write(_look_for, lost)
                reach("listing.mid")

    def _refuse_container(self, container_id: int, refusal: str) -> None:
        run, below = self._run, [container_id]
        while below:
            for each in below:
                for page in _read_rows(run, each):
                    run.write_counted(_refuse_page, run=run, refused=dict.fromkeys(page, refusal))
            below = run.read(listing_table.find_children, below)

    def _mark_all(self) -> None:
        for compared in self._compared:
            compared.container.rows += sum(map(self._mark, compared.here))
            for row in compared.elsewhere:
                self._mark(row.id)
                if row.sitemap_id is not None:
                    self._robbed.add(row.sitemap_id)

    def _mark(self, row_id: int) -> bool:
        """Marks a row as listed; whether it was not before."""
        place, bit = row_id >> 3, 1 << (row_id & 7)
        if place >= len(self._listed):
            self._listed.extend(bytes(max(place + 1 - len(self._listed), 1 << 12)))
        if self._listed[place] & bit:
            return False
        self._listed[place] |= bit
        return True

    def _is_marked(self, row_id: int) -> bool:
        place = row_id >> 3
        return place < len(self._listed) and bool(self._listed[place] & 1 << (row_id & 7))


@lru_cache(maxsize=1024)
def _hash_facts(facts: bytes) -> int | None:
    """The hash of a token of facts, which many things have."""
    return to_version(facts) or None


def _stays(row: ListedRow, refusal: str) -> bool:
    """Whether a rule is about what is new alone, and the row is not."""
    return is_trap_limit(refusal.partition(":")[0]) and row.code != Code.OUTSIDE_BOUNDARY


def _read_rows(run: Run, container_id: int) -> Iterable[Sequence[int]]:
    return run.read_pages(listing_table.find_of_container, key=lambda row: row, container_id=container_id)


def _look_for(transaction: Transaction, lost: Sequence[int]) -> None:
    listing_table.drop_versions(transaction, lost)
    url_table.reopen(transaction, lost)


def _add_members(transaction: Transaction, url_ids: Sequence[int]) -> list[int]:
    """Rows, and those of the files in them that are archives: no container lists these, the last visit named them."""
    found, fresh = dict.fromkeys(url_ids), list(url_ids)
    while fresh:
        members = {member for links in link_table.load(transaction, fresh).values() for member in links}
        fresh = [member for member in members if member not in found]
        found.update(dict.fromkeys(fresh))
    return list(found)


def _refuse_page(transaction: Transaction, *, run: Run, refused: Mapping[int, str]) -> Mapping[str, int]:
    listing_table.drop_versions(transaction, list(refused))
    return _refuse(transaction, run, refused)


def _refuse(transaction: Transaction, run: Run, refused: Mapping[int, str]) -> Mapping[str, int]:
    """Refuses known rows by rules that only their lister can ask; their documents leave, within the limits."""
    by_rule = defaultdict[str, list[int]](list)
    for row, rule in refused.items():
        by_rule[rule].append(row)
    refused = {row: rule for rule, rows in by_rule.items() for row in _add_members(transaction, rows)}
    group = Group(horizon_ms=run.row.horizon_ms, with_evidence=list(refused))
    code = int(Code.OUTSIDE_BOUNDARY)
    group.settled += [
        Settled(url_id=row, code=code, rule=rule, due_ms=None, fetched_ms=None) for row, rule in refused.items()
    ]
    document_rows.write_documents(transaction, run.source_id, group, {})
    url_table.settle(transaction, group.settled, REFUSED_LATER)
    return group.counts
