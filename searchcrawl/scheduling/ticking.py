"""One tick: what is due begins to wait, what died waits again, and what has a place is started (H1–H3, H5, H8).

The decisions of a tick are one transaction over the rows of all sources: of two ticks at the same moment the second one
finds what the first one did. Processes are started after it, each for a try that the store knows (``store.runs.job_table``).
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from searchcrawl import clock
from searchcrawl.exceptions import StoreError
from searchcrawl.failpoints import reach
from searchcrawl.scheduling import launching
from searchcrawl.scheduling.launching import AnswerLost, ScrapydAway, ScrapydRefused, name_of
from searchcrawl.scheduling.planner import (
    LAUNCH_MS,
    Seen,
    StartPlan,
    choose,
    decide,
    find_next,
    find_overdue,
    find_unstarted,
    list_plans,
)
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import holder, job_table, lease, run_table
from searchcrawl.store.runs.job_table import Job, JobState

if TYPE_CHECKING:
    from searchcrawl.scheduling.scrapyd_client import ScrapydClient


@dataclass(slots=True)
class Ticked:
    """What a tick did: names of sources, and for what failed why."""

    started: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    running: list[str] = field(default_factory=list)
    overrun: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    #: those whose crawl could not be started, and why; "" for those whose crawl could, None where that is not known yet
    unstarted: dict[str, str | None] = field(default_factory=dict)
    #: those that should have begun long ago, and since when they are due
    overdue: dict[str, int] = field(default_factory=dict)
    #: something could not be started in this tick, said or not
    missed_starts: bool = False
    #: the source that is due next, and when; None where nothing will be by itself
    next_due: tuple[str, int] | None = None
    #: how many sources a schedule starts
    scheduled: int = 0
    #: the processes of those that were started here
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    #: the store failed when crawls were started already; the others were started as well
    error: StoreError | None = None


#: What the scrapyds say of tries that no crawl has claimed yet, by token; one that is not there was not asked.
RemoteStates = Mapping[str, str]


class Ticking:
    """Ticks of one project."""

    def __init__(self, project: Project, database: Database, *, is_stopped: Callable[[], bool] = lambda: False) -> None:
        self._project = project
        self._database = database
        self._is_stopped = is_stopped
        #: the scrapyds that did not answer in this tick: none is waited for twice
        self._away: set[str] = set()

    def tick(self, *, now_ms: int | None = None) -> Ticked:
        """Decides and starts; raises StoreError. ``now_ms`` is another present than that of the clock."""
        now_ms = clock.now_ms() if now_ms is None else now_ms
        self._away.clear()
        plans = list_plans(self._project.schedules)
        remote = self._ask_scrapyds(plans)
        done, changed = self._database.read(_decide, self._project, plans, remote, now_ms)
        if changed:
            done, changed = self._database.write(_decide, self._project, plans, remote, now_ms, writes=True)
        reach("job.chosen")
        # Those of this machine first: a scrapyd may take its time.
        for source_id, (plan, job) in sorted(changed.items(), key=lambda each: bool(each[1][1].place)):
            if job.state is JobState.LAUNCHING and plan.name in done.started:
                try:
                    self._start(source_id, plan, job, done, now_ms)
                except StoreError as error:
                    done.error = error
        return done

    def _start(self, source_id: int, plan: StartPlan, job: Job, done: Ticked, now_ms: int) -> None:
        """Starts one crawl; what cannot be started waits for its next try."""
        try:
            if job.place:
                self._order(plan, job)
            else:
                child = launching.start_process(self._project, plan.name, job.token)
                done.children.append(child)
                reach("job.launched")
                text = holder.describe_process(child.pid)
                self._database.write(job_table.note_child, source_id, job.token, text)
        except (OSError, ScrapydRefused) as error:
            text = str(error)
            done.started.remove(plan.name)
            done.unstarted[plan.name], done.missed_starts = text, True
            if text != job.error:
                # It is said once, not with each try.
                done.failed[plan.name] = text
            self._database.write(job_table.give_back, source_id, job.token, error=text, now_ms=now_ms)

    def _order(self, plan: StartPlan, job: Job) -> None:
        """Has a scrapyd run a crawl; where its answer is lost, the next tick asks what became of it."""
        if job.place in self._away or self._is_stopped():
            raise ScrapydRefused(f"scrapyd {job.place}: is asked later: it did not answer, or this process was stopped")
        url = next(each for each in plan.scrapyds if name_of(each) == job.place)
        client = self._open_client(url)
        try:
            client.schedule(plan.name, job.token)
        except AnswerLost:
            self._away.add(job.place)
        except ScrapydAway:
            self._away.add(job.place)
            raise
        finally:
            client.close()

    def _open_client(self, url: str) -> ScrapydClient:
        # Without a scrapyd nothing is asked over HTTP.
        from searchcrawl.scheduling.scrapyd_client import ScrapydClient  # noqa: PLC0415  # heavy

        return ScrapydClient(url, is_stopped=self._is_stopped)

    def _ask_scrapyds(self, plans: Mapping[str, StartPlan]) -> RemoteStates:
        """What became of the orders that no crawl has claimed yet; one that is away is asked once."""
        urls = {name_of(url): url for plan in plans.values() for url in plan.scrapyds}
        if not urls:
            return {}
        jobs = self._database.read(lambda opened: job_table.load(opened, job_table.find_started(opened)))
        found: dict[str, str] = {}
        for job in jobs.values():
            if job.state is not JobState.LAUNCHING or job.place in self._away or job.place not in urls:
                continue
            if self._is_stopped():
                break
            client = self._open_client(urls[job.place])
            try:
                found[job.token] = client.find_state(job.token)
            except (ScrapydRefused, AnswerLost):
                self._away.add(job.place)
            finally:
                client.close()
        return found


def _decide(
    transaction: Transaction,
    project: Project,
    plans: Mapping[str, StartPlan],
    remote: RemoteStates,
    now_ms: int,
    *,
    writes: bool = False,
) -> tuple[Ticked, dict[int, tuple[StartPlan, Job]]]:
    """What a tick does, and the rows that change; with ``writes`` they are written."""
    names = _find_ids(transaction, plans, writes=writes)
    before = job_table.load(transaction, names.values(), lock=writes)
    holders, suspended = lease.find_holders(transaction), job_table.find_suspended(transaction)
    living = lease.find_living(transaction)
    found: dict[int, tuple[StartPlan, Job, Seen]] = {}
    for name, source_id in names.items():
        job, plan = before.get(source_id) or Job(), plans.get(name) or StartPlan(name=name)
        fence = holders[source_id][0] if source_id in holders else 0
        seen = Seen(
            suspended=source_id in suspended,
            fence=fence,
            living=living.get(source_id, 0),
            lost=_find_loss(job, remote, now_ms),
        )
        found[source_id] = (plan, decide(job, plan, seen, now_ms), seen)
    done = _report(before, found)
    done.scheduled = sum(plan.timetable is not None for plan, _, _ in found.values())
    done.next_due = _find_next_due(found.values(), now_ms)
    for source_id in choose(found, max_parallel=project.max_parallel, now_ms=now_ms):
        plan, job, seen = found[source_id]
        found[source_id] = (plan, _launch(plan, job, [each for _, each, _ in found.values()], now_ms), seen)
        done.started.append(plan.name)
        done.waiting.remove(plan.name)
    _judge(done, found.values(), now_ms)
    changed = {
        number: (plan, job) for number, (plan, job, _) in found.items() if before.get(number) != job or number < 0
    }
    if writes:
        for source_id, (_, job) in changed.items():
            job_table.save(transaction, source_id, job)
    return done, changed


def _judge(done: Ticked, found: Iterable[tuple[StartPlan, Job, Seen]], now_ms: int) -> None:
    """Notes whose crawls could not be started, and which should have begun long ago."""
    for plan, job, seen in found:
        done.unstarted[plan.name] = "" if seen.suspended else find_unstarted(job)
        since_ms = None if seen.suspended or seen.fence else find_overdue(job, plan, now_ms)
        if since_ms is not None:
            done.overdue[plan.name] = since_ms


def _find_next_due(found: Iterable[tuple[StartPlan, Job, Seen]], now_ms: int) -> tuple[str, int] | None:
    """The first source of those that are idle whose moment comes."""
    idle = ((plan, job) for plan, job, seen in found if not job.is_active and not seen.suspended)
    moments = ((next_ms, plan.name) for plan, job in idle if (next_ms := find_next(job, plan, now_ms)) is not None)
    first = min(moments, default=None)
    return None if first is None else (first[1], first[0])


def _find_ids(transaction: Transaction, plans: Mapping[str, StartPlan], *, writes: bool) -> dict[str, int]:
    """The ids of all sources with a schedule or with a job; for reading, of those that have no row yet, any number."""
    known = run_table.find_source_names(transaction)
    ids = {name: source_id for source_id, name in known.items()}
    names = [known[source_id] for source_id in job_table.find_started(transaction)]
    wanted = sorted({*plans, *names})
    if writes:
        for name in wanted:
            ids[name] = ids.get(name) or run_table.find_or_add_source(transaction, name)
            job_table.add(transaction, ids[name])
    return {name: ids.get(name, -1 - number) for number, name in enumerate(wanted)}


def _launch(plan: StartPlan, job: Job, jobs: Sequence[Job], now_ms: int) -> Job:
    """The job with its next try."""
    return replace(
        job,
        state=JobState.LAUNCHING,
        token=job_table.make_token(plan.mode),
        attempt=job.attempt + 1,
        place=_choose_place(plan, job, jobs),
        launcher=holder.describe_own(),
        child="",
        launched_ms=now_ms,
        resumes=False,
    )


def _choose_place(plan: StartPlan, job: Job, jobs: Sequence[Job]) -> str:
    """The scrapyd with the fewest crawls under way, another one than that of a try that failed; "" for this machine."""
    places = [name_of(url) for url in plan.scrapyds]
    busy = {place: sum(each.is_started and each.place == place for each in jobs) for place in places}
    failed = job.place if job.error else ""
    return min(places, key=lambda place: (place == failed, busy[place]), default="")


def _find_loss(job: Job, remote: RemoteStates, now_ms: int) -> str:
    """Why a crawl that was ordered will never begin; "" where it may."""
    if job.state is not JobState.LAUNCHING:
        return ""
    late = abs(now_ms - job.launched_ms) > LAUNCH_MS
    if job.place:
        state = remote.get(job.token)
        if state == "finished":
            return f"scrapyd {job.place}: its crawl ended before it began: see its log"
        if state == "" and abs(now_ms - job.launched_ms) > LAUNCH_MS // 5:
            return f"scrapyd {job.place}: does not know the job any more"
        return f"scrapyd {job.place}: its crawl did not begin in time" if late and state != "pending" else ""
    if job.is_lost:
        return "its process ended before the run began" if job.child else "what was to start it ended"
    return "its process did not begin in time" if late else ""


def _report(before: Mapping[int, Job], found: Mapping[int, tuple[StartPlan, Job, Seen]]) -> Ticked:
    """What has become of the jobs, before any is started."""
    done = Ticked()
    for source_id, (plan, job, _) in sorted(found.items(), key=lambda each: each[1][0].name):
        was = before.get(source_id) or Job()
        if job.state is JobState.WAITING:
            done.waiting.append(plan.name)
        elif job.is_started:
            done.running.append(plan.name)
        if job.overruns > was.overruns:
            done.overrun.append(plan.name)
        if was.state is JobState.LAUNCHING and job.state is JobState.WAITING and job.error:
            done.missed_starts = True
        if job.skipped > was.skipped:
            done.skipped.append(plan.name)
        if job.error and job.error != was.error:
            done.failed[plan.name] = job.error
    return done
