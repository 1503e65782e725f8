"""The processes that visit and read the pages of a run, which keeps the table, the limits, the writer and the delivery.

Each has one socket to the process of the run (docs: decisions/members). One that ends by itself is replaced; what it had
under way is visited by the others.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from searchcrawl import clock, urls
from searchcrawl.codes import Code
from searchcrawl.convert.archive_reader import ARCHIVE
from searchcrawl.exceptions import LeaseLost, LogError, StoreError, WorkersUnavailable
from searchcrawl.frontier.frontier import Frontier
from searchcrawl.items import Claim, Document, Outcome
from searchcrawl.members.member import Death, Member
from searchcrawl.members.messages import (
    Closed,
    Ended,
    Failed,
    Forget,
    GiveUp,
    GoOn,
    Logged,
    Moved,
    Ready,
    Stopped,
    Visit,
)
from searchcrawl.politeness.host_registry import LATE_SECONDS
from searchcrawl.rules.archives import MARK, is_called_archive
from searchcrawl.rules.lifecycle import Failures
from searchcrawl.run import Run
from searchcrawl.store.urls import url_queue

logger = logging.getLogger(__name__)

#: A host stays with its member until this one has so many visits more than another.
_SPREAD: Final = 2
#: A row that was under way so often when a member ended by itself is visited last, alone.
_MOST_DEATHS: Final = 3
#: So many members may end one after the other, none of them having ended a visit, or begun to visit at all.
_MOST_LOST: Final = 5
_MOST_ARCHIVES: Final = 1_000
_PING_SECONDS: Final = 10.0
#: A process may take so long to begin, at least.
_START_SECONDS: Final = 60.0

Item = Document | Outcome


class Members:
    """Has members visit claims; for the event loop of the run.

    ``make`` starts the member of a number, whose messages go to the function that it is given. ``take`` is awaited with the
    end of each visit; while it waits, nothing more comes from that member. ``is_full`` tells whether the writer is behind.
    ``wake`` is called when there may be room for one more visit. A process that does not answer for twice
    ``stall_seconds`` (0: never) is killed: it ends itself by then, unless it is stopped.
    """

    def __init__(
        self,
        run: Run,
        frontier: Frontier,
        make: Callable[[int], Member],
        *,
        count: int,
        is_full: Callable[[], bool],
        stall_seconds: float = 0.0,
    ) -> None:
        self._run = run
        self._frontier = frontier
        # Its host was blocked meanwhile: the member would keep the request for ever.
        frontier.drop_redirected = lambda claim, member: member.send(Forget(claim.url_id))
        self._make = make
        self._is_full = is_full
        self._stall_seconds = stall_seconds
        self._watching: asyncio.Task[None] | None = None
        self._members = [self._make_member(number) for number in range(1, count + 1)]
        self._deaths: Counter[int] = Counter()
        self._lost_in_row = self._unbegun = 0
        self._finishing = self._waits_for_writer = False
        self._begun = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        #: by URL: who has fetched an archive, and keeps it for a while
        self._archives: OrderedDict[str, Member] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.wake: Callable[[], None] = lambda: None
        self.stats: Callable[[str, int], None] = lambda name, count: None

    def _make_member(self, number: int) -> Member:
        try:
            return self._make(number)
        except OSError as error:
            message = f"no process can be started, as fetch.processes asks: {error}"
            raise WorkersUnavailable(message) from error

    def note_committed(self) -> None:
        """Notes that the writer has taken what it had; any thread may call it."""
        if self._waits_for_writer and self._loop is not None:
            self._loop.call_soon_threadsafe(self.wake)

    def give_up(self, codes: Mapping[str, int]) -> None:
        """Has nothing more sent to hosts, each with its code; any thread may call it."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._tell_given_up, dict(codes))

    def _tell_given_up(self, codes: Mapping[str, int]) -> None:
        for member in self._members:
            if member.is_ready:
                member.send(GiveUp(codes))

    async def open(self, take: Callable[[Item], Awaitable[Any]]) -> None:
        """Connects with the processes, which were started already; returns once one can visit, or the run is to end.

        Nothing is requested before: a component of a user's own may be unable to begin in a member.
        """
        self._take_item, self._loop = take, asyncio.get_running_loop()
        for member in self._members:
            await self._connect(member)
        if self._stall_seconds:
            self._watching = asyncio.ensure_future(self._watch())
        await self._begun.wait()

    async def _watch(self) -> None:
        pause = min(_PING_SECONDS, self._stall_seconds / 2)
        while True:
            await asyncio.sleep(pause)
            for member in self._members:
                least = 0 if member.is_ready else _START_SECONDS
                if member.ping() * pause > max(2 * self._stall_seconds, least):
                    logger.warning("a process of the run does not answer, and is ended")
                    member.kill()

    @property
    def has_room(self) -> bool:
        """Whether one more visit may begin."""
        self._waits_for_writer = self._is_full()
        if self._finishing or self._waits_for_writer:
            return False
        under_way = sum(len(member.under_way) for member in self._members)
        return under_way < self._run.source.fetch.concurrency and any(member.is_ready for member in self._members)

    def visit(self, host: str, claim: Claim) -> None:
        """Has a claim visited, by the member that it was redirected in, or by any."""
        waits_in: Member | None = self._frontier.take_redirected(claim)
        before = clock.monotonic() + self._find_turn_seconds(host)
        if waits_in is None:
            member = self._choose(host, claim)
            member.send(Visit(host, claim, before))
        elif waits_in.is_ready:
            member = waits_in
            member.send(GoOn(claim.url_id, before))
        else:
            # It begins again, where it began.
            self._put_back(claim)
            return
        member.under_way[claim.url_id] = claim

    def _find_turn_seconds(self, host: str) -> float:
        """How long a request may take to be sent: less than the next one waits, and not after the end of the lease."""
        if self._frontier.window.hosts.delay_seconds(host):
            return LATE_SECONDS
        return max(self._run.lease_until_ms - clock.boot_ms(), 0) / 1000

    async def finish(self) -> None:
        """Has the members end the visits that they have under way, and end themselves."""
        self._finishing = True
        self._begun.set()
        self._frontier.stop_handing_out()
        await asyncio.gather(*(member.finish() for member in self._members))
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._watching is not None:
            self._watching.cancel()
        for member in self._members:
            self._put_back_all(member)

    def _choose(self, host: str, claim: Claim) -> Member:
        """A member of few visits: for a host the same one, if it may be, and for an archive with all of its files."""
        ready = [member for member in self._members if member.is_ready]
        archive = claim.url.partition(MARK)[0]
        is_archive = archive != claim.url or is_called_archive(archive)
        home = ready[zlib.crc32((archive if is_archive else host).encode("utf-8", "replace")) % len(ready)]
        if (has_it := self._archives.get(archive)) is not None and has_it.is_ready:
            return has_it
        if is_archive:
            self._keep_archive(archive, home)
            return home
        least = min(ready, key=lambda member: len(member.under_way))
        return home if len(home.under_way) <= len(least.under_way) + _SPREAD else least

    def _keep_archive(self, archive: str, member: Member) -> None:
        """Has the files of an archive read by that member, also when others come or go."""
        self._archives[archive] = member
        if len(self._archives) > _MOST_ARCHIVES:
            self._archives.popitem(last=False)

    async def _connect(self, member: Member) -> None:
        await member.open(lambda message: self._take(member, message), lambda: self._start(self._replace(member)))

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_done)

    def _note_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, LogError):
            self._fail(error)
        elif isinstance(error, Exception):
            # What it was about would be waited for.
            logger.error("what a process of the run did cannot be taken over", exc_info=error)
            self._fail(WorkersUnavailable(f"what a process of the run did cannot be taken over: {error!r}"))

    def _take(self, member: Member, message: Any) -> None:
        if isinstance(message, Ended):
            self._start(self._end(member, message.unpack()))
        elif isinstance(message, Moved):
            self._move(member, message)
        elif isinstance(message, Ready):
            member.is_ready = True
            self._unbegun = 0
            self._begun.set()
            self.wake()
        elif isinstance(message, Logged):
            _log(message)
        elif isinstance(message, Failed):
            self._fail(message.error)
        elif isinstance(message, Stopped):
            self._run.shutdown.stop(message.reason)
        elif isinstance(message, Closed):
            self._close(member, message)

    async def _end(self, member: Member, item: Item) -> None:
        if member.under_way.pop(item.claim.url_id, None) is None:
            return
        self._lost_in_row = 0
        self._deaths.pop(item.claim.url_id, None)
        if isinstance(item, Document) and item.converter == ARCHIVE.name:
            self._keep_archive(item.claim.url, member)
        if self._is_full():
            # What comes meanwhile waits in the socket, and the member waits behind it.
            member.hold_back()
            await self._take_item(item)
            member.let_through()
        else:
            await self._take_item(item)
        self.wake()

    def _move(self, member: Member, message: Moved) -> None:
        found = member.under_way.pop(message.url_id, None)
        if found is not None:
            self._frontier.redirect(found, message.host, member)
            self.wake()

    def _close(self, member: Member, message: Closed) -> None:
        member.note_closed()
        self._begun.set()
        for name, count in message.stats.items():
            self.stats(name, count)
        self._run.count(**message.counts)
        if self._run.attributes is not None:
            self._run.attributes.unreadable.update(message.unreadable)
        if not self._finishing:
            # By itself, as for the limit of memory.
            self._run.shutdown.stop(message.reason)

    async def _replace(self, member: Member) -> None:
        """What follows when a member has ended: others visit what it had, and another one comes in its place."""
        self._unbegun += not member.is_ready
        member.is_ready = False
        death = await member.find_death()
        if member.has_closed:
            return
        logger.warning(
            "a process of the run ended by itself (%s); what it was visiting: %d", death.how, len(member.under_way)
        )
        self._lost_in_row += 1
        try:
            await self._settle(member, death)
        except (StoreError, LeaseLost) as error:
            self._fail(error)
            return
        if self._finishing or not self._may_follow(member, death):
            return
        try:
            self._members[member.number - 1] = follower = self._make_member(member.number)
        except WorkersUnavailable as error:
            self._fail(error)
            return
        await self._connect(follower)

    def _may_follow(self, member: Member, death: Death) -> bool:
        """Whether another one may come in the place of a member; ends the run where none may, and none is left."""
        if self._unbegun >= _MOST_LOST:
            member.has_closed = True
            logger.warning(
                "a process of the run is not replaced: the last %d did not come to visit anything", _MOST_LOST
            )
        if self._lost_in_row >= _MOST_LOST or all(each.has_closed for each in self._members):
            self._fail(WorkersUnavailable(f"processes of the run end one after the other ({death.how})"))
            return False
        return not member.has_closed

    def _fail(self, error: Exception) -> None:
        self._run.shutdown.fail(error)
        self._begun.set()

    async def _settle(self, member: Member, death: Death) -> None:
        """Decides about the visits that a member had under way when it ended."""
        visits = list(member.under_way.values())
        if death.by_visit and len(visits) == 1:
            claim = member.under_way.pop(visits[0].url_id)
            error = f"the process that read it stopped turning: {claim.url}"
            await self._take_item(Outcome(claim=claim, code=Code.CONVERSION_LIMIT, error=error, stopped_worker=True))
            return
        self._deaths.update(claim.url_id for claim in visits)
        last = [each for each in visits if death.stalled or self._deaths[each.url_id] >= _MOST_DEATHS]
        if last:
            await self._visit_last(last)
            for claim in last:
                del member.under_way[claim.url_id]
        for claim in visits:
            if claim.url_id in member.under_way and claim.url_id in death.parsed:
                # It may be the reason, or was there by chance: a worker reads it from now on.
                failures = Failures.parse(claim.failures).add_stop()
                member.under_way[claim.url_id] = replace(claim, failures=failures.dump())
        self._put_back_all(member)
        self.wake()

    async def _visit_last(self, claims: list[Claim]) -> None:
        rows = [claim.url_id for claim in claims]
        await asyncio.to_thread(self._run.write, lambda transaction: url_queue.suspect(transaction, rows))
        for claim in claims:
            self._frontier.window.release(claim.url_id)
            logger.warning("visited last, for processes of the run ended while they visited it: %s", claim.url)
        self._frontier.claiming.note_committed(len(claims))

    def _put_back_all(self, member: Member) -> None:
        for claim in member.under_way.values():
            self._put_back(claim)
        member.under_way.clear()

    def _put_back(self, claim: Claim) -> None:
        """Has a visit wait at its first host: whoever was redirected begins anew, under the limits of that host."""
        self._frontier.put_back(claim, urls.host_and_port(claim.url))


def _log(message: Logged) -> None:
    record = logging.makeLogRecord(dict(message.facts))
    # It is cleaned where it is set, and so far it was only there.
    record.exc_text = message.facts["exc_text"]
    target = logging.getLogger(record.name)
    if target.isEnabledFor(record.levelno):
        target.handle(record)
