"""One process at a time writes to a source: the lease, its end with its holder, and its fence."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchcrawl.selftest.final_state import inconsistencies
from tests.crawl_forks import CLOCK, Forks, Running, started
from tests.final_state import read_state, settled
from tests.site.client import SiteProcess, write_project
from tests.stored_rows import age_leases, execute, is_being_written, query

pytestmark = pytest.mark.extended

PAGES = 60
DAY = 86_400
START = f"/n/{PAGES},delay=0.2/"
#: All that a run writes.
_TABLES = ("urls", "documents", "outlinks", "segments", "batches", "runs", "leases")


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> Path:
    return write_project(tmp_path / "project", site, start={"urls": [site.url("gen.acme.test", START)]})


@pytest.fixture
def running(forks: Forks, project: Path) -> Iterator[Running]:
    """A crawl in its middle."""
    with started(forks.start(project, "crawl", "demo")) as running:
        running.until(lambda: len(settled(project)) >= 15)
        yield running


def written(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    return {table: query(folder, f"SELECT * FROM {table}") for table in _TABLES}


def test_second_start_when_the_first_runs_then_exit_5_and_the_first_goes_on(
    forks: Forks, project: Path, running: Running
) -> None:
    second = forks.run(project, "crawl", "demo")
    before = len(settled(project))
    first = running.wait()

    state = read_state(project, "demo")
    assert (second, first) == (5, 0)
    assert before < PAGES
    assert "another process is running it" in running.output.read_text("utf-8")
    assert (len(state.index), inconsistencies(state)) == (PAGES, [])


@pytest.mark.few(1)
@pytest.mark.parametrize("ahead", [DAY, -DAY, 31])
def test_second_start_when_the_clock_was_set_meanwhile_then_the_first_keeps_its_source(
    forks: Forks, project: Path, running: Running, ahead: int
) -> None:
    second = forks.run(project, "crawl", "demo", **{CLOCK: str(ahead)})
    first = running.wait()

    assert (second, first) == (5, 0)
    assert query(project, "SELECT renewed_ms, fence FROM leases") == [(None, 1)]


def test_start_when_the_machine_was_started_again_then_takes_over_at_once(
    forks: Forks, project: Path, running: Running
) -> None:
    running.signal(signal.SIGKILL)
    running.wait()
    # The clock of that boot was further than that of this one, and another process has the number of the holder now.
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    holder = f"replace(replace(holder, '{boot}', 'earlier'), 'process {running.pid} ', 'process 1 ')"
    age_leases(project, seconds=-10 * DAY)
    execute(project, f"UPDATE leases SET holder = {holder}")

    code = forks.run(project, "crawl", "demo")

    assert (code, len(read_state(project, "demo").index)) == (0, PAGES)


def test_start_when_the_holder_was_killed_then_takes_over_at_once(
    forks: Forks, project: Path, running: Running
) -> None:
    running.signal(signal.SIGKILL)
    running.wait()
    ((renewed, fence),) = query(project, "SELECT renewed_ms, fence FROM leases")

    code = forks.run(project, "crawl", "demo")

    state = read_state(project, "demo")
    assert renewed is not None
    assert (code, len(state.index), inconsistencies(state)) == (0, PAGES, [])
    assert query(project, "SELECT renewed_ms, fence FROM leases") == [(None, fence + 1)]


def test_start_when_the_holder_is_frozen_then_takes_over_after_its_time_and_the_frozen_one_writes_nothing(
    forks: Forks, project: Path, running: Running
) -> None:
    # It holds no lock on the store.
    running.freeze(lambda: not is_being_written(project))
    early = forks.run(project, "crawl", "demo")
    age_leases(project, seconds=31)

    # By a clock that was set back, the holder has just renewed its lease.
    late = forks.run(project, "crawl", "demo", **{CLOCK: "-31"})
    rows, state = written(project), read_state(project, "demo")
    before = running.output.read_text("utf-8")
    running.signal(signal.SIGCONT)
    frozen = running.wait()
    output = running.output.read_text("utf-8").removeprefix(before)

    assert (early, late, frozen) == (5, 0, 7)
    assert (len(state.index), inconsistencies(state)) == (PAGES, [])
    assert written(project) == rows
    assert read_state(project, "demo") == state
    assert "another process took this source over" in output
    # The numbers of the run are those of the other process by now, and none of them is wrong.
    assert "documents in the index" not in output
    assert "do not add up" not in output


@pytest.mark.matrix
def test_two_starts_when_at_the_same_moment_then_one_runs_and_the_other_exits_5(
    forks: Forks, site: SiteProcess, tmp_path: Path
) -> None:
    codes, states = [], []
    for number in range(3):
        folder = write_project(tmp_path / str(number), site, start={"urls": [site.url("gen.acme.test", START)]})
        # Also the store is made by one of them only.
        both = [forks.start(folder, "crawl", "demo") for _ in range(2)]
        codes.append(sorted(running.wait() for running in both))
        states.append(len(read_state(folder, "demo").index))

    assert codes == [[0, 5]] * 3
    assert states == [PAGES] * 3
