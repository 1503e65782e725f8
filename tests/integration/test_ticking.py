"""What ticks start, over simulated days with crawls that are not real: each due run begins once (H1–H3, H5, H8)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from searchcrawl.exceptions import Exit, SourceBusy, StoreError
from searchcrawl.operations.stopping import stop
from searchcrawl.scheduling import launching
from searchcrawl.scheduling.planner import StartPlan, find_next, list_plans
from searchcrawl.scheduling.service import Service
from searchcrawl.scheduling.ticking import Ticking
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import holder, job_table, lease, run_table
from searchcrawl.store.runs.job_table import JobState
from tests.integration.support_ticking import HOUR, MINUTE, MONDAY, World, cron, every


@pytest.fixture
def begun(make: Callable[..., World]) -> World:
    """One whose crawl of ``a``, due every ten hours, has begun."""
    world = make(schedules={"s": every(600)})
    world.tick()
    world.begin("a")
    return world


def test_interval_when_ticks_come_each_minute_then_runs_begin_on_time_and_an_overrun_is_reported(
    make: Callable[..., World],
) -> None:
    world = make(schedules={"s": every(10)})

    starts, overruns = [], []
    for minute in range(41):
        done = world.tick(1 if minute else 0)
        if done.started:
            starts.append(minute)
            world.begin("a")
        overruns += [minute] if done.overrun else []
        # The second one takes 15 minutes.
        if minute in {5, 25, 35}:
            world.end("a")

    assert (starts, overruns) == ([0, 10, 30, 40], [20])


def test_ticks_when_several_come_at_once_then_one_run_begins(make: Callable[..., World]) -> None:
    world = make(schedules={"s": every(10, "a", "b", "c")}, max_parallel=2)

    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda _: world.tick(), range(4)))

    assert sorted(name for name, _ in world.launched) == ["a", "b"]
    assert sorted(name for each in done for name in each.started) == ["a", "b"]
    assert world.job("c").state is JobState.WAITING


def test_parallel_limit_when_reached_then_others_wait_for_their_turn(make: Callable[..., World]) -> None:
    world = make(schedules={"s": every(60, "a", "b"), "t": every(90, "c")}, max_parallel=1)

    order = []
    for _ in range(4):
        done = world.tick(1)
        order += done.started
        for name in done.started:
            world.begin(name)
        assert world.tick(1).started == []
        for name in [*world.leases]:
            world.end(name)

    assert order == ["a", "b", "c"]


def test_crawl_when_it_dies_then_begins_again_after_pauses_that_grow_and_each_old_start_is_over(
    make: Callable[..., World],
) -> None:
    world = make(schedules={"s": cron("0 0 * * *")})
    assert world.tick().started == ["a"]

    pauses, failures = [], []
    for _ in range(4):
        token = world.launched[-1][1]
        world.begin("a")
        world.kill("a")
        failures.append(world.tick().failed)
        seconds = 0
        while not world.tick(1 / 60).started:
            seconds += 1
        pauses.append(seconds + 1)
        with pytest.raises(SourceBusy, match="this start of it is over"):
            world.begin("a", token)

    assert pauses == [10, 20, 40, 80]
    # It is said once, not with each try.
    assert failures == [{"a": "its process ended in the middle of the run"}, {}, {}, {}]
    world.begin("a")
    world.end("a")
    assert [world.tick(60).started for _ in range(22)] == [[]] * 22


def test_crawl_when_its_heartbeat_is_late_and_its_process_lives_then_it_goes_on_and_is_begun_once(
    begun: World,
) -> None:
    begun.silence("a")

    asleep = begun.tick(1)
    begun.end("a")

    assert (asleep.running, asleep.failed) == (["a"], {})
    assert [begun.tick(minutes).started for minutes in (1, 60, 536, 2)] == [[], [], [], ["a"]]


ELSEWHERE = "elsewhere machine 1 boot 1 namespace 1 process 1 started 1"


def test_crawl_when_it_was_given_up_and_ends_well_then_is_not_begun_again(begun: World) -> None:
    begun.silence("a", ELSEWHERE)

    given_up = begun.tick()
    begun.end("a")

    assert list(given_up.failed) == ["a"]
    assert (begun.job("a").state, [begun.tick(minutes).started for minutes in (1, 60)]) == (JobState.ENDED, [[], []])


def test_crawl_when_it_was_given_up_and_goes_on_then_its_job_does_and_one_that_is_stopped_waits(
    begun: World,
) -> None:
    taken, _ = begun.leases["a"]
    begun.silence("a", ELSEWHERE)
    begun.tick()
    begun.database.write(lease.renew, taken)

    again = begun.tick()
    begun.silence("a", ELSEWHERE)
    begun.tick()
    begun.end("a", Exit.ENDED_EARLY)

    assert (again.running, again.waiting) == (["a"], [])
    assert [begun.tick(1).started, begun.launched != []] == [["a"], True]


@pytest.mark.parametrize(
    ("stops", "exit_code", "state"),
    [
        (False, Exit.DONE, JobState.ENDED),
        (False, Exit.ENDED_EARLY, JobState.WAITING),
        (True, Exit.ENDED_EARLY, JobState.ENDED),
    ],
)
def test_service_when_it_ends_then_what_was_cut_off_goes_on_but_not_what_finished_or_was_stopped_by_somebody(
    begun: World, *, stops: bool, exit_code: Exit, state: JobState
) -> None:
    service = Service(lambda: begun.project, begun.database, tell=print, warn=print)

    assert len(service.find_crawls()) == 1
    if stops:
        stop(begun.database, "a", wait_seconds=0)
    assert len(service.find_crawls()) == 1
    begun.end("a", exit_code)

    assert begun.job("a").state is state
    assert service.find_crawls() == []


def test_crawl_when_a_signal_ends_it_then_goes_on_after_a_pause_but_a_cancelled_one_of_a_scrapyd_does_not(
    make: Callable[..., World],
) -> None:
    world = make(schedules={"s": every(600, "a", "b")})
    world.tick()
    for name in ("a", "b"):
        world.begin(name)
    world.change("b", place="http://127.0.0.1:6800")

    for name in ("a", "b"):
        world.end(name, Exit.ENDED_EARLY, interrupted=True)
    soon, later = world.tick(0.1), world.tick(0.2)

    assert (soon.waiting, soon.started, later.started) == (["a"], [], ["a"])
    assert world.job("b").state is JobState.ENDED


def test_source_when_it_waits_for_its_turn_then_no_overrun_is_said_of_it(make: Callable[..., World]) -> None:
    world = make(schedules={"s": every(10, "a", "b")}, max_parallel=1)
    world.tick()
    world.begin("a")

    late = world.tick(11)

    assert (late.overrun, late.waiting, world.job("b").overruns) == (["a"], ["b"], 0)


def test_source_when_a_command_holds_it_for_a_moment_then_its_crawl_is_tried_again(make: Callable[..., World]) -> None:
    world = make(schedules={"s": every(10)})
    world.tick()
    ((_, token),) = world.launched
    with world.database.write_once() as opened:
        source_id = run_table.find_or_add_source(opened, "a")
        held = lease.take(opened, source_id, name="a")
    with pytest.raises(SourceBusy):
        world.begin("a", token)
    world.database.write(job_table.end, source_id, token, exit_code=Exit.BUSY, error="busy", now_ms=world.now)

    busy = world.tick(11)
    world.database.write(lease.release, held)

    assert (busy.started, busy.waiting, busy.overrun, busy.failed) == ([], ["a"], [], {})
    assert world.tick().started == ["a"]


@pytest.mark.parametrize("known", ["child", "launcher"])
def test_start_when_its_process_ended_before_the_run_began_then_is_tried_again(
    make: Callable[..., World], known: str
) -> None:
    world = make(schedules={"s": every(600)})
    world.tick()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    text = holder.describe_process(ended.pid)
    ended.wait()
    # A tick that was killed has not noted which process it started.
    world.change("a", **{"child": "", known: text})

    first, second = world.tick(), world.tick(1)

    assert (first.started, second.started) == ([], ["a"])
    assert "ended" in first.failed["a"]
    old, new = (token for _, token in world.launched)
    with pytest.raises(SourceBusy):
        world.begin("a", old)
    world.begin("a", new)


def test_start_when_nothing_can_be_started_then_waits_and_says_so_once(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(schedules={"s": every(600)})

    def fail(project: Project, name: str, token: str) -> Any:
        raise OSError(12, "no memory")

    with monkeypatch.context() as broken:
        broken.setattr(launching, "start_process", fail)
        done = [world.tick(1) for _ in range(8)]
    world.tick(60)

    assert [each.failed for each in done] == [{"a": "[Errno 12] no memory"}, *[{}] * 7]
    assert [name for name, _ in world.launched] == ["a"]


def test_start_when_the_store_fails_after_it_then_the_others_are_started_and_the_children_are_known(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(schedules={"s": every(600, "a", "b", "c")}, max_parallel=9)

    def fail(*args: Any) -> None:
        raise StoreError("the store is away")

    monkeypatch.setattr(job_table, "note_child", fail)
    done = world.tick()

    assert sorted(name for name, _ in world.launched) == ["a", "b", "c"]
    assert (len(done.children), sorted(done.started), str(done.error)) == (3, ["a", "b", "c"], "the store is away")


@pytest.mark.parametrize(("misfire", "started"), [("run_once", ["a"]), ("skip", [])])
def test_moments_when_nothing_was_there_to_start_them_then_are_one_run_or_none(
    make: Callable[..., World], misfire: str, started: list[str]
) -> None:
    world = make(schedules={"s": cron("0 * * * *", misfire=misfire)})
    world.tick_and_end()

    late = world.tick_and_end(10 * 60 + 30)
    on_time = world.tick(31)

    assert (late.started, bool(late.skipped), on_time.started) == (started, not started, ["a"])


def test_window_when_a_moment_is_outside_then_one_run_begins_when_it_opens(make: Callable[..., World]) -> None:
    world = make(schedules={"s": cron("0 * * * *", window={"from": "22:00", "to": "02:00"}, misfire="skip")})
    starts = []
    for minute in range(24 * 60 + 1):
        done = world.tick_and_end(1 if minute else 0)
        assert done.skipped == []
        starts += [minute // 60] * len(done.started)

    assert starts == [0, 1, 22, 23, 24]


def test_source_when_suspended_or_its_schedule_is_disabled_then_nothing_begins_and_moments_are_over(
    make: Callable[..., World],
) -> None:
    hourly = {"s": cron("0 * * * *")}
    world = make(schedules=hourly)
    world.tick_and_end()

    world.suspend("a", suspended=True)
    suspended = [world.tick(30).started for _ in range(5)]
    world.suspend("a", suspended=False)
    resumed = world.tick(10).started
    world.configure(schedules={"s": cron("0 * * * *", enabled=False)})
    disabled = [world.tick(40).started for _ in range(5)]
    world.configure(schedules=hourly)
    enabled = [world.tick(minutes).started for minutes in (5, 5, 60)]

    assert (suspended, resumed, disabled) == ([[]] * 5, [], [[]] * 5)
    assert enabled == [[], [], ["a"]]


def test_schedule_when_it_is_edited_or_new_then_what_was_due_before_is_over(make: Callable[..., World]) -> None:
    world = make(schedules={"s": cron("0 12 * * *", timezone="UTC")})
    world.tick(13 * 60)
    world.configure(schedules={"s": cron("0 11 * * *", timezone="UTC")})

    assert [world.tick(minutes).started for minutes in (1, 22 * 60 - 2, 1)] == [[], [], ["a"]]


@pytest.mark.parametrize("schedule", [every(60), cron("0 * * * *")])
def test_clock_when_it_was_years_ahead_once_then_runs_go_on(
    make: Callable[..., World], schedule: dict[str, Any]
) -> None:
    world = make(schedules={"s": schedule})
    for days in (0, 4000, -4000):
        world.tick_and_end(days * 24 * 60)

    starts = sum(len(world.tick_and_end(15).started) for _ in range(24 * 4))

    assert starts in {23, 24}


def test_next_run_when_asked_then_it_is_when_a_tick_starts_it(make: Callable[..., World]) -> None:
    schedules = {"s": cron("30 4 * * *"), "t": every(90, "b", window={"from": "06:00", "to": "09:00"})}
    world = make(schedules=schedules)
    world.tick(60)
    plans = list_plans(world.project.schedules)

    following = [find_next(world.job(name), plans[name], world.now) for name in ("a", "b")]

    assert following == [MONDAY + 4 * HOUR + 30 * MINUTE, MONDAY + 6 * HOUR]
    assert find_next(None, StartPlan(name="c"), world.now) is None


def test_tick_when_the_store_is_new_then_a_second_process_finds_the_same(make: Callable[..., World]) -> None:
    world = make(schedules={"s": every(60)})
    world.tick()

    with closing(Database(world.project.database_url, world.root)) as other:
        done = Ticking(world.project, other).tick(now_ms=world.now)

    assert (done.started, done.running) == ([], ["a"])
