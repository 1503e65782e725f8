"""A store that another process locks: fetching pauses, nothing is lost; for good: exit 7 (X-S4, X-S2)."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

import pytest

from tests import backends, kill_site
from tests.acceptance.support_outages import BACK, PATIENT, WAITING, as_undisturbed, in_its_middle, log, output, quiet
from tests.crawl_forks import Forks, started
from tests.final_state import settled
from tests.kill_rounds import Kind, initial
from tests.site.client import SiteProcess
from tests.store_outages import locked
from tests.stored_rows import query

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(not backends.is_file(os.environ), reason="the lock is that of a file"),
]

HURRIED: Final = ("-s", "SEARCHCRAWL_STORE_PATIENCE_SECONDS=1")
_TABLES: Final = ("urls", "documents", "outlinks", "segments", "batches", "runs")


@pytest.fixture(scope="module")
def kind(site: SiteProcess, forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Kind:
    kill_site.fill(site)
    kind = initial(forks, site, tmp_path_factory.mktemp("locked"))
    kind.reference()
    return kind


@pytest.fixture
def project(kind: Kind, request: pytest.FixtureRequest) -> Path:
    name = request.node.name.removeprefix("test_s4_")[:40]
    kind.site.clear_log()
    kind.prepare(kind.folder / name, name)
    return kind.folder / name


def test_s4_store_when_locked_for_a_while_then_fetching_pauses_and_nothing_is_lost(
    kind: Kind, forks: Forks, project: Path
) -> None:
    with started(in_its_middle(forks, project, *PATIENT)) as running:
        with locked(project):
            running.until(lambda: WAITING in log(project))
            asked = quiet(running, kind)
            before = len(settled(project))
            # Two more beats of the lease fail.
            running.until(lambda: quiet(running, kind) == asked)
        code = running.wait()

    assert (code, before < len(kind.expected.rows)) == (0, True)
    assert as_undisturbed(kind, project) == []
    assert set(kill_site.requests(kind.site)[project.name].elements()) == set(kind.asked)
    assert kill_site.requests(kind.site)[project.name] == kind.asked
    assert (log(project).count(WAITING), log(project).count(BACK)) == (1, 1)
    assert "ERROR" not in log(project)


def test_s4_store_when_locked_for_good_then_exit_7_and_the_next_run_completes(
    kind: Kind, forks: Forks, project: Path
) -> None:
    with started(in_its_middle(forks, project, *HURRIED)) as running, locked(project):
        code = running.wait()
        said = [line for line in output(project).splitlines() if line.startswith("searchcrawl:")]
    again = forks.run(project, "crawl", "demo")

    assert code == 7
    assert len(said) == 1
    assert "var/searchcrawl.db: database is locked (waited 1 s)" in said[0]
    assert "Traceback" not in output(project) + log(project)
    assert again == 0
    assert as_undisturbed(kind, project) == []


def test_s4_store_when_locked_at_the_start_then_it_is_waited_for(kind: Kind, forks: Forks, project: Path) -> None:
    forks.run(project, "status")

    with locked(project), started(forks.start(project, "crawl", "demo", *HURRIED)) as running:
        hurried = running.wait()
    with started(forks.start(project, "crawl", "demo", *PATIENT)) as running:
        with locked(project):
            running.until(lambda: WAITING in log(project))
        patient = running.wait()

    assert (hurried, patient) == (7, 0)
    assert output(project).count("database is locked") == 1
    assert as_undisturbed(kind, project) == []


def test_s4_store_when_another_process_took_the_source_over_meanwhile_then_nothing_is_written(
    kind: Kind, forks: Forks, project: Path
) -> None:
    with started(in_its_middle(forks, project, *PATIENT)) as running:
        with locked(project) as holder:
            running.until(lambda: WAITING in log(project))
            before = {table: query(project, f"SELECT * FROM {table}") for table in _TABLES}
            holder.let_go("UPDATE leases SET fence = fence + 1, renewed_ms = NULL")
        code = running.wait()

    assert code == 7
    assert {table: query(project, f"SELECT * FROM {table}") for table in _TABLES} == before
    assert "another process took this source over" in output(project)
    assert "Traceback" not in output(project) + log(project)
    assert forks.run(project, "crawl", "demo") == 0
    assert as_undisturbed(kind, project) == []


def test_s2_crawl_when_terminated_and_then_killed_while_the_store_is_locked_then_nothing_is_lost(
    kind: Kind, forks: Forks, project: Path
) -> None:
    with started(in_its_middle(forks, project, *PATIENT)) as running, locked(project):
        running.until(lambda: WAITING in log(project))
        running.signal(signal.SIGTERM)
        running.until(lambda: "SIGTERM" in log(project))
        running.signal(signal.SIGKILL)
        code = running.wait()
    again = forks.run(project, "crawl", "demo")

    assert (code, again) == (-signal.SIGKILL, 0)
    assert as_undisturbed(kind, project) == []


@pytest.mark.soak
def test_s2_crawl_when_terminated_while_the_store_is_locked_then_it_ends_with_the_patience(
    kind: Kind, forks: Forks, project: Path
) -> None:
    patience = ("-s", "SEARCHCRAWL_STORE_PATIENCE_SECONDS=12")
    with started(in_its_middle(forks, project, *patience)) as running, locked(project):
        running.until(lambda: WAITING in log(project))
        running.signal(signal.SIGTERM)
        code = running.wait()
    again = forks.run(project, "crawl", "demo")

    assert (code, again) == (7, 0)
    assert as_undisturbed(kind, project) == []


def test_s4_commands_when_the_store_is_locked_then_readers_answer_and_writers_refuse(
    kind: Kind, forks: Forks, project: Path
) -> None:
    forks.run(project, "crawl", "demo")
    with locked(project):
        reading = [
            forks.run(project, *words)
            for words in (
                ("status",),
                ("urls", "demo"),
                ("search", "page"),
                ("verify",),
                ("quarantine", "list", "demo"),
            )
        ]
        (project / "output.txt").unlink()
        writing = forks.run(project, "quarantine", "approve", "demo")
        said = output(project).splitlines()

    assert (reading, writing) == ([0] * 5, 7)
    assert len(said) == 1
    assert "var/searchcrawl.db: database is locked" in said[0]
