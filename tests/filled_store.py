"""A project with a real store and a local index, filled by hand: what crawls leave behind, without a site."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import select

from searchcrawl import clock, urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.cache.segment import StoredPage
from searchcrawl.comparison.differences import KINDS, Treatment, verify
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import Batch
from searchcrawl.items import IndexedDocument, Place
from searchcrawl.queries.status import describe_status
from searchcrawl.queries.urls import list_urls
from searchcrawl.run import Run, begin
from searchcrawl.sources.loading import load_project, load_source
from searchcrawl.store import batch_table, host_table, removal_table
from searchcrawl.store.documents import document_table, segment_table
from searchcrawl.store.documents.document_table import DocumentUpdate
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.run_schema import batches, leases
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.schema import PLACE, documents
from searchcrawl.store.states import BatchState, DocumentState, FetchState
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import NewUrl, Settled
from tests.site.client import write_project
from tests.unit.store.support_store import claim_again

PORT = 8000
SITE = f"http://www.acme.test:{PORT}"


class FilledStore:
    """A run of the source ``name`` that is going on; ``end`` ends it. URLs are given as paths of ``SITE``."""

    def __init__(self, root: Path, store_url: str, name: str = "demo", **tables: Any) -> None:
        settings = {"store": {"url": store_url}, "index": {"type": "local"}}
        self.project = load_project(write_project(root, PORT, name, project=settings, **tables))
        self.source = load_source(self.project, name)
        self.database = Database(self.project.database_url, self.project.root)
        self.index = LocalReceiver(self.project.index_dir)
        self.run: Run = begin(self.project, self.source, self.database)
        self.ids: dict[str, int] = {}
        #: whether a delivery is visible in the index once it is sent
        self.commits = False

    def admit(self, *paths: str, code: int = 0, rule: str | None = None, referrer: str | None = None) -> None:
        """Adds rows; a code settles them without a request."""

        def add(transaction: Transaction) -> dict[int, int]:
            host = urls.host_and_port(SITE)
            host_id = host_table.find_or_add(transaction, [host])[host]
            rows = [
                NewUrl(
                    key=urls.key(SITE + path),
                    url=SITE + path,
                    host_id=host_id,
                    depth=1,
                    referrer_id=None if referrer is None else self.ids[referrer],
                    code=code,
                    rule=rule,
                )
                for path in paths
            ]
            return url_table.add(transaction, self.run.source_id, rows, clock.now_ms())

        found = self.run.write(add)
        self.ids |= {path: found[urls.key(SITE + path)] for path in paths}

    def settle(self, path: str, code: int, *, state: FetchState = FetchState.SETTLED, **given: Any) -> None:
        """Ends a visit."""
        values = {"due_ms": 1, **given}
        visit = Settled(url_id=self.ids[path], fetch_state=state, code=code, fetched_ms=clock.now_ms(), **values)

        def end(transaction: Transaction) -> None:
            claim_again(transaction, [visit.url_id])
            url_table.settle(transaction, [visit])

        self.run.write(end)

    def fetch(self, *paths: str, code: int = 200) -> None:
        """Adds rows that were fetched with a document: cached with 200, else not to be indexed."""
        self.admit(*(path for path in paths if path not in self.ids))
        for path in paths:
            self.settle(path, code)
        with self.database.write_once() as transaction:
            document_table.store(transaction, self.run.source_id, [self._stored(path, code) for path in paths])

    def find_lease(self) -> Lease:
        """The lease as whoever has it now."""
        with self.database.read_once() as transaction:
            query = select(leases.c.fence).where(leases.c.source_id == self.run.source_id)
            return Lease(self.run.source_id, transaction.execute(query).scalar_one())

    def send(self) -> int:
        """Delivers what is cached and notes the receipts; the version of the delivery."""
        with self.database.write_once() as transaction:
            batch = batch_table.seal_documents(transaction, self.run.source_id, self.run.id, clock.now_ms())
            assert batch is not None
            sent = batch_table.find_without_receipt(transaction, batch.number, after=0, limit=100_000)
            self.put([self.document(row.url, checksum=row.fields_digest.hex()) for row in sent], batch.crawl_version)
            batch_table.note_accepted(transaction, batch, [row.url_id for row in sent])
        if self.commits:
            self.commit()
        return batch.crawl_version

    def commit(self) -> None:
        """All that was sent is visible in the index."""
        with self.database.write_once() as transaction:
            transaction.execute(batches.update().values(state=int(BatchState.COMMITTED)))

    def put(self, documents: Sequence[IndexedDocument], crawl_version: int, *, source: str | None = None) -> None:
        """Puts documents into the index behind the table's back."""
        name = source or self.source.name
        self.index.deliver(Batch(number=1, source=name, crawl_version=crawl_version, documents=documents))

    def document(self, url: str, *, checksum: str, source: str | None = None) -> IndexedDocument:
        """A document as the index receives it."""
        return IndexedDocument(
            id=urls.document_id(source or self.source.name, url),
            fields={"url": url, "title": f"Page {url}", "content": "some words", "checksum": checksum},
        )

    def hold_back(self, *paths: str, code: int = 404) -> None:
        """Settles documents with evidence against them, and lets their removal wait."""
        for path in paths:
            self.settle(path, code)
        with self.database.write_once() as transaction:
            ids = [self.ids[path] for path in paths]
            document_table.mark_evidence(transaction, ids, str(code))
            removal_table.quarantine(transaction, ids, self.run.id)

    def end(self, reason: str = "finished", exit_code: int = 0) -> None:
        """Ends the run and gives the lease back."""
        self.run.end(reason, exit_code)

    def close(self) -> None:
        self.index.close()
        self.database.close()

    def indexed_urls(self) -> list[str]:
        """What the index holds, sorted."""
        return sorted(entry.url.removeprefix(SITE) for entry in self.index.scan(None))

    def find_place(self, path: str) -> Place | None:
        """Where the record of a document lies, by the store."""
        with self.database.read_once() as transaction:
            row = transaction.execute(documents.select().where(documents.c.url_id == self.ids[path])).one()
        return Place.read(getattr(row, name) for name in PLACE)

    def rows(self, **wanted: Any) -> list[dict[str, Any]]:
        """What ``urls`` shows."""
        return list(list_urls(self.database, self.source, **wanted))

    def status(self) -> dict[str, Any]:
        """What ``status`` says."""
        return describe_status(self.project, self.source, self.database)

    def verify(
        self,
        index: Any = None,
        *,
        sources: Sequence[str] = ("demo",),
        only: str | None = None,
        treat: Treatment | None = None,
    ) -> dict[str, Any]:
        """What ``verify --json`` prints, as an object."""
        with verify(self.database, index or self.index, sources, only=only, treat=treat) as found:
            lists = {kind: list(found.describe(kind)) for kind in KINDS}
            return {"ok": found.ok, **lists, "repaired": found.repaired}

    def _stored(self, path: str, code: int) -> DocumentUpdate:
        digest = hashlib.sha256(path.encode()).digest()
        return DocumentUpdate(
            url_id=self.ids[path],
            state=DocumentState.CACHED if code == 200 else DocumentState.NONE,
            code=code,
            segment=1 if code == 200 else None,
            record_offset=0,
            response_bytes=10,
            fields_bytes=10,
            body_digest=digest,
            fields_digest=digest,
            copy_digest=digest,
            mimetype="text/html",
            content_length=100,
            etag=None,
            last_modified="Mon, 01 Jan 2024 00:00:00 GMT",
            last_changed_ms=1,
        )


class CachedStore(FilledStore):
    """The same, whose documents have their records in the cache."""

    def __init__(self, root: Path, store_url: str, name: str = "demo") -> None:
        super().__init__(root, store_url, name)
        self.cache = DocumentCache(SegmentFolder(self.project.cache_dir / name), self.project.cache_dir)
        self._writer = self.cache.open_writer(1, 0)
        #: where the record of each path lies
        self.places: dict[str, Place] = {}
        #: bodies of pages, where they are not the paths
        self.bodies: dict[str, bytes] = {}

    def begin_segment(self) -> int:
        """Has further records written to the next segment; its number."""
        self._writer.close()
        with self.database.write_once() as transaction:
            number = segment_table.begin(transaction, self.run.source_id)
        self._writer = self.cache.open_writer(number, 0)
        return number

    def limit_cache(self, max_bytes: int) -> None:
        """Sets ``cache.max_gb``."""
        cache = self.project.cache.model_copy(update={"max_gb": max_bytes / 1024**3})
        self.project = self.run.project = self.project.model_copy(update={"cache": cache})

    def damage(self, *paths: str) -> None:
        """Turns a byte over in the fields of each page's record."""
        segment = self.project.cache_dir / self.run.source.name / "00000001.warc.gz"
        with segment.open("r+b") as file:
            for path in paths:
                place = self.places[path]
                file.seek(place.offset + place.response_bytes + 20)
                byte = file.read(1)[0]
                file.seek(-1, 1)
                file.write(bytes([byte ^ 0xFF]))

    def close(self) -> None:
        self._writer.close()
        self.cache.close()
        super().close()

    def _stored(self, path: str, code: int) -> DocumentUpdate:
        stored = super()._stored(path, code)
        if code != 200:
            return stored
        page = StoredPage(
            url=SITE + path,
            status=200,
            headers=(),
            body=self.bodies.get(path, path.encode()),
            fetched_at=clock.now(),
            fields={"title": f"Page {path}", "content": "some words"},
        )
        place = self.places[path] = self._writer.append(page)
        self._writer.sync()
        return replace(
            stored,
            segment=place.segment,
            record_offset=place.offset,
            response_bytes=place.response_bytes,
            fields_bytes=place.fields_bytes,
        )
