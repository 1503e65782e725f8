"""A site, a store and an index without a network between them, and what the index should hold."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import text

from searchcrawl import clock, urls
from searchcrawl.commit import document_rows
from searchcrawl.commit.decide import decide
from searchcrawl.items import Claim, Document, Outcome, Place
from searchcrawl.rules.copy_order import UNKNOWN_FIT, rank
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.store import batch_table, host_table, removal_table
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.documents import duplicate_key_table as keys
from searchcrawl.store.engine.database import Database
from searchcrawl.store.removal_table import Before
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import NewUrl
from tests.factories import document, outcome

SITE: Final = "http://a.test/"
SOURCE: Final = Source.model_validate(
    {"name": "demo", "path": "sources/demo.toml", "start": {"urls": [SITE]}, "scope": {"include_hosts": ["a.test"]}}
)
RUN_MS: Final = 1_000_000


@dataclass(frozen=True)
class Page:
    """A page of the site, by names; ``status`` 404 and 503 bring none, ``markup`` is no part of its text.

    ``menu`` is a part of the whole text alone, and not of what is indexed of it.
    """

    body: str
    canonical: str | None = None
    display: str | None = None
    status: int = 200
    markup: str = ""
    menu: str = ""


def fit_of(name: str, body: str) -> int:
    """How the URL of a page fits its text: anyhow, but always the same."""
    return zlib.crc32(f"{name} {body}".encode()) % 12


@dataclass
class World:
    """A site, a store, and an index, without a network between them."""

    database: Database
    chance: random.Random
    source_id: int = 1
    preserve: bool = True
    site: dict[str, Page] = field(default_factory=dict)
    #: what the last good visit of each page saw
    seen: dict[str, Page] = field(default_factory=dict)
    #: what the index holds: the duplicates that each document names
    index: dict[str, list[str]] = field(default_factory=dict)
    sent: int = 0
    visits: int = 0
    segment: int = 0
    now_ms: int = RUN_MS
    forced: bool = False
    #: removals at the end of a run wait for ``approve``
    holds: bool = False
    batch_before: int = 0
    #: documents with the same text are copies of each other
    copies: bool = True
    #: whether it is noted how URLs fit, which earlier releases did not
    fits: bool = False
    #: called at the end of each run, before the last documents are sent
    at_end: Callable[[], object] | None = None

    def add(self, names: str) -> None:
        with self.database.write_once() as transaction:
            host = host_table.find_or_add(transaction, ["a.test:80"])["a.test:80"]
            rows = [NewUrl(key=urls.key(SITE + name), url=SITE + name, host_id=host, depth=1) for name in names]
            url_table.add(transaction, self.source_id, rows, self.now_ms)

    def crawl(self, *, group: int = 3) -> None:
        """One run: visits all, in any order and in groups, delivering in between and at the end."""
        self.now_ms += RUN_MS
        self.sent = self.visits = 0
        with self.database.read_once() as transaction:
            self.batch_before = transaction.execute(text("SELECT coalesce(max(id), 0) FROM batches")).scalar_one()
        while claims := self._claims():
            self.chance.shuffle(claims)
            while claims:
                size = self.chance.randint(1, group)
                self.visit(claims[:size])
                claims = claims[size:]
                if self.chance.random() < 0.3:
                    self.deliver()
            self.deliver()
        if self.at_end is not None:
            self.at_end()
            self.deliver()
        self._remove()

    def visit(self, claims: list[Claim]) -> None:
        """Commits the visits of a group."""
        items = [self._visited(claim) for claim in claims]
        self.visits += len(items)
        self.segment += 1
        decided = decide(items, SOURCE, horizon_ms=self.now_ms)
        places = {
            one.claim.url_id: Place(segment=self.segment, offset=0, response_bytes=1, fields_bytes=1)
            for one in decided.stored
            if one.code == 200
        }
        with self.database.write_once() as transaction:
            canonicals = keys.has_canonicals(transaction, self.source_id) or any(
                (*(one.canonical for one in decided.stored), *decided.canonicals.values())
            )
            document_rows.write_documents(transaction, self.source_id, decided, places, canonicals=canonicals)
            url_table.settle(transaction, decided.settled)

    def deliver(self) -> None:
        """Sends what is cached, and takes surplus copies out; a part of the receipts may come late."""
        batch = self.database.write(batch_table.seal_documents, self.source_id, 1, self.now_ms)
        if batch is not None:
            self._send(batch)
        with self.database.write_once() as transaction:
            surplus = removal_table.find_new_copies(transaction, self.source_id, before=Before(self.batch_before, 0))
            if surplus:
                removal_table.seal(
                    transaction, self.source_id, 1, self.now_ms, [one.url_id for one in surplus], counted=True
                )
        self._acknowledge_removals()
        if not self.preserve:
            with self.database.write_once() as transaction:
                for number in set(range(1, self.segment + 1)) - batch_table.find_segments_in_use(
                    transaction, self.source_id
                ):
                    batch_table.forget_segment(transaction, self.source_id, number)

    def _send(self, batch: SealedBatch) -> None:
        with self.database.read_once() as transaction:
            rows = batch_table.find_without_receipt(transaction, batch.number, after=0, limit=1000)
            duplicates = keys.find_duplicates(transaction, [row.url_id for row in rows])
        assert all(row.segment is not None for row in rows), "a document without a record was sent"
        for row in rows:
            self.index[row.url.removeprefix(SITE)] = [
                copy.url.removeprefix(SITE) for copy in duplicates.get(row.url_id, ())
            ]
        self.sent += len(rows)
        self.database.write(batch_table.note_accepted, batch, [row.url_id for row in rows])

    def approve(self) -> bool:
        """Carries out the removals that wait; whether there were any."""
        with self.database.write_once() as transaction:
            held = [row.url_id for row in removal_table.list_waiting(transaction, self.source_id, after=0)]
            removal_table.seal(transaction, self.source_id, 1, self.now_ms, held, counted=False)
        self._acknowledge_removals()
        return bool(held)

    def _remove(self) -> None:
        with self.database.write_once() as transaction:
            rows = removal_table.find_candidates(transaction, self.source_id, before=Before(self.batch_before, 0))
            leaving = [one.url_id for one in rows]
            if self.holds:
                removal_table.quarantine(transaction, leaving, 1)
            elif leaving:
                removal_table.seal(transaction, self.source_id, 1, self.now_ms, leaving, counted=True)
        self._acknowledge_removals()

    def _acknowledge_removals(self) -> None:
        with self.database.write_once() as transaction:
            for batch in removal_table.find_under_way(transaction, self.source_id):
                rows = removal_table.find_without_receipt(transaction, self.source_id, batch.number)
                for row in rows:
                    del self.index[row.url.removeprefix(SITE)]
                removal_table.note_removed(transaction, [row.url_id for row in rows])

    def _claims(self) -> list[Claim]:
        return self.database.write(
            url_table.claim,
            self.source_id,
            1,
            limit=100,
            now_ms=self.now_ms,
            horizon_ms=self.now_ms,
            forced=self.forced,
        )

    def _visited(self, claim: Claim) -> Document | Outcome:
        name = claim.url.removeprefix(SITE)
        page = self.site.get(name, Page("", status=404))
        if page.status != 200:
            if page.status == 404:
                self.seen.pop(name, None)
            return outcome(page.status, claim=claim)
        self.seen[name] = page
        named = None if page.canonical in (None, name) else f"{SITE}{page.canonical}"
        made = document(
            f"{page.body}{page.markup}{page.menu} canonical {page.canonical}",
            text=page.body,
            claim=claim,
            canonical=named,
            fetched_at=clock.from_ms(self.now_ms),
            display_url=None if page.display is None else SITE + page.display,
        )
        made = replace(made, fields_digest=sha256(f"{page.body}{page.menu}".encode()).digest())
        made = replace(made, url_fit=fit_of(name, page.body) if self.fits else None)
        made = made if self.copies else replace(made, copy_digest=None)
        if made.body_digest != claim.body_digest:
            return made
        if claim.etag is not None or self.chance.random() < 0.5:
            return outcome(304, claim=claim)
        return replace(made, page=None, fields_digest=claim.fields_digest or b"")

    def expected(self) -> dict[str, list[str]]:
        """What an index of the pages last seen holds, by the rules of ``dedup.standing``."""
        shown = {
            name: page
            for name, page in self.seen.items()
            if page.display is None
            or name == min((n for n, p in self.seen.items() if p.display == page.display), key=self.order)
        }

        def target(name: str) -> str | None:
            named = shown[name].canonical
            return named if named != name and named in shown else None

        def root(name: str) -> str:
            passed = [name]
            while (named := target(passed[-1])) is not None and named not in passed:
                passed.append(named)
            return passed[-1] if named is None else named

        found: dict[str, list[str]] = {}
        for name in sorted(shown):
            end = root(name)
            same = [
                other
                for other, page in shown.items()
                if other == end or (self.copies and root(other) == other and page.body == shown[end].body)
            ]
            survivor = min(same, key=self.order)
            found.setdefault(survivor, [])
            if survivor != name:
                found[survivor].append(name)
        return found

    def order(self, name: str) -> tuple[int, tuple[bool, int, int, str]]:
        """The place of a page among its copies."""
        return fit_of(name, self.seen[name].body) if self.fits else UNKNOWN_FIT, rank(SITE + name)


class StoreOfRun:
    """The store as a run gives it to what decides between visits."""

    def __init__(self, database: Database, source_id: int) -> None:
        self.database = database
        self.source_id = source_id

    def read(self, work: Callable[..., Any], *args: Any, **names: Any) -> Any:
        return self.database.read(work, *args, **names)

    def write(self, work: Callable[..., Any], *args: Any, **names: Any) -> Any:
        return self.database.write(work, *args, **names)

    read_pages: Any = Run.read_pages


def some_page(chance: random.Random, names: str, *, displays: bool, failures: bool) -> Page:
    return Page(
        body=chance.choice("123"),
        canonical=chance.choice(names) if chance.random() < 0.5 else None,
        display=chance.choice("xyz") if displays and chance.random() < 0.7 else None,
        status=chance.choices([200, 404, 503], [8, 2, int(failures)])[0],
        markup=chance.choice(["", "", "<br>"]),
    )
