"""Has a source visit URLs: known ones again without validators (D9), or one that is submitted (H9)."""

from __future__ import annotations

from contextlib import closing
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

from searchcrawl import urls
from searchcrawl.codes import REFUSED, Code, is_failure
from searchcrawl.exceptions import InvalidUrl, UnknownUrl
from searchcrawl.failpoints import reach
from searchcrawl.operations.source_lease import lease_source
from searchcrawl.rules.boundary import refusal_code
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_boundary, build_rewriting
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import recrawl_table, url_table


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
            to_fetch = _mark_many(run, failed=failed)
        elif url is not None:
            raise UnknownUrl(f"{source.name} does not know {url}")
        if run is not None and to_fetch:
            reason = "asked for: " + (url or ("failed URLs" if failed else "all URLs"))
            run.write(recrawl_table.add_reason, source_id=run.source_id, reason=reason)
    return {"source": source.name, "documents": 0, "removed": 0, "failed": 0, "to_fetch": to_fetch}


def _mark_one(run: Run, url: str) -> int:
    key = urls.key(build_rewriting(run.project, run.source).normalise(url).url)
    row = run.read(recrawl_table.find, source_id=run.source_id, key=key)
    if row is None:
        raise UnknownUrl(f"{run.source.name} does not know {url}")
    if not row.may_be_visited:
        raise UnknownUrl(f"{run.source.name} does not visit {url}: searchcrawl explain {url} says why")
    run.write(recrawl_table.mark, url_ids=[row.id])
    return 1


def _mark_many(run: Run, *, failed: bool) -> int:
    count = 0
    for rows in run.read_pages(recrawl_table.load_after, key=attrgetter("id"), source_id=run.source_id):
        marked = [row.id for row in rows if row.may_be_visited and (not failed or is_failure(row.code, row.rule))]
        count += len(marked)
        if marked:
            run.write(recrawl_table.mark, url_ids=marked)
            reach("recrawl.marked")
    return count


class Result(StrEnum):
    """What becomes of a URL that is submitted."""

    #: it is visited by the run that is under way, or the next one
    OK = "ok"
    #: the source knows it, or it was submitted already
    DUPLICATE = "duplicate"
    #: a rule refuses it
    OUT_OF_SCOPE = "out_of_scope"
    #: it is no URL that can be requested
    INVALID = "invalid"


class Submission(NamedTuple):
    """The result, the URL as the source has it, and the rule that refuses it."""

    result: Result
    url: str
    rule: str | None = None


def submit(project: Project, source: Source, database: Database, text: str) -> Submission:
    """Puts a URL into the queue of a source, whether it is being crawled or not; nothing is requested."""
    try:
        url = urls.resolve_typed(text, routes=source.scope.hash_routes)
    except InvalidUrl as error:
        return Submission(Result.INVALID, text, str(error))
    rewriting = build_rewriting(project, source)
    rewriting.open(source.name)
    with closing(rewriting):
        found = rewriting.normalise(url)
    decision = found.decision if found.code else build_boundary(source).decide(found.url, 1)
    if not decision.allowed or found.code:
        invalid = (found.code or refusal_code(decision)) == Code.MALFORMED_URL
        return Submission(Result.INVALID if invalid else Result.OUT_OF_SCOPE, found.url, decision.text)

    def add(transaction: Transaction) -> bool:
        source_id = run_table.find_or_add_source(transaction, source.name)
        known = url_table.find_known(transaction, source_id, [urls.key(found.url)])
        # One that a rule refused before is looked at again.
        if any(row.code not in REFUSED for row in known):
            return False
        # As it was given: the run rewrites it.
        return recrawl_table.add_submitted(transaction, source_id, url)

    added = database.write(add)
    reach("url.submitted")
    return Submission(Result.OK if added else Result.DUPLICATE, found.url)
