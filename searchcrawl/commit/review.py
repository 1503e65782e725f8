"""Edited rules meet the URLs that are known: what is outside now leaves, what is inside again comes back (B6).

No request is sent for it, and no turn of a host is taken: a boundary may cut off a million URLs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from searchcrawl import clock
from searchcrawl.admission.admit import Admission, Found
from searchcrawl.codes import REFUSED, Code
from searchcrawl.commit import group_rows
from searchcrawl.commit.decide import Group
from searchcrawl.rules import removal
from searchcrawl.rules.boundary import refusal_code
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.rewriting import NormalisedUrl
from searchcrawl.run import Run
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.runs.lease import BEAT_SECONDS
from searchcrawl.store.urls import review_table, url_table
from searchcrawl.store.urls.review_table import Reviewed
from searchcrawl.store.urls.url_table import Settled

logger = logging.getLogger(__name__)

STRIP_KEY: Final = "scope.strip_parameters"


@dataclass(slots=True)
class _Verdicts:
    """What edited rules say of some rows."""

    refused: list[tuple[Reviewed, int, str, str | None]] = field(default_factory=list)
    #: refused by a rule before, by none that is asked here now
    perhaps: list[Reviewed] = field(default_factory=list)
    #: the new identities of rows that had another one
    moved: list[Found] = field(default_factory=list)

    @property
    def any(self) -> bool:
        return bool(self.refused or self.perhaps or self.moved)


def review(run: Run, admission: Admission) -> None:
    """Goes through all rows of a source; cut off, it begins anew with the next start of the run.

    To be called before anything is claimed or admitted: a link that is found afterwards brings back what
    left only because of how it was found at first. Raises StoreError, LeaseLost.
    """
    after = left = 0
    beat = clock.monotonic()
    while rows := run.read(partial(review_table.rows_after, source_id=run.source_id, after=after)):
        after = rows[-1].id
        # Before the transaction: a plug-in may take its time.
        verdicts = _Verdicts()
        for row in rows:
            _judge(row, run, verdicts)
        if verdicts.any:
            left += len(verdicts.refused)
            run.write_counted(partial(_write, run=run, admission=admission, verdicts=verdicts))
            admission.committed()
        if clock.monotonic() - beat > BEAT_SECONDS:
            run.beat()
            beat = clock.monotonic()
    if left:
        logger.info("rules were edited: %d known URLs are outside now", left)


def _judge(row: Reviewed, run: Run, verdicts: _Verdicts) -> None:
    normalised = run.rewriting.normalise(row.found_as or row.url, row.referrer)
    if normalised.code:
        _refuse(row, normalised.code, normalised.decision, normalised.error, verdicts)
    elif normalised.url != row.url:
        _refuse(
            row, Code.OUTSIDE_BOUNDARY, _why_moved(row, normalised, run), f"its URL is {normalised.url} now", verdicts
        )
        verdicts.moved.append(
            Found(None, row.depth, [normalised.link], is_normalised=True, referrer_id=row.referrer_id)
        )
    else:
        decision = run.boundary.decide(row.url, row.depth)
        if not decision.allowed:
            _refuse(row, refusal_code(decision), decision, None, verdicts)
        elif row.code in REFUSED:
            verdicts.perhaps.append(row)


def _refuse(row: Reviewed, code: int, decision: Decision, error: str | None, verdicts: _Verdicts) -> None:
    rule = decision.text
    if (row.code, row.rule) != (code, rule):
        verdicts.refused.append((row, int(code), rule, error))


def _why_moved(row: Reviewed, normalised: NormalisedUrl, run: Run) -> Decision:
    file = run.source.file
    stripped = run.rewriting.identity.find_name(row.url)
    if stripped and normalised.found_as is None:
        return Decision(False, stripped, file, STRIP_KEY)
    return Decision(False, "rewritten otherwise", file, "rewrite")


def _write(transaction: Transaction, *, run: Run, admission: Admission, verdicts: _Verdicts) -> Mapping[str, int]:
    # Of a transaction before, that has to be repeated.
    admission.rolled_back()
    group = Group(horizon_ms=run.row.horizon_ms)
    again: dict[int, tuple[int, str]] = {}
    for row, code, rule, error in verdicts.refused:
        if row.code in REFUSED:
            again[row.id] = (code, rule)
            continue
        group.settled.append(Settled(url_id=row.id, code=code, rule=rule, error=error, due_ms=None, fetched_ms=None))
        group.counts["rejected"] += 1
        if removal.is_evidence(code, rule, run.source.lifecycle.remove_on):
            group.leaving.append(row.id)
    review_table.set_rules(transaction, again)
    group_rows.write(transaction, run.source_id, group, {})
    discovered, rejected = admission.admit(transaction, verdicts.moved)
    url_table.settle(transaction, group.settled)
    url_table.reopen(transaction, _allowed(transaction, admission, verdicts.perhaps))
    group.counts.update(discovered=discovered, rejected=rejected)
    return group.counts


def _allowed(transaction: Transaction, admission: Admission, rows: Sequence[Reviewed]) -> list[int]:
    """Which of these may be visited now; of the others the rule that still forbids it is noted."""
    opened: list[int] = []
    refused: dict[int, tuple[int, str]] = {}
    for row in rows:
        decision = admission.decide(row.url, row.depth)
        if decision.allowed:
            opened.append(row.id)
        else:
            refused[row.id] = (refusal_code(decision), decision.text)
    review_table.set_rules(transaction, refused)
    return opened
