"""The claiming thread: fills the window ahead of need, and finds out when a crawl is over."""

from __future__ import annotations

import functools
import logging
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from searchcrawl import clock
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.commit.group_commit import build_refusal
from searchcrawl.exceptions import SearchcrawlError
from searchcrawl.frontier.due_hosts import DueHosts
from searchcrawl.frontier.last_retries import FindAside, LastRetries
from searchcrawl.frontier.window import FEW_ROWS, HOST_ROWS, WINDOW_ROWS, Window
from searchcrawl.items import Claim
from searchcrawl.run import Run
from searchcrawl.store import host_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.statements import split
from searchcrawl.store.urls import url_queue, url_table
from searchcrawl.store.urls.fetch_events import REFUSED
from searchcrawl.store.urls.url_queue import FIRST, DuePlace

logger = logging.getLogger(__name__)

#: How long it waits where nothing can be claimed for now, unless it is woken.
IDLE_SECONDS: Final = 1.0


class Told(NamedTuple):
    """What a claiming thread calls.

    ``filled`` is called when there are claims to hand out. ``exhausted`` is called once, when nothing is left: all
    claimed rows were committed, and a look that began after that found no row. ``given_up`` is called with hosts that get no
    request any more, each with a code (``last_retries``).
    """

    filled: Callable[[], None]
    exhausted: Callable[[], None]
    given_up: Callable[[Mapping[str, int]], None] = lambda codes: None


class ClaimingThread(ABC):
    """Claims rows in a thread of its own, and counts those that are not settled yet.

    ``may_claim`` says in this thread whether the cache has room. The reactor calls ``start`` and ``runs_low``; any thread may
    call ``hold`` and ``note_committed``.
    """

    def __init__(self, run: Run, window: Window, told: Told, *, may_claim: Callable[[], bool]) -> None:
        self._run = run
        self._window = window
        self._told = told
        self._may_claim = may_claim
        self._outstanding = 0
        self._counting = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        #: called in the thread: what goes on beside the pages and keeps the run from ending (``last_retries``)
        self.find_aside: FindAside = dict
        self._thread = threading.Thread(target=self._work, name="claiming", daemon=True)

    @abstractmethod
    def runs_low(self) -> None:
        """Notes that there are few claims left to hand out."""

    @abstractmethod
    def note_committed(self, visits: int, hosts: Iterable[int] = ()) -> None:
        """Notes that this number of claimed rows was settled in the store; ``hosts`` have new rows."""

    @abstractmethod
    def _step(self) -> float | None:
        """Claims what it can; returns the seconds until the next step, or None if nothing is left."""

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def hold(self) -> Callable[[], None]:
        """Keeps the run from ending, as a claimed row does, until the returned function is called."""
        self._count(1)
        return functools.partial(self.note_committed, 1)

    def stop(self) -> None:
        """Ends the thread after its present step, and waits for its end."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _count(self, rows: int) -> None:
        """Notes rows that were claimed, or (less than 0) settled."""
        with self._counting:
            self._outstanding += rows

    def _is_idle(self) -> bool:
        """Whether all claimed rows are settled."""
        with self._counting:
            return self._outstanding == 0

    def _work(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                pause = self._step()
            except SearchcrawlError as error:
                logger.warning("claiming stops: %s", error)
                self._run.shutdown.fail(error)
                return
            except Exception as error:  # the edge of the thread: whatever it is ends the run
                logger.exception("claiming stops")
                self._run.shutdown.fail(error)
                return
            if pause is None:
                self._told.exhausted()
                return
            self._wake.wait(pause)


#: How many hosts are looked at in the first round, before anything waits, and later.
_FIRST_HOSTS: Final = 64
_HOSTS_A_ROUND: Final = 512
#: So long hosts of which few rows are left are gathered.
_GATHER_SECONDS: Final = 0.02
#: Hosts are looked for again after so many times the time that it took, but not later than after so long.
_SCAN_SHARE: Final = 10
_LONGEST_IDLE_SECONDS: Final = 10.0
#: Of so many hosts at most it is remembered that they have new rows, or no room for more.
_MOST_NOTED: Final = 50_000
#: How often it is asked whether the index has what was fetched, before a suspect is visited.
_SENDING_SECONDS: Final = 0.1
#: The most rows that are refused in one transaction.
_MOST_REFUSED: Final = 500
#: The most rows of a host that are claimed at once of those that are visited after all others: what they name goes first.
_ROWS_AT_LAST: Final = 64
#: Slow start: of a host without delay so many rows may wait, or be visited and not stored yet, and later this share of what
#: was stored. Until its pages are stored, nothing tells that they are a trap.
_FIRST_ROWS: Final = 64
_SHARE_OF_STORED: Final = 0.5
#: How many rows are claimed at once after a refusal.
_ROWS_AFTER_REFUSAL: Final = 64
#: How often hosts are looked for anew while rows are looked at after an edit.
_LOOK_SECONDS: Final = 2.0
#: Before this moment no row is due.
_NEVER_MS: Final = -1


@dataclass(slots=True)
class _Scan:
    """One pass over all hosts that have rows to claim, in one round or several."""

    #: whether no row was outstanding when it began
    began_idle: bool
    #: the last host with rows to do that it has seen; None: it has seen all
    cursor: int | None = 0
    claimed: int = 0
    #: whether the window had enough rows of a host, or no room, though the table may have more
    held_back: bool = False
    #: whether there is another reason to scan again soon: rows that were refused, of which there may be more
    has_more: bool = False
    #: how long it has taken
    seconds: float = 0.0
    #: whether it claims rows that are visited after all others, and no others
    at_last: bool = False
    #: how many rows it claims at most
    most: int = WINDOW_ROWS


class Claiming(ClaimingThread):
    """Claims rows host by host; ``traps`` refuses some of them.

    ``may_revisit`` says whether rows that are due again may be claimed, ``has_sent`` whether nothing is being sent to the
    index and nothing waits for it, which is asked before a suspect is visited. Both are called in this thread.
    """

    def __init__(
        self,
        run: Run,
        window: Window,
        told: Told,
        *,
        traps: TrapWatch,
        may_claim: Callable[[], bool],
        may_revisit: Callable[[], bool],
        has_sent: Callable[[], bool],
    ) -> None:
        super().__init__(run, window, told, may_claim=may_claim)
        self._traps = traps
        self._may_revisit = may_revisit
        self._has_sent = has_sent
        #: whether a suspect is visited, and nothing else
        self._alone = False
        self._names: dict[int, str] = {}
        self._due = DueHosts(run)
        self._scan: _Scan | None = None
        self._refused = self._stored = 0
        self._drained: set[int] = set()
        #: whether nothing but what is visited after all others was left once, and the last host of which it was claimed
        self._is_at_last = False
        self._last_host = 0
        self._scan_wanted = threading.Event()
        self._next_scan = 0.0
        #: hosts with new rows, and those of which more rows are to be claimed once there is room
        self._fresh: set[int] = set()
        self._held: dict[int, None] = {}
        self._found_nothing = False
        self._pages_reviewed = run.pages_reviewed
        self._patterns_put_off = traps.patterns_put_off
        self._next_look = 0.0
        self._last_retries = LastRetries(run, window)

    def runs_low(self) -> None:
        """Claims more rows of hosts of which few are left; looks for other hosts unless the last scan has seen all."""
        if self._window.has_low:
            self._wake.set()
        if self._window.runs_low and not self._found_nothing:
            self._scan_soon()

    def note_committed(self, visits: int, hosts: Iterable[int] = ()) -> None:
        """Notes that this number of claimed rows was settled in the store; ``hosts`` have new rows."""
        with self._counting:
            self._outstanding -= visits
            self._stored += visits
            last = self._outstanding == 0
            self._alone = self._alone and not last
            self._fresh.update(hosts)
            if len(self._fresh) > _MOST_NOTED:
                # A scan finds them.
                self._fresh.clear()
                self._found_nothing = False
        # Without visits rows were looked at after an edit.
        looks = last or (not visits and self._window.runs_low)
        if looks or self._traps.patterns_put_off != self._patterns_put_off:
            self._found_nothing = False
            self._scan_soon()
        elif self._fresh or self._held:
            self._wake.set()

    def _scan_soon(self) -> None:
        self._scan_wanted.set()
        self._wake.set()

    def _step(self) -> float | None:
        """Claims more of hosts at hand, and scans when it is time; returns the same as ``_round``."""
        self._scan_wanted.wait(_GATHER_SECONDS)
        self._refill()
        rest = self._next_scan - clock.monotonic()
        goes_on = self._scan is not None and self._window.has_room
        if rest > 0 and not goes_on and not self._scan_wanted.is_set():
            return rest
        # Cleared before the scan: a scan that is requested meanwhile must follow it.
        self._scan_wanted.clear()
        pause = self._round()
        if pause is not None and (left := self._last_retries.seconds_left) is not None:
            pause = min(pause, left)
        self._next_scan = clock.monotonic() + (pause or 0.0)
        return pause

    def _refill(self) -> None:
        """Claims more rows of hosts of which few are left, and of those with new rows.

        Where hosts wait that have no claims yet, those go first: the others come again with the next scan.
        """
        with self._counting:
            fresh, self._fresh = self._fresh, set()
        hosts = dict.fromkeys(self._window.take_low()) | dict.fromkeys(fresh)
        if self._window.has_room:
            held, self._held = self._held, {}
            hosts |= held
        if not hosts or self._alone:
            return
        if not self._may_claim():
            self._held |= hosts
            return
        self._load_names([*hosts])
        known = [host for host in hosts if host in self._names]
        for host in fresh:
            self._window.note_drained(self._names.get(host, ""), drained=False)
        for part in split(known):
            if self._scan is not None and not self._window.has_room:
                return
            claimed = self._claim(_Scan(began_idle=False), [*part])
            if claimed:
                self._last_retries.note_claimed()
                self._told.filled()
            if self._scan is not None:
                self._scan.claimed += claimed

    def _round(self) -> float | None:
        """Claims rows of the next hosts; returns the seconds until the next round, or None if nothing is left."""
        if self._alone:
            return IDLE_SECONDS
        self._make_way()
        if not self._window.has_room:
            return 0.0 if self._give_up(is_whole=False) else IDLE_SECONDS
        if not self._may_claim():
            return IDLE_SECONDS
        began = clock.monotonic()
        scan = self._scan = self._scan or self._begin_scan()
        claimed = self._claim(scan, self._find_hosts(scan))
        scan.seconds += clock.monotonic() - began
        if claimed:
            scan.claimed += claimed
            self._found_nothing = False
            self._told.filled()
        if scan.cursor is not None or not self._due.done:
            return 0.0
        self._scan = None
        if scan.claimed:
            self._last_retries.note_claimed()
        elif (scan.held_back or self._due.is_whole) and self._give_up(is_whole=not scan.held_back):
            return 0.0
        # Rows that did not fit are claimed once few are left of their hosts.
        if scan.claimed or scan.held_back:
            self._found_nothing = not scan.has_more
            return min(max(_SCAN_SHARE * scan.seconds, IDLE_SECONDS), _LONGEST_IDLE_SECONDS)
        if not self._due.is_whole:
            # Nothing is due of the hosts that were known; what became due since may be of others.
            return 0.0
        pause = self._claim_at_last(scan)
        if pause is None:
            pause = self._idle_seconds(began_idle=scan.began_idle)
        return self._claim_suspect() if pause is None else pause

    def _give_up(self, *, is_whole: bool) -> bool:
        """Gives up the hosts that never answered, where nothing else is left; returns whether there were any."""
        with self._counting:
            # Before it is looked: rows may be settled meanwhile, and no others are claimed.
            outstanding = self._outstanding
        codes = self._last_retries.give_up(
            outstanding=outstanding, aside=self.find_aside(), find_due=self._find_due, is_whole=is_whole
        )
        if codes:
            self._told.given_up(codes)
            self._told.filled()
        return bool(codes)

    def _find_due(self) -> list[int] | None:
        """All hosts with rows that are due again; None where there may be more, or sitemaps may say that they are not."""
        run = self._run
        if self._may_revisit():
            return self._due.known
        waits = run.read(url_queue.find_due, run.source_id, run.row.horizon_ms, after=FIRST, limit=1)
        return None if waits else []

    def _claim_at_last(self, scan: _Scan) -> float | None:
        """Claims rows that are visited after all others (L12); returns the same as ``_round``, None where it has none.

        It begins once nothing else is left and nothing is under way, and goes on while nothing else is to be claimed.
        """
        run = self._run
        if run.unreviewed is not None or not (scan.began_idle or self._is_at_last):
            return None
        hosts = self._find_last_hosts() or self._find_last_hosts()
        if not hosts:
            self._is_at_last = False
            return None
        self._is_at_last = True
        with self._counting:
            # A trap is to be ended soon after it may be: what waits to be stored says so.
            most = self._traps.room_at_last + len(hosts) - self._outstanding
            if most <= 0 or self._outstanding > _ROWS_AT_LAST + len(hosts):
                return IDLE_SECONDS
        last = _Scan(began_idle=scan.began_idle, at_last=True, most=most)
        self._load_names(hosts)
        if self._claim(last, hosts):
            self._found_nothing = False
            self._told.filled()
            return IDLE_SECONDS
        if self._refused:
            return 0.0
        due_ms = run.read(url_table.find_next_due_ms, run.source_id, at_last=True)
        waits = 0.0 if due_ms is None else (due_ms - clock.now_ms()) / 1000
        return min(max(waits, 0.001), IDLE_SECONDS) if not last.held_back else IDLE_SECONDS

    def _find_last_hosts(self) -> list[int]:
        """The next hosts with rows that are visited after all others; once none follows, the next call begins anew."""
        run, after = self._run, self._last_host
        found = run.read(url_queue.find_hosts_to_do, run.source_id, after=after, limit=_FIRST_HOSTS, at_last=True)
        self._last_host = found[-1] if found else 0
        return found

    def _make_way(self) -> None:
        """Puts waiting claims back where more of them may be visited last than when they were claimed."""
        number = self._traps.patterns_put_off
        if number != self._patterns_put_off:
            self._patterns_put_off = number
            waiting = [claim.url_id for claim in self._window.take_unredirected()]
            if waiting:
                self._run.write(url_table.release, waiting)
                self._count(-len(waiting))
                self._found_nothing, self._scan = False, None

    def _begin_scan(self) -> _Scan:
        # Before it is asked: what is committed after that may bring new rows.
        self._found_nothing = True
        scan = _Scan(began_idle=self._is_idle())
        self._look_again()
        self._due.begin()
        return scan

    def _look_again(self) -> None:
        """Looks for hosts anew where known rows became due, or may be claimed, since they were looked at after an edit."""
        run, number = self._run, self._run.pages_reviewed
        if number == self._pages_reviewed or (not run.is_reviewed and clock.monotonic() < self._next_look):
            return
        self._pages_reviewed, self._next_look = number, clock.monotonic() + _LOOK_SECONDS
        # What becomes due is due at the horizon; rows that were due before had to wait for the rules.
        self._due.look_again(FIRST if run.is_reviewed else DuePlace(run.row.horizon_ms - 1, 0))

    def _find_hosts(self, scan: _Scan) -> list[int]:
        """The next hosts of a scan: some that have rows to do, and some that have rows that are due again."""
        run, to_do = self._run, list[int]()
        most = _HOSTS_A_ROUND if self._window.size else _FIRST_HOSTS
        if (cursor := scan.cursor) is not None:
            to_do = run.read(url_queue.find_hosts_to_do, run.source_id, after=cursor, limit=most)
            scan.cursor = to_do[-1] if len(to_do) == most else None
        due = self._due.take(self._horizon_ms(), most=most)
        hosts = list(dict.fromkeys([*to_do, *due]))
        self._load_names(hosts)
        return hosts

    def _horizon_ms(self) -> int:
        """Settled rows due by this moment are claimed: none, until sitemaps have said which of them changed."""
        return self._run.row.horizon_ms if self._may_revisit() else _NEVER_MS

    def _idle_seconds(self, *, began_idle: bool) -> float | None:
        run = self._run
        due_ms = run.read(url_table.find_next_due_ms, run.source_id)
        if due_ms is None:
            return None if began_idle and self._is_idle() else IDLE_SECONDS
        if run.unreviewed is not None:
            # What is due may have to be looked at before.
            return IDLE_SECONDS
        return min(max((due_ms - clock.now_ms()) / 1000, 0.001), IDLE_SECONDS)

    def _claim_suspect(self) -> float | None:
        """Claims a URL that may stop the process: nothing else is left to visit, and nothing is under way.

        Documents that wait are sent before: they would be lost to searches until another run, and a hang of the delivery
        would be blamed on the page. Returns the same as ``_round``.
        """
        run = self._run
        if not run.read(url_queue.has_suspects, run.source_id):
            return None
        if not self._has_sent():
            return _SENDING_SECONDS
        found = run.write(
            lambda transaction: url_queue.claim_suspect(
                transaction, run.source_id, now_ms=clock.now_ms(), forced=bool(run.forced)
            )
        )
        if found is not None:
            self._load_names([found.host_id])
            with self._counting:
                self._outstanding += 1
                self._alone = True
            self._window.fill(self._names[found.host_id], [found])
            self._told.filled()
        return IDLE_SECONDS

    def _load_names(self, hosts: list[int]) -> None:
        if len(self._names) > 100_000:
            self._names.clear()
        missing = [host for host in hosts if host not in self._names]
        if missing:
            self._names |= self._run.read(host_table.find_names, missing)

    def _claim(self, scan: _Scan, hosts: list[int]) -> int:
        allowed = HOST_ROWS if scan.at_last else self._count_allowed()
        room = {host: self._window.count_room(self._names[host], most=allowed) for host in hosts}
        wanted = {host: rows for host, rows in room.items() if rows and rows > 0}
        scan.held_back |= len(wanted) < len(hosts)
        if len(self._held) < _MOST_NOTED:
            self._held |= dict.fromkeys(host for host, rows in room.items() if rows is not None and rows <= 0)
        if not wanted:
            return 0
        claims: dict[int, list[Claim]] = {}
        # It is read once, because another thread may cut a pattern meanwhile.
        trapped = self._traps.active

        def claim(transaction: Transaction) -> None:
            nonlocal claims
            self._refused, self._drained = 0, set()
            claims = self._claim_hosts(transaction, wanted, trapped=trapped, scan=scan)

        self._run.write(claim)
        for host in self._drained:
            self._due.drop(host)
        # There may be more to refuse.
        scan.has_more |= self._refused >= _MOST_REFUSED
        scan.held_back |= scan.has_more
        total = sum(len(rows) for rows in claims.values())
        self._count(total)
        for host, host_claims in claims.items():
            if host_claims:
                self._window.fill(self._names[host], host_claims)
            self._window.note_drained(self._names[host], drained=host in self._drained)
        return total

    def _count_allowed(self) -> int:
        """How many rows of a host without delay may wait now, so that a trap shows before much of it is visited."""
        if not self._traps.is_on:
            return HOST_ROWS
        with self._counting:
            unstored = self._outstanding - self._window.waiting
            allowed = max(_FIRST_ROWS, int(_SHARE_OF_STORED * self._stored)) - unstored
        # What is not stored yet is of many hosts then, a few rows of each.
        return max(allowed, FEW_ROWS) if self._window.hosts_in_hand >= _FIRST_HOSTS else allowed

    def _claim_hosts(
        self, transaction: Transaction, wanted: Mapping[int, int], *, trapped: bool, scan: _Scan
    ) -> dict[int, list[Claim]]:
        claims: dict[int, list[Claim]] = {}
        few = [] if scan.at_last else [host for host, rows in wanted.items() if rows <= FEW_ROWS]
        few = [host for host in few if not self._is_blocked(host)]
        if len(few) > 1:
            claims = self._claim_few(transaction, few, trapped=trapped)
        room = scan.most
        for host, rows in wanted.items():
            if host in claims:
                continue
            most = min(rows, room, _ROWS_AT_LAST) if scan.at_last else min(rows, room)
            claims[host] = self._claim_host(transaction, host, most, trapped=trapped, at_last=scan.at_last)
            room -= len(claims[host])
            if room <= 0:
                break
        return claims

    def _is_blocked(self, host: int) -> bool:
        return self._window.hosts.blocked_code(self._names[host]) is not None

    def _claim_few(self, transaction: Transaction, hosts: list[int], *, trapped: bool) -> dict[int, list[Claim]]:
        """Claims a few rows of each of many hosts; what is refused or put off is so at once, and more is claimed later."""
        run = self._run
        found = url_table.claim_of_each(
            transaction,
            run.source_id,
            hosts,
            limit=FEW_ROWS,
            now_ms=clock.now_ms(),
            horizon_ms=self._horizon_ms(),
            forced=bool(run.forced),
            unreviewed=run.unreviewed,
        )
        claims: dict[int, list[Claim]] = {host: [] for host in hosts}
        counts = Counter(claim.host_id for claim in found)
        self._drained.update(host for host in hosts if counts[host] < FEW_ROWS)
        for claim in self._pass_trapped(transaction, found, at_last=False) if trapped else found:
            claims[claim.host_id].append(claim)
        return claims

    def _pass_trapped(self, transaction: Transaction, found: list[Claim], *, at_last: bool) -> list[Claim]:
        """Those of the claims that no ended pattern refuses, or puts off to be visited last (L8, L12)."""
        passed, refused, last = self._traps.split_claims(transaction, found, at_last=at_last)
        settled = [build_refusal(claim.url_id, decision) for claim, decision in refused]
        url_table.settle(transaction, settled, REFUSED)
        url_table.set_laps(transaction, {claim.url_id: lap for claim, lap in last})
        self._refused += len(refused) + len(last)
        return passed

    def _claim_host(
        self, transaction: Transaction, host: int, rows: int, *, trapped: bool, at_last: bool
    ) -> list[Claim]:
        """Claims rows, as many as there are and may be visited; see ``_pass_trapped``."""
        run, accepted, most = self._run, list[Claim](), rows
        while len(accepted) < rows and self._refused < _MOST_REFUSED:
            limit = most - len(accepted)
            found = url_table.claim(
                transaction,
                run.source_id,
                host,
                limit=limit,
                now_ms=clock.now_ms(),
                horizon_ms=self._horizon_ms(),
                forced=bool(run.forced),
                unreviewed=run.unreviewed,
                at_last=at_last,
                # Nothing of a blocked host is requested: its rows have nothing to wait for.
                may_wait=not self._is_blocked(host),
            )
            if len(found) < limit and not at_last:
                self._drained.add(host)
            if not trapped:
                return found
            passed = self._pass_trapped(transaction, found, at_last=at_last)
            accepted += passed
            if len(passed) == len(found):
                break
            # More refusals are likely to follow.
            most = max(rows, _ROWS_AFTER_REFUSAL)
        url_table.release(transaction, [claim.url_id for claim in accepted[rows:]])
        return accepted[:rows]
