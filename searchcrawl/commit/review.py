"""Applies edited rules to all known URLs: it refuses some, and reopens those that are allowed again (B6).

It sends no request and reserves no slot, because an edited boundary may exclude a million URLs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from searchcrawl.admission.admit import Admission, FoundLinks
from searchcrawl.codes import REFUSED, Code
from searchcrawl.commit import document_rows
from searchcrawl.commit.group import Group
from searchcrawl.rules import lifecycle
from searchcrawl.rules.boundary import is_trap_limit, refusal_code
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.rewriting import NormalisedUrl
from searchcrawl.run import Run
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import review_table, url_table
from searchcrawl.store.urls.review_table import Reviewed
from searchcrawl.store.urls.url_table import Settled

logger = logging.getLogger(__name__)

STRIP_KEY: Final = "scope.strip_parameters"


@dataclass(slots=True)
class _Reviews:
    """What edited rules decide about a part of the rows."""

    refused: list[tuple[Reviewed, int, str, str | None]] = field(default_factory=list)
    #: refused before, and allowed by these rules; limits on URLs and traps may still refuse them
    allowed: list[Reviewed] = field(default_factory=list)
    #: the new URLs of rows whose URL changes
    moved: list[FoundLinks] = field(default_factory=list)

    @property
    def any(self) -> bool:
        return bool(self.refused or self.allowed or self.moved)


def review(run: Run, admission: Admission) -> None:
    """Reviews all rows of a source; if it is interrupted, the next start of the run begins it again.

    To be called before anything is claimed or admitted. A row that was refused because of its first link is reopened by
    a later link that is allowed. Raises StoreError, LeaseLost.
    """
    after = left = 0
    while rows := run.read(partial(review_table.load_rows_after, source_id=run.source_id, after=after)):
        after = rows[-1].id
        # Before the transaction: a plugin may be slow.
        reviews = _Reviews()
        for row in rows:
            _review_row(row, run, reviews)
        if reviews.any:
            left += len(reviews.refused)
            run.write_counted(partial(_write, run=run, admission=admission, reviews=reviews))
            admission.note_commit()
    if left:
        logger.info("rules were edited: %d known URLs are outside now", left)


def _review_row(row: Reviewed, run: Run, reviews: _Reviews) -> None:
    normalised = run.rewriting.normalise(row.found_as or row.url, row.referrer)
    if normalised.code:
        _refuse(row, normalised.code, normalised.decision, normalised.error, reviews)
    elif normalised.url != row.url:
        _refuse(
            row, Code.OUTSIDE_BOUNDARY, _explain_move(row, normalised, run), f"its URL is {normalised.url} now", reviews
        )
        reviews.moved.append(
            FoundLinks(None, row.depth, [normalised.link], is_normalised=True, referrer_id=row.referrer_id)
        )
    else:
        # Limits on traps are for new URLs: a page whose document is known goes on being visited.
        decide = run.boundary.decide_known if row.is_known else run.boundary.decide
        decision = decide(row.url, row.depth)
        if not decision.allowed:
            _refuse(row, refusal_code(decision), decision, None, reviews)
        elif row.code in REFUSED:
            reviews.allowed.append(row)


def _refuse(row: Reviewed, code: int, decision: Decision, error: str | None, reviews: _Reviews) -> None:
    rule = decision.text
    if (row.code, row.rule) != (code, rule):
        reviews.refused.append((row, int(code), rule, error))


def _explain_move(row: Reviewed, normalised: NormalisedUrl, run: Run) -> Decision:
    file = run.source.file
    stripped = run.rewriting.identity.find_name(row.url)
    if stripped and normalised.found_as is None:
        return Decision(False, stripped, file, STRIP_KEY)
    return Decision(False, "rewritten otherwise", file, "rewrite")


def _write(transaction: Transaction, *, run: Run, admission: Admission, reviews: _Reviews) -> Mapping[str, int]:
    # The transaction may be a repeated one: what the first try counted is forgotten.
    admission.note_rollback()
    group = Group(horizon_ms=run.row.horizon_ms)
    again: dict[int, tuple[int, str]] = {}
    for row, code, rule, error in reviews.refused:
        if row.code in REFUSED:
            again[row.id] = (code, rule)
            continue
        group.settled.append(Settled(url_id=row.id, code=code, rule=rule, error=error, due_ms=None, fetched_ms=None))
        if lifecycle.is_evidence(code, rule, run.source.lifecycle.remove_on):
            group.with_evidence.append(row.id)
    review_table.set_rules(transaction, again)
    document_rows.write_documents(transaction, run.source_id, group, {})
    admission.admit(transaction, reviews.moved)
    url_table.settle(transaction, group.settled)
    url_table.reopen(transaction, _select_allowed(transaction, admission, reviews.allowed))
    return group.counts


def _select_allowed(transaction: Transaction, admission: Admission, rows: Sequence[Reviewed]) -> list[int]:
    """Returns the ids of the rows that may be visited now; writes the rule that refuses each of the others."""
    opened: list[int] = []
    refused: dict[int, tuple[int, str]] = {}
    for row in rows:
        decision = admission.decide(row.url, row.depth)
        if decision.allowed or (row.is_known and is_trap_limit(decision.key)):
            opened.append(row.id)
        else:
            refused[row.id] = (refusal_code(decision), decision.text)
    review_table.set_rules(transaction, refused)
    return opened
