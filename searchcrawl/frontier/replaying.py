"""The claiming thread of a replay: claims the rows whose answers the cache has (D9, L11).

It stands in the place of ``Claiming``. There are no hosts to be spared, and rows without a stored answer stay in the table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from searchcrawl import clock
from searchcrawl.codes import REDIRECT_STATUSES, REDIRECTS, WITH_DOCUMENT, Code, CodeClass
from searchcrawl.frontier.claiming import IDLE_SECONDS, ClaimingThread, Told
from searchcrawl.frontier.window import Window
from searchcrawl.items import Claim
from searchcrawl.run import Run
from searchcrawl.sources.fingerprint import describe_keys, find_effect
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.states import EndReason
from searchcrawl.store.urls import orphan_table, review_table, url_table
from searchcrawl.store.urls.review_table import StoredAnswer

logger = logging.getLogger(__name__)

#: The one host of the window, to which no request goes.
CACHE: Final = "the cache"
_PAGE_ROWS: Final = 128
#: Pages that were read, and are not to be indexed: what is made of them may be another thing after an edit.
_REFUSED_PAGES: Final = frozenset(
    int(code) for code in Code if code.facts.kind in {CodeClass.EXCLUDED, CodeClass.DISPLAY}
) | {int(Code.META_REFRESH)}
#: Visits that led to another URL.
_LED_ON: Final = REDIRECTS | REDIRECT_STATUSES | {int(Code.REDIRECT_LOOP), int(Code.OUTSIDE_BOUNDARY)}
#: URLs that are counted before the first request, in about a second.
_MOST_COUNTED: Final = 1_000_000
#: After all times that a row may be due.
_EVER_MS: Final = (1 << 63) - 1


class ReplayClaiming(ClaimingThread):
    """Claims rows by rising id; ``expect`` is told where their answers are, ``is_given_up`` knows unreadable ones.

    See ``ClaimingThread`` for the rest.
    """

    def __init__(
        self,
        run: Run,
        window: Window,
        told: Told,
        *,
        may_claim: Callable[[], bool],
        expect: Callable[[Sequence[StoredAnswer]], None],
        given_up: Collection[int],
    ) -> None:
        super().__init__(run, window, told, may_claim=may_claim)
        self._expect = expect
        self._given_up = given_up
        self._effect = find_effect(run.forced)
        self._replays = bool(run.forced) and not self._effect.answers
        self._after = 0
        self._claimed = 0

    def runs_low(self) -> None:
        """Claims more."""
        self._wake.set()

    def note_committed(self, visits: int, hosts: Iterable[int] = ()) -> None:
        """Notes that this number of claimed rows was settled in the store."""
        self._count(-visits)
        self._wake.set()

    def _step(self) -> float | None:
        pause = self._claim_page() if self._replays else None
        if pause is None:
            _put_off(self._run)
        return pause

    def _claim_page(self) -> float | None:
        if self._window.size > _PAGE_ROWS // 2 or not self._may_claim():
            return IDLE_SECONDS
        # Before the look: a row that is committed after it may lead to others.
        idle = self._is_idle()
        found = self._find()
        if found:
            self._claim(found)
            return 0.0
        if not idle:
            return IDLE_SECONDS
        if not self._claimed:
            return None
        # Pages that were processed may have brought rows nearer, or back into the boundary.
        self._after = self._claimed = 0
        return 0.0

    def _find(self) -> list[StoredAnswer]:
        run = self._run
        while found := run.read(
            review_table.find_answers,
            source_id=run.source_id,
            after=self._after,
            limit=_PAGE_ROWS,
            horizon_ms=run.row.horizon_ms,
        ):
            self._after = found[-1].url_id
            readable = [answer for answer in found if answer.url_id not in self._given_up]
            if readable:
                return readable
        return []

    def _claim(self, found: Sequence[StoredAnswer]) -> None:
        ids = [answer.url_id for answer in found]

        def claim(transaction: Transaction) -> list[Claim]:
            return url_table.claim_these(transaction, ids, now_ms=clock.now_ms(), forced=self._effect.reading)

        claims = self._run.write(claim)
        self._claimed += len(claims)
        self._count(len(claims))
        self._expect(found)
        self._window.fill(CACHE, claims)
        self._told.filled()


def find_end_reason(run: Run) -> EndReason:
    """Why a replay ends that has no row left to process: FINISHED if no URL is to be visited because of the edit."""
    return EndReason.APPLIED if not run.forced or count_left(run) else EndReason.FINISHED


def count_left(run: Run) -> int:
    """How many URLs are to be visited that a replay cannot process.

    Of the URLs without an answer in the cache these are the new ones, and those for which the edit may change something:
    a page that is not to be indexed, or a redirect that leads elsewhere. A page that is gone or failed is no such one.
    """
    codes = _find_codes(run.forced)
    return run.read(
        review_table.count_left_to_visit, source_id=run.source_id, horizon_ms=run.row.horizon_ms, codes=codes
    )


def count_undecided(run: Run) -> int:
    """How many documents the edit decides about only at their next visit, because the last one failed."""
    if not run.forced or not find_effect(run.forced).refusals:
        return 0
    return run.read(review_table.count_undecided, source_id=run.source_id)


def announce_edit(run: Run) -> None:
    """Says in the log of a run after an edit what it costs, and what ``plan`` and ``apply`` would save."""
    if not run.forced:
        return
    edited = describe_keys(run.forced)
    if run.read(orphan_table.find_last_id) > _MOST_COUNTED:
        logger.info("edited: %s: all URLs are visited without validators", edited)
        return
    # Those that are due later become due while it runs.
    waits = run.read(review_table.find_hastening, source=run.source_id) is not None
    horizon_ms = _EVER_MS if waits else run.row.horizon_ms
    stored, due = run.read(review_table.count_answers, source_id=run.source_id, horizon_ms=horizon_ms)
    if find_effect(run.forced).answers:
        logger.info("edited: %s: all %d URLs are visited without validators", edited, due)
        return
    logger.info(
        "edited: %s: all %d URLs are visited without validators; searchcrawl plan %s shows what the edit changes, and"
        " apply would process %d of them again from the cache without a request",
        edited,
        due,
        run.source.name,
        stored,
    )


def _find_codes(forced: Sequence[str]) -> frozenset[int] | None:
    """The last codes of rows that an edit of keys concerns; None: all."""
    effect = find_effect(forced)
    if effect.answers:
        return None
    codes = WITH_DOCUMENT if forced else frozenset[int]()
    codes |= _REFUSED_PAGES if forced and effect.refusals else frozenset()
    return codes | _LED_ON if effect.links else codes


def _put_off(run: Run) -> None:
    """Leaves what the edit does not concern to the next run, where nothing else is left."""
    if find_end_reason(run) is not EndReason.FINISHED:
        return
    after: int | None = 0
    while after is not None:
        after = run.write(review_table.put_off, source_id=run.source_id, after=after, horizon_ms=run.row.horizon_ms)
