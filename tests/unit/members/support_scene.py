"""A run whose members have no process: tests say what comes from each, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from searchcrawl.commit.group_commit import WriterQueue
from searchcrawl.items import Claim, Document, Outcome
from searchcrawl.members.member import Death
from searchcrawl.members.members import Members
from searchcrawl.members.messages import Ready, Visit
from searchcrawl.urls import host_and_port
from tests.filled_store import SITE, FilledStore
from tests.unit.frontier.test_frontier import build_frontier

HOST: Final = host_and_port(SITE)
KILLED: Final = Death("signal 9", stalled=False, by_visit=False)


class FakeMember:
    """A member without a process; tests say what comes from it, and how it ends. The first message is ``first``."""

    def __init__(self, number: int, first: Any) -> None:
        self.number = number
        self.first = first
        self.is_ready = self.has_closed = False
        self.under_way: dict[int, Claim] = {}
        self.sent: list[Any] = []
        self.death = KILLED
        self.pings = 0
        self.killed = asyncio.Event()

    async def open(self, take: Callable[[Any], None], lost: Callable[[], None]) -> None:
        self.take, self.lose = take, lost
        take(self.first)

    def note_closed(self) -> None:
        self.has_closed = True

    def kill(self) -> None:
        self.killed.set()

    def send(self, message: Any) -> None:
        self.sent.append(message)

    async def finish(self) -> None:
        self.is_ready = False

    async def find_death(self) -> Death:
        return self.death

    def ping(self) -> int:
        self.pings += 1
        return self.pings

    def hold_back(self) -> None:
        pass

    let_through = hold_back


class Scene:
    """A run with rows that are claimed, its members, and what was handed to the writer."""

    def __init__(self, filled: FilledStore, count: int, stall_seconds: float = 0.0) -> None:
        self.run = filled.run
        self.frontier = build_frontier(filled, WriterQueue())
        #: what members say first
        self.first: Any = Ready()
        self.made: list[FakeMember] = []
        self.taken: list[Document | Outcome] = []
        self.members = Members(
            self.run, self.frontier, self._make, count=count, is_full=lambda: False, stall_seconds=stall_seconds
        )
        self.failures: list[Exception] = []
        self.run.shutdown.fail = self.failures.append  # type: ignore[method-assign]

    def _make(self, number: int) -> Any:
        self.made.append(FakeMember(number, self.first))
        return self.made[-1]

    async def take(self, item: Document | Outcome) -> None:
        self.taken.append(item)
        self.frontier.end_visit(item)

    async def visit(self, count: int) -> list[Claim]:
        """Has so many rows visited."""
        claims = []
        async with asyncio.timeout(20):
            while len(claims) < count:
                found = self.frontier.next_claim()
                if found is None:
                    await asyncio.sleep(0.01)
                    continue
                self.members.visit(*found)
                claims.append(found[1])
        return claims

    async def visit_one(self) -> tuple[Claim, FakeMember]:
        """Has one row visited; by whom."""
        (claim,) = await self.visit(1)
        (member,) = (member for member in self.made if member.under_way)
        return claim, member

    def list_sent(self) -> list[Visit]:
        """What all members were told to visit."""
        return [message for each in self.made for message in each.sent if isinstance(message, Visit)]

    async def lose(self, member: FakeMember, death: Death) -> None:
        member.death = death
        member.lose()
        while self.members._tasks:
            await asyncio.wait(self.members._tasks)


def play(filled: FilledStore, work: Callable[[Scene], Any], *, count: int = 2) -> Scene:
    async def run() -> Scene:
        scene = Scene(filled, count)
        await scene.members.open(scene.take)
        scene.frontier.start(lambda: None)
        # A host gets more than one request at once when it has answered.
        scene.frontier.window.hosts.find_or_add(HOST).visited = True
        try:
            await work(scene)
        finally:
            scene.frontier.close()
        return scene

    return asyncio.run(run())
