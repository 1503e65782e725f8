"""The documents of a source, one after the other."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from searchcrawl.api.values import StoredDocument
from searchcrawl.cache.opening import open_cache
from searchcrawl.delivery.documents import read_indexed
from searchcrawl.delivery.export import show
from searchcrawl.operations.dry_run import build_dry_run
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store.documents import export_table
from searchcrawl.store.engine.database import Database

logger = logging.getLogger(__name__)


def read_documents(project: Project, source: Source, database: Database) -> Iterator[StoredDocument]:
    """All that the index has of a source, by rising id of the URL; raises CacheError, StoreError."""
    run = build_dry_run(project, source, database)
    lost = run.read(lambda transaction: export_table.count_unreadable(transaction, run.source_id))
    for part in read_indexed(run, open_cache(project, source.name)):
        for _, document in part.documents:
            fields = dict(show(document))
            yield StoredDocument(
                id=document.id,
                url=fields["url"],
                title=fields.get("title") or "",
                content=fields.get("content") or "",
                fields=fields,
            )
        lost += len(part.lost)
    if lost:
        logger.warning("%s: documents of which the cache does not have what the index has: %d", source.name, lost)
