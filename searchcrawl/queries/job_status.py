"""What ``status`` says of a source beside its runs: whether it waits, was suspended, and when it runs next (H3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.scheduling.planner import Plan, find_next, find_overdue, find_unstarted, list_plans
from searchcrawl.sources.project import Project, Schedule
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.runs import job_table
from searchcrawl.store.runs.job_table import Job, JobState
from searchcrawl.wording import counted

#: States of a source whose last run left something to do.
_LEFT: Final = frozenset({"waiting_for_resume", "stopped"})
#: States of a source that nothing happens to.
_IDLE: Final = frozenset({"scheduled", "finished"})


def describe_job(
    transaction: Transaction, project: Project | None, name: str, source_id: int | None, state: str
) -> dict[str, Any]:
    """The keys of ``status`` that follow from the schedule and the job of a source; ``state`` is that of its runs."""
    jobs = job_table.load(transaction, []) if source_id is None else job_table.load(transaction, [source_id])
    job = jobs.get(source_id or 0)
    suspended = source_id in job_table.find_suspended(transaction)
    found = _find_schedules(project, name)
    plan = list_plans(found).get(name, Plan(name=name))
    next_ms = None if suspended else find_next(job, plan, clock.now_ms())
    disabled = any(not each.enabled for each in found.values())
    return {
        "state": _find_state(state, job, suspended=suspended, disabled=disabled),
        "next_run": clock.iso(next_ms),
        "log": str(project.logs_dir / f"{name}.log") if project is not None else None,
        "error": job.error if job is not None else None,
    }


def _find_schedules(project: Project | None, name: str) -> dict[str, Schedule]:
    """The one that a source is in."""
    return {key: each for key, each in (project.schedules if project else {}).items() if name in each.sources}


def warn_of_job(
    transaction: Transaction, project: Project | None, name: str, source_id: int | None, state: str
) -> Iterator[tuple[str, str]]:
    """The code and the text of each warning about the job of a source; ``state`` is that of its runs."""
    job = job_table.load(transaction, [source_id]).get(source_id) if source_id is not None else None
    if state != "executing" and source_id not in job_table.find_suspended(transaction):
        plan = list_plans(_find_schedules(project, name)).get(name, Plan(name=name))
        yield from _warn_of_start(job, plan)
    if job is not None and job.overruns:
        yield (
            "overrun",
            f"its run takes longer than its schedule has time for: {counted(job.overruns, 'moment was', 'moments were')} passed over",
        )
    if job is not None and job.skipped:
        yield (
            "missed",
            f'nothing could start it in time: {counted(job.skipped, "run was", "runs were")} passed over (misfire = "skip")',
        )


def _warn_of_start(job: Job | None, plan: Plan) -> Iterator[tuple[str, str]]:
    reason = find_unstarted(job)
    if reason:
        yield "not_started", describe_unstarted(reason)
    since_ms = find_overdue(job, plan, clock.now_ms()) if job is not None else None
    if since_ms is not None:
        yield "overdue", describe_overdue(since_ms)


def describe_unstarted(reason: str) -> str:
    """That a crawl could not be started."""
    return f"its last start failed: {reason}"


def describe_overdue(since_ms: int) -> str:
    """That a run should have begun long ago."""
    return (
        f"it is due since {clock.iso(since_ms)} and has not begun: is searchcrawl run up, or tick called each minute, and is "
        "max_parallel high enough?"
    )


def _find_state(state: str, job: Job | None, *, suspended: bool, disabled: bool) -> str:
    if state == "executing":
        return state
    if suspended:
        return "suspended"
    # What has ended before its run began waits for the next tick, which starts it again.
    if job is not None and (job.state is JobState.WAITING or job.is_lost):
        return "waiting_for_resume" if state in _LEFT else "waiting_for_start"
    if job is not None and job.state is JobState.LAUNCHING:
        return "launching"
    if disabled and state in _IDLE:
        return "disabled"
    # Its last start ended before it was a run.
    return "failed" if job is not None and job.error and state in _IDLE else state
