"""Which member visits what, and what becomes of the visits of one that ended by itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any, Final

import pytest
from sqlalchemy import func, select

from searchcrawl.codes import Code
from searchcrawl.counters import SHELLS
from searchcrawl.exceptions import WorkersUnavailable
from searchcrawl.items import Outcome
from searchcrawl.members import member as member_module
from searchcrawl.members import members as members_module
from searchcrawl.members.member import Death, Member
from searchcrawl.members.members import Members
from searchcrawl.members.messages import Closed, Ended, Forget, GoOn, Moved, Pong
from searchcrawl.rules.attribute_values import AttributeMap
from searchcrawl.rules.lifecycle import has_stopped
from searchcrawl.store.schema import urls
from searchcrawl.store.states import FetchState
from tests.filled_store import SITE, FilledStore
from tests.unit.frontier.test_frontier import build_frontier
from tests.unit.members.support_scene import HOST, KILLED, FakeMember, Scene, play

_OTHER: Final = "other.example:80"
_STALLED: Final = Death("it stopped turning", stalled=True, by_visit=True)
_FROZEN: Final = Death("it stopped turning", stalled=True, by_visit=False)


@pytest.fixture
def filled(filled: FilledStore) -> FilledStore:
    filled.admit(*(f"/{number}" for number in range(8)))
    return filled


def count_state(filled: FilledStore, state: FetchState) -> int:
    """How many rows have a state."""
    query = select(func.count()).where(urls.c.fetch_state == int(state))
    return int(filled.run.read(lambda transaction: transaction.execute(query).scalar_one()))


def test_visit_when_a_host_has_several_then_members_share_them(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        await scene.visit(4)
        loads = sorted(len(member.under_way) for member in scene.made)
        assert loads[0] >= 1
        assert sum(loads) == 4

    play(filled, work)


def test_visit_when_it_was_redirected_then_it_goes_on_where_it_was(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        claim, member = await scene.visit_one()
        member.take(Moved(claim.url_id, "b.example:80"))
        assert not member.under_way
        async with asyncio.timeout(20):
            while not any(isinstance(message, GoOn) for message in member.sent):
                await scene.visit(1)
        assert claim.url_id in member.under_way

    play(filled, work)


def test_visit_when_its_member_ended_meanwhile_then_another_begins_anew(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        claim, member = await scene.visit_one()
        member.take(Moved(claim.url_id, "b.example:80"))
        await scene.lose(member, KILLED)
        await scene.visit(5)
        assert [message.claim.url_id for message in scene.list_sent()].count(claim.url_id) == 2

    play(filled, work)


@pytest.mark.parametrize("goes_on", [False, True])
def test_visit_when_its_member_ended_meanwhile_then_it_begins_under_the_limits_of_its_first_host(
    filled: FilledStore, goes_on: bool
) -> None:
    async def work(scene: Scene) -> None:
        claim, member = await scene.visit_one()
        member.take(Moved(claim.url_id, _OTHER))
        if goes_on:
            async with asyncio.timeout(20):
                while not any(isinstance(message, GoOn) for message in member.sent):
                    await scene.visit(1)
        await scene.lose(member, KILLED)
        scene.frontier.window.hosts.find_or_add(_OTHER).visited = True
        begun: list[str] = []
        while len(begun) < 2:
            await scene.visit(1)
            begun = [message.host for message in scene.list_sent() if message.claim.url_id == claim.url_id]
        assert begun == [HOST, HOST]

    play(filled, work)


def test_visit_when_its_new_host_is_blocked_meanwhile_then_its_member_forgets_it(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        claim, member = await scene.visit_one()
        member.take(Moved(claim.url_id, _OTHER))
        scene.frontier.settle(Outcome(claim=claim, code=429))
        assert Forget(claim.url_id) in member.sent
        assert scene.frontier.take_redirected(claim) is None

    play(filled, work)


def test_archive_when_members_come_and_go_then_its_files_are_read_where_it_is(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        (claim,) = await scene.visit(1)
        archives = [replace(claim, url=f"{SITE}{number}.zip!/file.txt") for number in range(20)]
        before = [scene.members._choose(HOST, each) for each in archives]
        gone: Any = scene.made[2]
        gone.is_ready = False
        again = [scene.members._choose(HOST, each) for each in archives]
        left = [(now, then) for now, then in zip(again, before, strict=True) if then is not gone]
        assert {id(each) for each in before} == {id(each) for each in scene.made}
        assert all(now is then for now, then in left)
        assert gone not in again

    play(filled, work, count=3)


def test_death_when_it_was_killed_then_its_visits_go_to_others_and_nobody_is_blamed(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        claims = await scene.visit(4)
        lost = max(scene.made, key=lambda member: len(member.under_way))
        ids = set(lost.under_way)
        await scene.lose(lost, KILLED)
        assert len(scene.made) == 3
        again = await scene.visit(len(ids))
        assert {claim.url_id for claim in again} == ids
        assert not scene.taken
        assert len(claims) == 4

    play(filled, work)


def test_death_when_it_stopped_turning_with_one_page_then_this_one_is_blamed(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        claim, member = await scene.visit_one()
        await scene.lose(member, _STALLED)
        (outcome,) = scene.taken
        assert isinstance(outcome, Outcome)
        assert (outcome.claim, outcome.code, outcome.stopped_worker) == (claim, Code.CONVERSION_LIMIT, True)

    play(filled, work)


@pytest.mark.parametrize(("death", "pages"), [(_STALLED, 3), (_FROZEN, 1)])
def test_death_when_it_stopped_turning_and_nobody_knows_why_then_its_pages_are_visited_last(
    filled: FilledStore, death: Death, pages: int
) -> None:
    async def work(scene: Scene) -> None:
        claims = await scene.visit(pages)
        (member,) = (member for member in scene.made if member.under_way)
        await scene.lose(member, death)
        assert not scene.taken
        assert count_state(filled, FetchState.SUSPECT) == len(claims)
        assert scene.frontier.in_flight() == 0

    play(filled, work, count=1)


def test_death_when_a_page_is_under_way_each_time_then_it_is_visited_last(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        for _ in range(3):
            await scene.visit(1)
            await scene.lose(scene.made[-1], KILLED)
        assert count_state(filled, FetchState.SUSPECT) == 1
        assert not scene.failures

    play(filled, work, count=1)


def test_death_when_it_was_parsing_a_page_then_a_worker_reads_that_one_and_nobody_is_blamed(
    filled: FilledStore,
) -> None:
    async def work(scene: Scene) -> None:
        (claim, *others) = await scene.visit(3)
        await scene.lose(scene.made[-1], KILLED._replace(parsed=frozenset({claim.url_id})))
        again = {each.url_id: has_stopped(each.failures) for each in await scene.visit(3)}
        assert again == {claim.url_id: True, **{each.url_id: False for each in others}}
        assert (scene.taken, count_state(filled, FetchState.SUSPECT)) == ([], 0)

    play(filled, work, count=1)


def test_death_when_no_visit_ends_in_between_then_the_run_does(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        for _ in range(5):
            await scene.lose(scene.made[-1], KILLED)
        assert isinstance(scene.failures[0], WorkersUnavailable)
        assert len(scene.made) == 5

    play(filled, work, count=1)


def test_death_when_those_that_follow_cannot_begin_then_the_others_go_on_without_them(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        scene.first = Pong()
        await scene.lose(scene.made[1], KILLED)
        for _ in range(5):
            (claim,) = await scene.visit(1)
            scene.made[0].take(Ended(Outcome(claim=claim, code=404)))
            await asyncio.sleep(0.01)
            await scene.lose(scene.made[-1], KILLED)
        assert not scene.failures
        await scene.visit(1)
        assert scene.made[0].under_way
        await scene.lose(scene.made[0], KILLED)
        assert isinstance(scene.failures[0], WorkersUnavailable)
        assert len(scene.made) == 7

    play(filled, work)


def test_end_when_visits_end_in_between_then_deaths_end_no_run(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        for _ in range(7):
            (claim,) = await scene.visit(1)
            scene.made[-1].take(Ended(Outcome(claim=claim, code=404)))
            await asyncio.sleep(0.01)
            await scene.lose(scene.made[-1], KILLED)
        assert not scene.failures
        assert len(scene.taken) == 7

    play(filled, work, count=1)


@pytest.mark.parametrize(("start_seconds", "killed"), [(0.1, [True, True]), (60.0, [True, False])])
def test_member_when_it_does_not_answer_then_it_is_ended_later_where_it_has_not_begun(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch, start_seconds: float, killed: list[bool]
) -> None:
    monkeypatch.setattr(members_module, "_START_SECONDS", start_seconds)

    async def run() -> Scene:
        scene = Scene(filled, 2, stall_seconds=0.02)
        await scene.members.open(scene.take)
        scene.made[1].is_ready = False
        async with asyncio.timeout(20):
            for member, is_ended in zip(scene.made, killed, strict=True):
                if is_ended:
                    await member.killed.wait()
        # As long again as it took, and more.
        await asyncio.sleep(0.3)
        await scene.members.finish()
        return scene

    scene = asyncio.run(run())

    assert [member.killed.is_set() for member in scene.made] == killed


def test_member_when_it_does_not_end_after_its_last_visit_then_it_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_module, "_CLOSE_SECONDS", 0.01)

    async def run() -> None:
        process: Any = FakeMember(1, None)
        unused: Any = None
        member = Member(1, process, unused, unused, unused, unused, lambda send: unused)
        member.note_closed()
        assert not process.killed.is_set()
        async with asyncio.timeout(20):
            await process.killed.wait()

    asyncio.run(run())


@pytest.mark.parametrize("how", ["it closes", "the run ends"])
def test_open_when_the_run_is_to_end_before_a_member_can_visit_then_nobody_waits_for_it(
    filled: FilledStore, how: str
) -> None:
    async def run() -> Scene:
        scene = Scene(filled, 1)
        scene.made[0].first = Closed("mine", {}, {}, {}) if how == "it closes" else Pong()
        async with asyncio.timeout(20):
            opening = asyncio.ensure_future(scene.members.open(scene.take))
            if how == "the run ends":
                await asyncio.sleep(0.01)
                assert not opening.done()
                await scene.members.finish()
            await opening
        return scene

    scene = asyncio.run(run())

    assert not scene.members.has_room
    assert not scene.failures


def test_members_when_no_process_can_be_started_then_the_error_says_so(filled: FilledStore) -> None:
    def make(number: int) -> Any:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with pytest.raises(WorkersUnavailable, match=r"fetch\.processes.*temporarily unavailable"):
        Members(filled.run, build_frontier(filled), make, count=2, is_full=lambda: False)


def test_finish_when_visits_are_under_way_in_a_dead_member_then_they_are_claimed_by_nobody(filled: FilledStore) -> None:
    async def work(scene: Scene) -> None:
        await scene.visit(2)
        await scene.members.finish()
        assert not scene.members.has_room
        assert scene.frontier.in_flight() == 0

    play(filled, work)
    assert count_state(filled, FetchState.FETCHING) == 0


def test_close_when_each_member_tells_its_counts_then_they_are_added_up(filled: FilledStore) -> None:
    attributes = filled.run.attributes = AttributeMap([])
    stats: Counter[str] = Counter()

    async def work(scene: Scene) -> None:
        scene.members.stats = lambda name, count: stats.update({name: count})
        for member, count in zip(scene.made, (1, 2), strict=True):
            member.take(Closed("finished", {"pages": count}, {SHELLS: count}, {"size": count}))

    play(filled, work)

    assert (stats, attributes.unreadable) == ({"pages": 3}, {"size": 3})
    assert filled.run.copy_counts()[SHELLS] == 3
