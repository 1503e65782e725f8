"""What an edit of the source file does to all known URLs: some are refused, or reopened, and all become due (B6, D9).

It sends no request and reserves no slot, because an edited boundary may exclude a million URLs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from searchcrawl import clock
from searchcrawl.admission.admit import Admission, FoundLinks
from searchcrawl.codes import REFUSED, Code
from searchcrawl.commit import document_rows
from searchcrawl.commit.decide import Group
from searchcrawl.rules import lifecycle
from searchcrawl.rules.boundary import is_trap_limit, refusal_code
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.forgotten import digest
from searchcrawl.rules.listed import is_of_lister
from searchcrawl.rules.rewriting import NormalisedUrl
from searchcrawl.run import Run
from searchcrawl.store import listing_table, source_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import orphan_table, review_table, url_table
from searchcrawl.store.urls.fetch_events import REFUSED_LATER
from searchcrawl.store.urls.review_table import Reviewed
from searchcrawl.store.urls.url_table import Settled

logger = logging.getLogger(__name__)

STRIP_KEY: Final = "scope.strip_parameters"
#: No digest of a list.
_HALF_APPLIED: Final = "-"
#: So many rows are looked at within a second, and the crawl begins after them.
ROWS_AT_START: Final = 20_000


@dataclass(slots=True)
class _Page:
    """A page of rows, which ends with ``last``, and what edited rules decide about them."""

    last: int | None
    rows: int
    is_last: bool
    refused: list[tuple[Reviewed, int, str, str | None]] = field(default_factory=list)
    #: refused before, and allowed by these rules; limits on URLs and traps may still refuse them
    allowed: list[Reviewed] = field(default_factory=list)
    #: the new URLs of rows whose URL changes
    moved: list[FoundLinks] = field(default_factory=list)


class Review:
    """Looks at all rows of a source after an edit of its file: edited rules apply to them, and they are due (B6, D9).

    A start looks at the first ROWS_AT_START rows, in the helper thread that opens the writer. The writer thread looks at the others while the crawl runs, a page of rows at
    a time; where rules apply to them none is claimed before. A row that was refused because of its first link is reopened by a
    later link that is allowed. If it is interrupted, the next run begins it again, but makes no row due a second time.
    """

    def __init__(self, run: Run, admission: Admission, hold: Callable[[], Callable[[], None]]) -> None:
        """``hold`` keeps the run from ending until what it returns is called. Raises StoreError."""
        self._run = run
        self._admission = admission
        self._hold = hold
        self._release: Callable[[], None] | None = None
        self._forgotten = digest(run.source.forgotten)
        is_applied = run.read(source_table.find, run.source_id, "forgotten") == self._forgotten
        self._applies_rules = run.rules_edited or not is_applied
        self._hastening = run.read(review_table.find_hastening, source=run.source_id)
        after = None if self._hastening is None else self._hastening.after
        #: those up to it are looked at; None: all are that were there when it began
        self._after = 0 if self._applies_rules else after
        self._last = 0 if self._after is None else run.read(orphan_table.find_last_id)
        self._tell()
        self._looked_at = self._refused = 0

    @property
    def is_over(self) -> bool:
        """Whether all rows are looked at."""
        return self._after is None

    def open(self) -> None:
        """Looks at the first rows, before anything is claimed or admitted; at all of them in a replay.

        Raises StoreError, LeaseLost.
        """
        while not self.is_over and not (self._run.requests and self._looked_at >= ROWS_AT_START):
            self.step()
        if not self.is_over:
            logger.info("the source file was edited: known URLs are looked at while the crawl runs")
            self._release = self._hold()

    def step(self) -> None:
        """Looks at the next page of rows, unless it is over. Raises StoreError, LeaseLost."""
        if self._after is None:
            return
        page = self._read_page(self._after)
        self._run.write_counted(self._write, page=page)
        self._admission.note_commit()
        self._looked_at += page.rows
        self._refused += len(page.refused)
        self._after = None if page.is_last else page.last
        self._tell()
        if self._after is None:
            self._end()

    def _tell(self) -> None:
        """Tells other threads how far it has come."""
        gate = None if self._after is None or not self._applies_rules else (self._after, self._last)
        self._admission.unreviewed = self._run.unreviewed = gate
        self._run.is_reviewed = self.is_over
        # At last: whoever sees it looks at hosts anew, and may claim their rows.
        self._run.pages_reviewed += 1

    def _read_page(self, after: int) -> _Page:
        run, rows = self._run, list[Reviewed]()
        if self._applies_rules:
            rows = run.read(review_table.load_rows_after, source_id=run.source_id, after=after, last=self._last)
            last, number = rows[-1].id if rows else None, len(rows)
        else:
            last, number = run.read(review_table.find_page_end, source_id=run.source_id, after=after, last=self._last)
        page = _Page(last, number, is_last=last is None or last >= self._last)
        for row in rows:
            # Before the transaction: a plugin may be slow.
            _review_row(row, run, page)
        return page

    def _write(self, transaction: Transaction, *, page: _Page) -> Mapping[str, int]:
        run, hastening, last = self._run, self._hastening, page.last
        counts = _write(transaction, run=run, admission=self._admission, page=page)
        if hastening is not None:
            hastening = hastening._replace(after=max(hastening.after, self._after or 0))
            if last is not None and last > hastening.after:
                horizon_ms = run.row.horizon_ms
                review_table.hasten(
                    transaction, run.source_id, hastening, last=last, horizon_ms=horizon_ms, now_ms=clock.now_ms()
                )
                source_table.note(transaction, run.source_id, hasten_after=last)
            if page.is_last:
                source_table.note(transaction, run.source_id, hasten_after=None)
        if self._applies_rules:
            # Until it is over no list is that of all rows, whatever becomes of the list.
            source_table.note(transaction, run.source_id, forgotten=self._forgotten if page.is_last else _HALF_APPLIED)
        return counts

    def _end(self) -> None:
        if self._refused:
            logger.info("rules were edited: %d known URLs are outside now", self._refused)
        if self._release is not None:
            self._release()


def _review_row(row: Reviewed, run: Run, page: _Page) -> None:
    normalised = run.rewriting.normalise(row.found_as or row.url, row.referrer)
    if normalised.code:
        _refuse(row, normalised.code, normalised.decision, normalised.error, page)
    elif normalised.url != row.url:
        _refuse(
            row, Code.OUTSIDE_BOUNDARY, _explain_move(row, normalised, run), f"its URL is {normalised.url} now", page
        )
        page.moved.append(
            FoundLinks(None, row.depth, [normalised.link], is_normalised=True, referrer_id=row.referrer_id)
        )
    else:
        # Limits on traps are for new URLs: a page whose document is known goes on being visited.
        decide = run.boundary.decide_known if row.is_known else run.boundary.decide
        decision = decide(row.url, row.depth, in_archive=row.in_archive)
        if not decision.allowed:
            _refuse(row, refusal_code(decision), decision, None, page)
        elif row.code in REFUSED and row.fetch_state == FetchState.SETTLED and not _is_left_to_lister(row, run):
            # A link that came before has reopened the others, and they are counted.
            page.allowed.append(row)


def _is_left_to_lister(row: Reviewed, run: Run) -> bool:
    """Whether what is listed is left out by a rule that its lister has to ask, and of which nothing was edited."""
    is_left_out = run.source.kind.is_listed and row.code == Code.OUTSIDE_BOUNDARY and is_of_lister(row.rule)
    return is_left_out and (row.rule or "").partition(":")[0] not in run.forced


def _refuse(row: Reviewed, code: int, decision: Decision, error: str | None, page: _Page) -> None:
    rule = decision.text
    # A row to be visited has the code of the visit before.
    if (row.code, row.rule) != (code, rule) or row.fetch_state != FetchState.SETTLED:
        page.refused.append((row, int(code), rule, error))


def _explain_move(row: Reviewed, normalised: NormalisedUrl, run: Run) -> Decision:
    file = run.source.path
    stripped = run.rewriting.identity.find_name(row.url)
    if stripped and normalised.found_as is None:
        return Decision(False, stripped, file, STRIP_KEY)
    return Decision(False, "rewritten otherwise", file, "rewrite")


def _write(transaction: Transaction, *, run: Run, admission: Admission, page: _Page) -> Mapping[str, int]:
    # The transaction may be a repeated one: what the first try counted is forgotten.
    admission.note_rollback()
    group = Group(horizon_ms=run.row.horizon_ms)
    again: dict[int, tuple[int, str]] = {}
    for row, code, rule, error in page.refused:
        if row.code in REFUSED and row.fetch_state == FetchState.SETTLED:
            again[row.id] = (code, rule)
            continue
        group.settled.append(Settled(url_id=row.id, code=code, rule=rule, error=error, due_ms=None, fetched_ms=None))
        if lifecycle.is_evidence(code, rule, run.source.lifecycle.remove_on):
            group.with_evidence.append(row.id)
    review_table.set_rules(transaction, again)
    document_rows.write_documents(transaction, run.source_id, group, {})
    url_table.settle(transaction, group.settled, REFUSED_LATER)
    # After that: a row whose URL came in another way before may be the new URL of another row.
    admission.admit(transaction, page.moved)
    opened = _select_allowed(transaction, admission, page.allowed)
    url_table.reopen(transaction, opened)
    # Until their lister names them again, a visit looks closely: another of its rules may leave them out.
    of_lister = {row.id for row in page.allowed if run.source.kind.is_listed and is_of_lister(row.rule)}
    listing_table.drop_versions(transaction, [row for row in opened if row in of_lister])
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
