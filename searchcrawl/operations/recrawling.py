"""Has known URLs visited again without validators: one, those that failed, or all (D9)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from searchcrawl import urls
from searchcrawl.codes import is_failure
from searchcrawl.exceptions import UnknownUrl
from searchcrawl.failpoints import reach
from searchcrawl.operations.source_lease import lease_source
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_rewriting
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import recrawl_table
from searchcrawl.store.urls.recrawl_table import Visited


def recrawl(
    project: Project, source: Source, database: Database, *, url: str | None = None, failed: bool = False
) -> dict[str, Any]:
    """Marks rows for the next run, and notes the reason: ``url``, those that ``failed``, or all.

    A call that is cut off may leave some of them marked, and no reason; the next one marks the rest. Returns
    ``{"source", "documents", "removed", "failed", "to_fetch"}``. Raises SourceBusy while the source is crawled, and
    UnknownUrl for a URL that no run would visit.
    """
    to_fetch = 0
    with lease_source(project, source, database) as run:
        if run is not None and url is not None:
            to_fetch = _mark_one(run, url)
        elif run is not None:
            to_fetch = _mark_many(run, _has_failed if failed else _is_any)
        elif url is not None:
            raise UnknownUrl(f"{source.name} does not know {url}")
        if run is not None and to_fetch:
            reason = "asked for: " + (url or ("failed URLs" if failed else "all URLs"))
            run.write(partial(recrawl_table.add_reason, source_id=run.source_id, reason=reason))
    return {"source": source.name, "documents": 0, "removed": 0, "failed": 0, "to_fetch": to_fetch}


def _mark_one(run: Run, url: str) -> int:
    key = urls.key(build_rewriting(run.project, run.source).normalise(url).url)
    row = run.read(partial(recrawl_table.find, source_id=run.source_id, key=key))
    if row is None:
        raise UnknownUrl(f"{run.source.name} does not know {url}")
    if not row.may_be_visited:
        raise UnknownUrl(f"{run.source.name} does not visit {url}: searchcrawl explain {url} says why")
    run.write(partial(recrawl_table.mark, url_ids=[row.id]))
    return 1


def _mark_many(run: Run, is_meant: Callable[[Visited], bool]) -> int:
    count, after = 0, 0
    while rows := run.read(partial(recrawl_table.load_after, source_id=run.source_id, after=after)):
        after = rows[-1].id
        marked = [row.id for row in rows if row.may_be_visited and is_meant(row)]
        count += len(marked)
        if marked:
            run.write(partial(recrawl_table.mark, url_ids=marked))
            reach("recrawl.marked")
    return count


def _has_failed(row: Visited) -> bool:
    return is_failure(row.code, row.rule)


def _is_any(row: Visited) -> bool:
    return True
