"""A project with simulated days and crawls that are not real, for tests of ticks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import update

from searchcrawl.clock import to_ms
from searchcrawl.exceptions import Exit
from searchcrawl.scheduling.ticking import Ticked, Ticking
from searchcrawl.sources.loading import load_project
from searchcrawl.sources.project import Project
from searchcrawl.store import source_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.run_schema import leases
from searchcrawl.store.runs import job_table, lease, run_table
from searchcrawl.store.runs.job_table import Job
from tests.site.client import write_project

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
#: A Monday.
MONDAY: Final = to_ms(datetime(2026, 11, 23, tzinfo=UTC))


class World:
    """A project whose crawls are not real: ``begin``, ``end`` and ``kill`` do to the store what a process does."""

    def __init__(self, root: Path, store_url: str, **settings: Any) -> None:
        self.root, self.url = root, store_url
        for schedule in settings["schedules"].values():
            schedule.setdefault("timezone", "UTC")
            for name in schedule["sources"]:
                write_project(root, 80, name)
        self.configure(**settings)
        self.database = Database(self.project.database_url, root, patience_seconds=30)
        #: the tries that were started and have not begun, with their tokens
        self.launched: list[tuple[str, str]] = []
        self.leases: dict[str, tuple[lease.Lease, str]] = {}
        self.now = MONDAY

    def configure(self, **settings: Any) -> None:
        """Writes and reads searchcrawl.toml."""
        write_project(self.root, 80, "demo", project={"store": {"url": self.url}, **settings})
        self.project: Project = load_project(self.root)

    def tick(self, minutes: float = 0) -> Ticked:
        """A tick, so long after the last."""
        self.now += round(minutes * MINUTE)
        return Ticking(self.project, self.database).tick(now_ms=self.now)

    def tick_and_end(self, minutes: float = 0) -> Ticked:
        """The same, and the crawls that it starts end at once."""
        done = self.tick(minutes)
        for name in done.started:
            self.begin(name)
            self.end(name)
        return done

    def begin(self, name: str, token: str | None = None) -> None:
        """The crawl of a try takes its source."""
        token = token or next(known for started, known in self.launched if started == name)
        self.launched = [each for each in self.launched if each[1] != token]
        with self.database.write_once() as opened:
            source_id = run_table.find_or_add_source(opened, name)
            taken = lease.take(opened, source_id, name=name)
            job_table.claim(opened, source_id, token, name=name, fence=taken.fence)
        self.leases[name] = (taken, token)

    def end(self, name: str, exit_code: int = 0, *, interrupted: bool = False) -> None:
        """A crawl ends by itself, or by a signal."""
        taken, token = self.leases.pop(name)
        with self.database.write_once() as opened:
            lease.check(opened, taken)
            job_table.end(
                opened,
                taken.source_id,
                token,
                exit_code=exit_code,
                finished=exit_code == Exit.DONE,
                interrupted=interrupted,
                now_ms=self.now,
            )
            lease.release(opened, taken)

    def kill(self, name: str) -> None:
        """A crawl is killed: what is seen of it is that nobody holds its lease."""
        taken, _ = self.leases.pop(name)
        self.database.write(lease.release, taken)

    def silence(self, name: str, holder: str | None = None) -> None:
        """The heartbeat of a crawl is late, as if its process had slept; with ``holder`` one of another machine."""
        values = {"renewed_ms": 1, "beat_ms": None, **({"holder": holder} if holder else {})}
        with self.database.write_once() as opened:
            opened.execute(update(leases).where(leases.c.source_id == self.leases[name][0].source_id).values(values))

    def job(self, name: str) -> Job:
        with self.database.read_once() as opened:
            source_id = run_table.find_source(opened, name)
            assert source_id is not None
            return job_table.load(opened, [source_id])[source_id]

    def change(self, name: str, **values: Any) -> None:
        """Changes the row of a source by hand."""
        with self.database.write_once() as opened:
            source_id = run_table.find_or_add_source(opened, name)
            job_table.save(opened, source_id, Job(**{**_values(self.job(name)), **values}))

    def suspend(self, name: str, *, suspended: bool) -> None:
        with self.database.write_once() as opened:
            source_table.note(opened, run_table.find_or_add_source(opened, name), suspended=int(suspended))


def _values(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in job.__slots__}


def every(minutes: float, *sources: str, **keys: Any) -> dict[str, Any]:
    return {"sources": list(sources or ["a"]), "every_minutes": minutes, **keys}


def cron(text: str, *sources: str, **keys: Any) -> dict[str, Any]:
    return {"sources": list(sources or ["a"]), "cron": text, **keys}
