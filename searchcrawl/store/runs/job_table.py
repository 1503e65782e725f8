"""Jobs: what ``tick`` and ``run`` start, one row a source. A crawl that belongs to a job claims it with its token.

Each try to start a crawl has a token of its own, which the store knows. A crawl whose token is not the one of the row does
nothing: whatever a process, a scrapyd or a network has lost or delayed, one crawl begins for each try, and none twice.
"""

from __future__ import annotations

import signal
import uuid
from collections.abc import Collection
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import select, update

from searchcrawl.exceptions import Exit, SourceBusy, SourceSuspended
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.run_schema import jobs
from searchcrawl.store.runs.holder import has_ended
from searchcrawl.store.schema import sources
from searchcrawl.store.statements import split

#: What the tokens of jobs begin with: other names of jobs are those of scrapyd's users.
_PREFIX: Final = "searchcrawl-"
#: Exit codes of crawls that are begun again: the process had stopped turning, another one had the source, the store failed.
_AGAIN: Final = frozenset({Exit.DIFFERENT, Exit.BUSY, Exit.STORE_FAILED})
#: Ends the crawl of a job cleanly however often it comes, and whatever other signal came before.
END_CLEANLY: Final = signal.SIGUSR1
_FIRST_PAUSE_MS: Final = 10_000
#: The longest pause between two tries.
MAX_PAUSE_MS: Final = 3_600_000


class JobState(StrEnum):
    """How far the job of a source is."""

    #: there was none yet
    NONE = "none"
    #: it is due, and waits for its turn
    WAITING = "waiting"
    #: its process is being started
    LAUNCHING = "launching"
    #: a crawl has claimed it
    RUNNING = "running"
    #: its crawl has ended, or somebody stopped it
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The row of a source. ``anchor_ms`` is the last moment of its schedule that was dealt with.

    ``spec`` is the schedule that it belongs to: its text changes with an edit. ``place`` is where its crawl is: a scrapyd,
    or "" for a process of the machine of ``launcher``. ``resumes``: it goes on waiting once its crawl has ended. ``fence`` is
    that of the lease of its crawl, 0 before one began. While it waits, ``token`` is that of a crawl that was given up.
    """

    spec: str = ""
    anchor_ms: int | None = None
    state: JobState = JobState.NONE
    token: str = ""
    attempt: int = 0
    planned_ms: int | None = None
    not_before_ms: int = 0
    place: str = ""
    launcher: str = ""
    child: str = ""
    launched_ms: int = 0
    fence: int = 0
    resumes: bool = False
    exit_code: int | None = None
    error: str | None = None
    overruns: int = 0
    skipped: int = 0

    @property
    def is_active(self) -> bool:
        """Whether its run is still to end."""
        return self.state in {JobState.WAITING, JobState.LAUNCHING, JobState.RUNNING}

    @property
    def is_started(self) -> bool:
        """Whether it has a place among those that are under way."""
        return self.state in {JobState.LAUNCHING, JobState.RUNNING}

    @property
    def is_lost(self) -> bool:
        """Whether what was being started on this machine, or what was to start it, has ended before its run began."""
        return self.state is JobState.LAUNCHING and not self.place and has_ended(self.child or self.launcher)


_COLUMNS: Final = tuple(each.name for each in fields(Job))


def make_token(mode: str | None = None) -> str:
    """A new name for a try, with the mode in which its crawl runs; None: in that of its source."""
    return f"{_PREFIX}{uuid.uuid4().hex}{f'-{mode}' if mode else ''}"


def find_mode(token: str) -> str | None:
    """The mode in which the crawl of a try runs; None: in that of its source."""
    return token.removeprefix(_PREFIX).partition("-")[2] or None


def is_token(text: str | None) -> bool:
    """Whether a job of scrapyd, or of ``-a _job=``, is one of ours."""
    return bool(text) and str(text).startswith(_PREFIX)


def find_pause_ms(attempt: int) -> int:
    """The pause after a try that failed: twice as long each time, an hour at most."""
    return min(_FIRST_PAUSE_MS << min(max(attempt, 1) - 1, 16), MAX_PAUSE_MS)


def load(transaction: Transaction, source_ids: Collection[int], *, lock: bool = False) -> dict[int, Job]:
    """The jobs of these sources; with ``lock`` nobody else changes them until the end of the transaction."""
    found: dict[int, Job] = {}
    for part in split(sorted(source_ids)):
        query = select(jobs).where(jobs.c.source_id.in_(part)).order_by(jobs.c.source_id)
        for row in transaction.execute(query.with_for_update() if lock else query):
            values = {name: getattr(row, name) for name in _COLUMNS}
            found[row.source_id] = Job(**values | {"state": JobState(row.state), "resumes": bool(row.resumes)})
    return found


def find_started(transaction: Transaction) -> set[int]:
    """The sources whose jobs are to end."""
    states = [JobState.WAITING, JobState.LAUNCHING, JobState.RUNNING]
    return set(transaction.execute(select(jobs.c.source_id).where(jobs.c.state.in_(states))).scalars())


def add(transaction: Transaction, source_id: int) -> None:
    """Adds the row of a source, if it has none: one that is missing cannot be locked."""
    statement = dialect_of(transaction).upsert(jobs, ["source_id"])
    transaction.execute(statement.values(source_id=source_id, **_dump(Job())))


def save(transaction: Transaction, source_id: int, job: Job) -> None:
    """Writes a row, which ``load`` has locked."""
    transaction.execute(update(jobs).where(jobs.c.source_id == source_id).values(_dump(job)))


def _dump(job: Job) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(job, name) for name in _COLUMNS}
    return values | {"state": job.state.value, "resumes": int(job.resumes)}


def note_child(transaction: Transaction, source_id: int, token: str, child: str) -> None:
    """Notes which process was started for a try."""
    statement = update(jobs).where(jobs.c.source_id == source_id, jobs.c.token == token)
    transaction.execute(statement.values(child=child))


def claim(transaction: Transaction, source_id: int, token: str, *, name: str, fence: int) -> None:
    """Begins the crawl of a try, under its lease; raises SourceBusy where the try is over."""
    statement = update(jobs).where(
        jobs.c.source_id == source_id, jobs.c.token == token, jobs.c.state == JobState.LAUNCHING.value
    )
    if not transaction.execute(statement.values(state=JobState.RUNNING.value, fence=fence)).rowcount:
        raise SourceBusy(f"source {name}: this start of it is over: another one took its place, or it was stopped")


def end(
    transaction: Transaction,
    source_id: int,
    token: str,
    *,
    exit_code: int,
    finished: bool = False,
    interrupted: bool = False,
    error: str | None = None,
    now_ms: int,
) -> None:
    """Notes how the crawl of a try ended; does nothing where the try is over already.

    A run that ``finished`` is not begun again: neither where somebody was about to end it, nor where it was given up.
    One that a signal ``interrupted``, as when a machine or a service ends, goes on later, but not where a scrapyd ran it:
    there a signal is how people cancel.
    """
    query = select(jobs).where(jobs.c.source_id == source_id).with_for_update()
    row = transaction.execute(query).one_or_none()
    if row is None or row.token != token:
        return
    resumes = bool(row.resumes) and not finished
    again = resumes or exit_code in _AGAIN or (interrupted and not row.place)
    is_over = row.state not in {JobState.LAUNCHING.value, JobState.RUNNING.value}
    settles = row.state == JobState.WAITING.value and finished and not again
    if is_over and not settles:
        return
    values: dict[str, Any] = {"state": JobState.ENDED.value, "attempt": 0}
    if again:
        pause_ms = 0 if resumes else find_pause_ms(row.attempt)
        values = {"state": JobState.WAITING.value, "not_before_ms": now_ms + pause_ms}
    values |= {"exit_code": exit_code, "error": error, "resumes": 0, "token": ""}
    transaction.execute(update(jobs).where(jobs.c.source_id == source_id).values(values))


def give_back(transaction: Transaction, source_id: int, token: str, *, error: str, now_ms: int) -> None:
    """Has a job wait again whose try could not be started."""
    statement = update(jobs).where(
        jobs.c.source_id == source_id, jobs.c.token == token, jobs.c.state == JobState.LAUNCHING.value
    )
    attempt = transaction.execute(select(jobs.c.attempt).where(jobs.c.source_id == source_id)).scalar() or 0
    values = {
        "state": JobState.WAITING.value,
        "token": "",
        "error": error,
        "not_before_ms": now_ms + find_pause_ms(attempt),
    }
    transaction.execute(statement.values(values))


def let_resume(transaction: Transaction, source_id: int, token: str) -> None:
    """Has a job wait for another start once its crawl has ended: somebody is about to end it."""
    transaction.execute(update(jobs).where(jobs.c.source_id == source_id, jobs.c.token == token).values(resumes=1))


def stop(transaction: Transaction, source_id: int) -> bool:
    """Ends a job whose crawl has not begun: it is not begun any more. A crawl that runs ends it itself.

    Returns whether there was one.
    """
    unbegun = jobs.c.state.in_([JobState.WAITING.value, JobState.LAUNCHING.value])
    statement = update(jobs).where(jobs.c.source_id == source_id, unbegun)
    values = {"state": JobState.ENDED.value, "token": "", "attempt": 0, "exit_code": int(Exit.ENDED_EARLY)}
    ended = transaction.execute(statement.values(values)).rowcount
    transaction.execute(update(jobs).where(jobs.c.source_id == source_id).values(resumes=0))
    return bool(ended)


def find_suspended(transaction: Transaction) -> set[int]:
    """The sources that are suspended."""
    return set(transaction.execute(select(sources.c.id).where(sources.c.suspended != 0)).scalars())


def refuse_suspended(transaction: Transaction, source_id: int, *, name: str) -> None:
    """Raises SourceSuspended for a source that is suspended."""
    if source_id in find_suspended(transaction):
        raise SourceSuspended(f"source {name} is suspended: searchcrawl resume {name}")
