"""What becomes of the job of a source at a moment: decisions, which write and start nothing (H2, H3, H5, H8).

A schedule is due at moments of ``cron`` or every so many minutes, within its time of the week (H1, H2). Moments are
milliseconds since 1970. What daylight saving time skips of ``cron`` is due right after the gap, and what it repeats is due
once, as Debian's cron has it; expressions with a star in minute or hour follow the clock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import takewhile
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from searchcrawl import clock
from searchcrawl.exceptions import Exit
from searchcrawl.rules.week_window import WeekWindow, parse_days, parse_minute
from searchcrawl.sources.fetch_tables import WindowTable
from searchcrawl.sources.project import Schedule
from searchcrawl.store.runs.job_table import MAX_PAUSE_MS, Job, JobState, find_pause_ms

_LOCAL_ZONE: Final = Path("/etc/localtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """The moments of one schedule: those of ``cron`` in ``zone``, or one ``every_ms`` after the last."""

    cron: str | None
    every_ms: int
    window: WeekWindow | None
    zone: tzinfo

    def find_due(self, after_ms: int, now_ms: int) -> int | None:
        """The last moment after one, until now; None where there is none."""
        if self.cron is None:
            passed = (now_ms - after_ms) // self.every_ms
            return after_ms + passed * self.every_ms if passed > 0 else None
        # Moments are listed from some day on: all those of a year, each minute, would be many.
        for begin_ms in (max(after_ms, now_ms - clock.DAY_MS), after_ms):
            *_, last = None, *takewhile(lambda moment: moment <= now_ms, self._list(begin_ms))
            if last is not None:
                return last
        return None

    def find_next(self, after_ms: int) -> int:
        """The first moment after one, put off until a run may begin."""
        moment = after_ms + self.every_ms if self.cron is None else next(self._list(after_ms))
        return self.find_opening(moment)

    def find_opening(self, moment_ms: int) -> int:
        """The first moment from this one on at which a run may begin."""
        if self.window is None:
            return moment_ms
        local = clock.from_ms(moment_ms).astimezone(self.zone)
        if self.window.covers(local.weekday(), local.hour * 60 + local.minute):
            return moment_ms
        begin = time(*divmod(self.window.from_minute, 60), tzinfo=self.zone)
        days = (local.date() + timedelta(days=number) for number in range(9))
        openings = (datetime.combine(day, begin) for day in days if day.weekday() in self.window.days)
        return next(found for each in openings if (found := clock.to_ms(each)) >= moment_ms)

    def _list(self, after_ms: int) -> Iterator[int]:
        """The moments of ``cron`` after one."""
        # Only projects with schedules need it.
        from cronsim import CronSim  # noqa: PLC0415

        begin = clock.from_ms(after_ms).astimezone(self.zone)
        found = (clock.to_ms(each.astimezone(UTC)) for each in CronSim(self.cron or "", begin))
        # In an hour that comes twice it begins with the first one.
        return (moment for moment in found if moment > after_ms)


def build_timetable(schedule: Schedule) -> Timetable:
    """The timetable of a schedule; without ``timezone`` in the zone of the machine."""
    return Timetable(
        cron=schedule.cron,
        # However small: it is divided by.
        every_ms=max(round((schedule.every_minutes or 0) * 60_000), 1),
        window=None if schedule.window is None else _build_window(schedule.window),
        zone=ZoneInfo(schedule.timezone) if schedule.timezone else find_machine_zone(),
    )


def _build_window(window: WindowTable) -> WeekWindow:
    begin, end = parse_minute(window.from_), parse_minute(window.to)
    return WeekWindow(days=parse_days(window.days), from_minute=begin, to_minute=end)


def find_machine_zone() -> tzinfo:
    """The time zone of the machine with its daylight saving time: that of ``TZ``, or of /etc/localtime."""
    name = os.environ.get("TZ", "").removeprefix(":")
    try:
        if name:
            return ZoneInfo(name)
        with _LOCAL_ZONE.open("rb") as file:
            return ZoneInfo.from_file(file, key="localtime")
    except (OSError, ValueError, ZoneInfoNotFoundError):
        # As it is now, whatever names it.
        return clock.now().astimezone().tzinfo or UTC


#: A moment that is over for longer was missed: nothing was there to start a run.
GRACE_MS: Final = 300_000
#: A crawl that was started claims its job in this time.
LAUNCH_MS: Final = 300_000
#: A run that is due for longer, and could begin, is overdue: its turn does not come, or nothing looks at the clock.
OVERDUE_MS: Final = 3_600_000
#: Moments of a schedule that was just written, which passed before anything read it.
_NEW_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPlan:
    """What the files say of a source: without a ``timetable`` nothing is started by itself."""

    name: str
    spec: str = ""
    timetable: Timetable | None = None
    skips_missed: bool = False
    mode: str | None = None
    scrapyds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is seen of a job from outside: ``fence`` is that of the living process which has its source (0: none).

    ``living`` is that of a process of this machine which holds it still, even if its heartbeat is late.
    ``lost`` says why a start that was ordered will never begin; "" where it may.
    """

    suspended: bool = False
    fence: int = 0
    living: int = 0
    lost: str = ""


def list_plans(schedules: Mapping[str, Schedule]) -> dict[str, StartPlan]:
    """What the schedules say, by source."""
    found: dict[str, StartPlan] = {}
    for schedule in schedules.values():
        timetable = build_timetable(schedule) if schedule.enabled else None
        window = schedule.window.model_dump_json() if schedule.window else ""
        spec = f"{schedule.cron or schedule.every_minutes} {schedule.timezone or ''} {window}"
        skips = schedule.misfire == "skip"
        for name in schedule.sources:
            found[name] = StartPlan(
                name=name,
                spec=spec if schedule.enabled else "",
                timetable=timetable,
                skips_missed=skips,
                mode=schedule.mode,
                scrapyds=schedule.scrapyd,
            )
    return found


def decide(job: Job, plan: StartPlan, seen: Seen, now_ms: int) -> Job:
    """The job as it is at this moment: one that died waits again, one that is due begins to wait."""
    return _look_at_clock(_settle(job, plan, seen, now_ms), plan, seen, now_ms)


def choose(jobs: Mapping[int, tuple[StartPlan, Job, Seen]], *, max_parallel: int, now_ms: int) -> list[int]:
    """Which jobs are to be started now, those that wait longest first (H5)."""
    places = max_parallel - sum(job.is_started for _, job, _ in jobs.values())
    ready = [
        (job.planned_ms or 0, plan.name, number)
        for number, (plan, job, seen) in jobs.items()
        if job.state is JobState.WAITING
        and job.not_before_ms <= now_ms
        and not seen.suspended
        # Somebody crawls it by hand, or works on it between runs.
        and not seen.fence
        and plan.timetable is not None
        and plan.timetable.find_opening(now_ms) <= now_ms
    ]
    return [number for _, _, number in sorted(ready)[: max(places, 0)]]


def find_next(job: Job | None, plan: StartPlan, now_ms: int) -> int | None:
    """When the next run of a source is to begin; None where nothing starts it by itself."""
    timetable = plan.timetable
    if timetable is None:
        return None
    job = _anchor(job or Job(), plan, now_ms)
    if job.state is JobState.WAITING:
        return timetable.find_opening(max(job.not_before_ms, now_ms))
    due = timetable.find_due(job.anchor_ms or 0, now_ms)
    return timetable.find_opening(now_ms) if due is not None else timetable.find_next(job.anchor_ms or 0)


def find_overdue(job: Job | None, plan: StartPlan, now_ms: int) -> int | None:
    """Since when a run is due that should have begun long ago; None where there is none."""
    timetable = plan.timetable
    if timetable is None or (job is not None and job.is_started) or timetable.find_opening(now_ms) > now_ms:
        return None
    job = _anchor(job or Job(), plan, now_ms)
    if job.state is JobState.WAITING:
        # One that died, or could not be started, may wait for its next try.
        due_ms = max(job.planned_ms or now_ms, job.not_before_ms)
    else:
        # Those that have passed since are one run.
        due_ms = timetable.find_next(job.anchor_ms or 0)
    return due_ms if now_ms - due_ms > OVERDUE_MS else None


def find_unstarted(job: Job | None) -> str | None:
    """Why the crawl of a job could not be started, "" where it could; None where that is not known yet."""
    if job is None or job.state in {JobState.NONE, JobState.RUNNING}:
        return ""
    # What was crawled by hand meanwhile, or died in the middle of its run, was started.
    by_others = job.state is JobState.WAITING and (job.token or job.exit_code == Exit.BUSY)
    if job.error and not by_others:
        return job.error
    return "" if job.state is JobState.ENDED else None


def _settle(job: Job, plan: StartPlan, seen: Seen, now_ms: int) -> Job:
    """The job after what has become of its process."""
    if job.state is JobState.WAITING and job.token and job.fence == seen.fence:
        # It was given up, and its process goes on.
        job = replace(job, state=JobState.RUNNING, error=None)
    lost = seen.lost if job.state is JobState.LAUNCHING else ""
    if job.state is JobState.RUNNING and job.fence not in {seen.fence, seen.living}:
        lost = "its process ended in the middle of the run"
    if lost:
        pause_ms = 0 if job.resumes else find_pause_ms(job.attempt)
        # What has begun may be on another machine and end well: its token says which try that was.
        token = job.token if job.state is JobState.RUNNING else ""
        job = replace(
            job, state=JobState.WAITING, token=token, resumes=False, error=lost, not_before_ms=now_ms + pause_ms
        )
    if job.state is JobState.WAITING and (seen.suspended or plan.timetable is None):
        return replace(job, state=JobState.ENDED, attempt=0)
    return job


def _look_at_clock(job: Job, plan: StartPlan, seen: Seen, now_ms: int) -> Job:
    """The job after the moments that have passed; each is dealt with once (H2)."""
    job, timetable = _anchor(job, plan, now_ms), plan.timetable
    if timetable is None:
        return job
    due = timetable.find_due(job.anchor_ms or 0, now_ms)
    if due is None or timetable.find_opening(now_ms) > now_ms:
        return job
    job = replace(job, anchor_ms=due)
    if seen.suspended:
        return job
    if job.is_active:
        # One that only waits for its turn does not take too long.
        return replace(job, overruns=job.overruns + bool(job.fence))
    if plan.skips_missed and now_ms - timetable.find_opening(due) > GRACE_MS:
        return replace(job, skipped=job.skipped + 1)
    return replace(
        job,
        state=JobState.WAITING,
        planned_ms=due,
        attempt=0,
        not_before_ms=0,
        token="",
        fence=0,
        error=None,
        exit_code=None,
        overruns=0,
        skipped=0,
    )


def _anchor(job: Job, plan: StartPlan, now_ms: int) -> Job:
    """The job with a moment from which its schedule counts, whatever was edited, and wherever the clock was set."""
    timetable, anchor_ms = plan.timetable, job.anchor_ms
    if job.not_before_ms > now_ms + MAX_PAUSE_MS:
        job = replace(job, not_before_ms=now_ms)
    if timetable is None:
        return job if job.spec == "" else replace(job, spec="")
    if timetable.cron is None:
        # The first run is due at once; after a pause of the schedule the time counts anew.
        begin_ms = now_ms - timetable.every_ms if anchor_ms is None else now_ms
        if anchor_ms is None or anchor_ms > now_ms or job.spec == "":
            anchor_ms = begin_ms
    elif anchor_ms is None or job.spec != plan.spec:
        # What was due before the edit is over.
        anchor_ms = max(min(anchor_ms or 0, now_ms), now_ms - _NEW_MS)
    elif anchor_ms > now_ms + clock.DAY_MS:
        # The clock was far ahead. If it was less, its moments were dealt with, and do not come again.
        anchor_ms = now_ms
    return replace(job, spec=plan.spec, anchor_ms=anchor_ms)
