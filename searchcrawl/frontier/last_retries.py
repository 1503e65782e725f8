"""The end of a run waits for nothing that will not come: retries at hosts that were never there, once nothing else is left.

While others are crawled such retries have their pauses. Then the hosts get a few seconds more, and are given up: their
rows end with the codes of their causes, as if the retries were used up. Where no host was there in the run, all retries
are made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from searchcrawl import clock
from searchcrawl.codes import UNREACHABLE
from searchcrawl.frontier.window import HostWork, Window
from searchcrawl.items import Claim, Outcome
from searchcrawl.politeness.backoff import explain_given_up
from searchcrawl.run import Run
from searchcrawl.store import host_table
from searchcrawl.store.urls import url_queue
from searchcrawl.store.urls.url_classes import UrlClass

logger = logging.getLogger(__name__)

#: So long hosts that were never there may still come once nothing else is left.
LAST_SECONDS: Final = 5.0
#: A host with pages that had no visit yet is asked so often, at least.
_LEAST_FAILURES: Final = 2
_HOSTS_AT_ONCE: Final = 512
_MOST_NAMED: Final = 5
#: So long what is being stored takes, about.
_STORING_SECONDS: Final = 0.05

#: The hosts of the requests beside the pages that keep a run from ending, each with the code of a failure; None where one of
#: these is no retry.
FindAside = Callable[[], Mapping[str, int] | None]
FindDue = Callable[[], Sequence[int] | None]


class LastRetries:
    """Finds out that nothing but such retries is left, and since when; for the claiming thread."""

    def __init__(self, run: Run, window: Window) -> None:
        self._run = run
        self._window = window
        self._hosts = window.hosts
        self._since: float | None = None

    @property
    def seconds_left(self) -> float | None:
        """How long to wait for the hosts that are left; None while anything else is left."""
        if self._since is None:
            return None
        return max(self._since + LAST_SECONDS - clock.monotonic(), _STORING_SECONDS)

    def note_claimed(self) -> None:
        """Notes that rows were claimed: of a host that may come, or for one more try."""
        if self._since is not None and not self._window.has_only(self._is_failing):
            self._since = None

    def give_up(
        self, *, outstanding: int, aside: Mapping[str, int] | None, find_due: FindDue, is_whole: bool
    ) -> Mapping[str, int]:
        """Gives up the hosts that are left once their time is over; returns them with the codes of their last failures.

        ``outstanding`` is what keeps the run from ending, ``aside`` what FindAside finds, ``find_due`` finds the hosts with rows
        that are due again (None: there may be more), ``is_whole`` tells that all rows that need not wait are claimed. Raises
        StoreError.
        """
        names = self._find_left(aside, find_due, least=1 if is_whole else _LEAST_FAILURES)
        now = clock.monotonic()
        if not names:
            self._since = None
            return {}
        if self._since is None:
            self._since = now
        is_storing = outstanding != self._window.waiting + self._window.in_flight + bool(aside)
        if now < self._since + LAST_SECONDS or is_storing:
            return {}
        self._since = None
        there = self._find_there(names)
        for name in there:
            self._hosts.note_there(name)
        given_up = {} if there else self._hosts.give_up(names, aside or {})
        if given_up:
            named = [f"{name} ({code})" for name, code in sorted(given_up.items())]
            logger.info(
                "hosts that never answered in this run are given up, as nothing else is left: %s%s",
                ", ".join(named[:_MOST_NAMED]),
                f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else "",
            )
        return given_up

    def _find_left(self, aside: Mapping[str, int] | None, find_due: FindDue, *, least: int) -> set[str]:
        """The hosts to which all that is left belongs; none where one of them may come, or anything else is left.

        Those with rows in the table have failed ``least`` times in a row. What memory tells is asked first.
        """
        run, window = self._run, self._window
        any_there = self._hosts.any_there or run.counts[UrlClass.FETCHED]
        if not any_there or run.unreviewed is not None or not window.has_only(self._is_failing):
            return set()
        if aside is None or (due := find_due()) is None:
            return set()
        # A failure of theirs counts for no visit.
        if any(self._hosts.may_come(name, least_failures=0) for name in aside):
            return set()
        names = {*window.list_hosts(), *aside}
        if run.read(url_queue.find_hosts_to_do, run.source_id, after=0, limit=1, at_last=True):
            return set()
        for part in self._read_waiting(due):
            if any(self._hosts.may_come(name, least_failures=least) for name in part):
                return set()
            names |= part
        return names

    def _read_waiting(self, due: Sequence[int]) -> Iterator[set[str]]:
        """Some hosts with rows that are due again, then those with rows to do."""
        run, after = self._run, 0
        if due:
            yield {*run.read(host_table.find_names, due).values()}
        while found := run.read(url_queue.find_hosts_to_do, run.source_id, after=after, limit=_HOSTS_AT_ONCE):
            yield {*run.read(host_table.find_names, found).values()}
            after = found[-1]

    def _is_failing(self, work: HostWork) -> bool:
        """Whether a host will not come, as far as it was asked."""
        if any(claim.attempt and claim.code not in UNREACHABLE for claim in work.claims):
            # It was there before this process began.
            return False
        return not self._hosts.may_come(work.name, least_failures=_LEAST_FAILURES if work.has_first else 1)

    def _find_there(self, names: Collection[str]) -> set[str]:
        """Those of the hosts that were there earlier in this run: another process had it, or too many hosts came since."""
        run = self._run
        here = {"source_id": run.source_id, "run_id": run.id, "horizon_ms": run.row.horizon_ms}
        return {name for name in names if run.read(url_queue.was_there, name, **here)}


def end_given_up(host: str, code: int, claim: Claim) -> Outcome:
    """The end of a row of a host that was given up; ``code`` is that of the host's last failure."""
    own = claim.code if claim.attempt else code
    return Outcome(claim=claim, code=own, error=explain_given_up(host), unasked=claim.attempt == 0)
