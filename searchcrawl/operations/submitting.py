"""Submits one URL to a source: the run that is under way, or the next one, visits it, if the source may (H9)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from searchcrawl import urls
from searchcrawl.codes import REFUSED, Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.failpoints import reach
from searchcrawl.rules.boundary import refusal_code
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_boundary, build_rewriting
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import submitted_table, url_table


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


class Submitted(NamedTuple):
    """The result, the URL as the source has it, and the rule that refuses it."""

    result: Result
    url: str
    rule: str | None = None


def submit(project: Project, source: Source, database: Database, text: str) -> Submitted:
    """Puts a URL into the queue of a source, whether it is being crawled or not; nothing is requested."""
    try:
        url = urls.resolve_typed(text, routes=source.scope.hash_routes)
    except InvalidUrl as error:
        return Submitted(Result.INVALID, text, str(error))
    rewriting = build_rewriting(project, source)
    rewriting.open(source.name)
    try:
        found = rewriting.normalise(url)
    finally:
        rewriting.close()
    decision = found.decision if found.code else build_boundary(source).decide(found.url, 1)
    if not decision.allowed or found.code:
        invalid = (found.code or refusal_code(decision)) == Code.MALFORMED_URL
        return Submitted(Result.INVALID if invalid else Result.OUT_OF_SCOPE, found.url, decision.text)

    def add(transaction: Transaction) -> bool:
        source_id = run_table.find_or_add_source(transaction, source.name)
        known = url_table.find_known(transaction, source_id, [urls.key(found.url)])
        # One that a rule refused before is looked at again.
        if any(row.code not in REFUSED for row in known):
            return False
        # As it was given: the run rewrites it.
        return submitted_table.add(transaction, source_id, url)

    added = database.write(add)
    reach("url.submitted")
    return Submitted(Result.OK if added else Result.DUPLICATE, found.url)
