"""How much of a source the document cache holds."""

from __future__ import annotations

from typing import Any

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import url_queries


def cache_figures(project: Project, database: Database, name: str) -> dict[str, Any]:
    """``{"source", "records", "segments", "bytes"}``: documents with a record, and the files and their size.

    Superseded records count as bytes alone. Raises StoreError.
    """

    def count(transaction: Transaction) -> int:
        source_id = run_table.find_source(transaction, name)
        return 0 if source_id is None else url_queries.cached_records(transaction, source_id)

    records = database.read(count)
    sizes = [size for _, size in DocumentCache(project.cache_dir / name).segments()]
    return {"source": name, "records": records, "segments": len(sizes), "bytes": sum(sizes)}
