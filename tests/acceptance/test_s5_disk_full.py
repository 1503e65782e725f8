"""A disk that is full: the run ends with exit 7 and one line, and goes on when there is room (X-S5, X-D18)."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import pytest

from searchcrawl.selftest.final_state import differences, inconsistencies
from tests import backends, kill_site
from tests.acceptance.support_outages import log
from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import source
from tests.crawl_forks import Forks, started
from tests.final_state import read_state
from tests.kill_rounds import KILLED, Kind, initial
from tests.office_files import make_zip
from tests.site.client import SiteProcess
from tests.small_disk import SmallDisk, may_mount, small_disk
from tests.stored_rows import query

pytestmark = pytest.mark.skipif(not backends.asks_for_default(os.environ), reason="disks of files")

TO_THE_LAST: Final = ("-s", "SEARCHCRAWL_MIN_FREE_MB=0")
#: More than all of it takes.
ROOM: Final = 60_000


@pytest.fixture(scope="module")
def kind(forks: Forks, site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> Kind:
    kill_site.fill(site)
    kind = initial(forks, site, tmp_path_factory.mktemp("full"))
    kind.reference()
    return kind


@pytest.fixture(scope="module")
def mounting(part_missing: Callable[[str], NoReturn]) -> None:
    if not may_mount():
        part_missing("only root of this machine, with unshare and nsenter of util-linux, may mount small disks")


@pytest.fixture
def project(kind: Kind, tmp_path: Path) -> Path:
    """A project whose parts can be on disks of their own."""
    settings = {"store": {"url": "sqlite:///var/store/searchcrawl.db"}}
    return kill_site.project(tmp_path / "project", kind.site, "demo", settings=settings)


def crawl(disk: SmallDisk, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return disk.searchcrawl(folder, "crawl", "demo", *TO_THE_LAST, **variables)


def as_undisturbed(kind: Kind, folder: Path) -> list[str]:
    """How the final state differs; the cache has whole records only, one after the other."""
    for segment in (folder / "var" / "cache" / "demo").iterdir():
        gzip.decompress(segment.read_bytes())
    state = read_state(folder, "demo")
    return differences(kind.expected, state) + inconsistencies(state)


@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize(
    ("where", "kilobytes", "named"),
    [
        ("var/cache", 60, "warc.gz: No space left on device"),
        ("var/store", 300, "var/store/searchcrawl.db: database or disk is full"),
        ("var/index", 150, "var/index: no space left on its disk"),
        pytest.param("var", 700, "project/var/", marks=pytest.mark.soak),
        pytest.param("var/cache", 8, "warc.gz: No space left on device", marks=pytest.mark.soak),
        pytest.param("var/store", 180, "var/store/searchcrawl.db: database or disk is full", marks=pytest.mark.soak),
        pytest.param("var/store", 400, "var/store/searchcrawl.db: database or disk is full", marks=pytest.mark.soak),
        pytest.param("var/index", 40, "var/index: no space left on its disk", marks=pytest.mark.soak),
    ],
)
def test_s5_disk_when_full_then_exit_7_and_with_room_the_next_run_completes(
    kind: Kind, project: Path, tmp_path: Path, where: str, kilobytes: int, named: str
) -> None:
    with small_disk(project / where, kilobytes) as disk:
        first, second = crawl(disk, project), crawl(disk, project)
        before = disk.copy(project, tmp_path / "before")
        disk.grow(ROOM)
        last = crawl(disk, project)
        found = disk.copy(project, tmp_path / "found")

    assert (first.returncode, second.returncode, last.returncode) == (7, 7, 0)
    assert named in first.stderr.splitlines()[0]
    assert "Traceback" not in first.stderr + second.stderr + (log(before) if where != "var" else "")
    assert [line.partition(": ")[0] for line in second.stderr.splitlines()] == ["searchcrawl"] or where == "var"
    assert last.stderr == ""
    assert as_undisturbed(kind, found) == []


@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize(
    ("where", "files", "named"),
    [
        ("var/store", 2, "searchcrawl.db: unable to open database file (No space left on device)"),
        ("var/index", 5, "var/index: no space left on its disk"),
        ("var/index", 8, "var/index: no space left on its disk"),
        pytest.param("var/index", 2, "var/index: no space left on its disk", marks=pytest.mark.soak),
        pytest.param("var/cache", 3, "00000002.warc.gz: No space left on device", marks=pytest.mark.soak),
        pytest.param("var/log", 1, "demo.log: No space left on device", marks=pytest.mark.soak),
        pytest.param("var", 9, "project/var/", marks=pytest.mark.soak),
    ],
)
def test_s5_disk_when_it_takes_no_more_files_then_exit_7_and_the_next_run_completes(
    kind: Kind, project: Path, tmp_path: Path, where: str, files: int, named: str
) -> None:
    with small_disk(project / where, ROOM, files=files) as disk:
        full = crawl(disk, project)
        disk.allow_files()
        last = crawl(disk, project)
        found = disk.copy(project, tmp_path / "found")

    assert (full.returncode, last.returncode) == (7, 0)
    assert named in full.stderr.splitlines()[0]
    assert as_undisturbed(kind, found) == []


@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize(
    "where",
    [
        "var",
        pytest.param("var/cache", marks=pytest.mark.soak),
        pytest.param("var/store", marks=pytest.mark.soak),
    ],
)
def test_s5_disk_when_full_and_the_process_killed_in_between_then_nothing_is_lost(
    kind: Kind, project: Path, tmp_path: Path, where: str
) -> None:
    with small_disk(project / where, {"var/cache": 60, "var/store": 300, "var": 700}[where]) as disk:
        full = [crawl(disk, project).returncode]
        disk.grow(ROOM)
        killed = crawl(disk, project, SEARCHCRAWL_FAILPOINT="segment.append.mid:4").returncode
        disk.leave(20)
        full.append(crawl(disk, project).returncode)
        disk.grow(ROOM)
        last = crawl(disk, project)
        found = disk.copy(project, tmp_path / "found")

    assert (full[0], killed, last.returncode) == (7, KILLED, 0)
    assert full[1] in (0, 7)
    assert as_undisturbed(kind, found) == []


@pytest.mark.usefixtures("mounting")
def test_s5_disk_when_little_room_is_left_then_the_run_ends_before_it_is_full(
    kind: Kind, project: Path, tmp_path: Path
) -> None:
    with small_disk(project / "var", ROOM) as disk:
        full = disk.searchcrawl(project, "crawl", "demo", "-s", "SEARCHCRAWL_MIN_FREE_MB=100")
        last = crawl(disk, project)
        found = disk.copy(project, tmp_path / "found")

    assert (full.returncode, last.returncode) == (7, 0)
    [line] = full.stderr.splitlines()
    assert line.startswith(f"searchcrawl: {project}/var/")
    assert "100 MB are kept free (SEARCHCRAWL_MIN_FREE_MB)" in line
    assert as_undisturbed(kind, found) == []


@pytest.mark.usefixtures("mounting")
def test_s5_disk_when_archives_cannot_be_unpacked_then_exit_7_and_their_files_are_visited_with_room(
    site: SiteProcess,
    tmp_path: Path,
) -> None:
    site.set_page("full.acme.test", "/", '<a href="/pack.zip">pack</a>')
    packed = make_zip(
        {name: os.urandom(100_000).hex().encode() for name in ("one.txt", "two.txt")} | {"three.txt": b"barometer"}
    )
    site.set_page("full.acme.test", "/pack.zip", packed, content_type="application/zip")
    project = new_project(tmp_path / "project", site, **source(site, "full.acme.test"))
    temporary = tmp_path / "temporary"
    with small_disk(temporary, 100) as disk:
        full = disk.searchcrawl(project.folder, "crawl", "demo", TMPDIR=str(temporary))
        blamed = project.codes()
        disk.grow(ROOM)
        last = disk.searchcrawl(project.folder, "crawl", "demo", TMPDIR=str(temporary))

    assert (full.returncode, last.returncode) == (7, 0)
    [line] = full.stderr.splitlines()
    assert line == f"searchcrawl: {temporary}: archives cannot be unpacked there: No space left on device"
    assert not [url for url, code in blamed.items() if "!/" in url and code]
    assert project.codes()["full.acme.test/pack.zip!/three.txt"] == 200


@pytest.mark.usefixtures("mounting")
def test_s5_disk_when_it_cannot_be_written_at_all_then_each_command_says_so_in_a_line(
    kind: Kind, project: Path
) -> None:
    with small_disk(project / "var", ROOM) as disk:
        assert crawl(disk, project).returncode == 0
        disk.make_read_only()
        crawled = crawl(disk, project)
        approved = disk.searchcrawl(project, "quarantine", "approve", "demo")

    assert (crawled.returncode, approved.returncode) == (7, 7)
    assert crawled.stderr == f"searchcrawl: log {project}/var/log/demo.log: Read-only file system\n"
    assert len(approved.stderr.splitlines()) == 1
    assert f"store sqlite:///{project}/var/store/searchcrawl.db: " in approved.stderr


def test_s5_files_when_they_may_not_grow_then_exit_7_and_the_next_run_completes(kind: Kind, project: Path) -> None:
    command = [sys.executable, "-m", "searchcrawl", "crawl", "demo", *TO_THE_LAST]
    prlimit = shutil.which("prlimit")
    assert prlimit is not None, "util-linux is not installed"
    first = subprocess.run(
        [prlimit, "--fsize=100000", *command], cwd=project, capture_output=True, text=True, check=False, timeout=120
    )
    last = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=120)

    assert (first.returncode, last.returncode) == (7, 0)
    assert "Traceback" not in first.stderr + log(project)
    assert as_undisturbed(kind, project) == []


@pytest.mark.parametrize("level", ["INFO", "ERROR"])
def test_s5_log_when_its_disk_is_full_then_exit_7_with_one_line_and_the_next_run_completes(
    kind: Kind, project: Path, level: str
) -> None:
    path = project / "var" / "log" / "demo.log"
    path.parent.mkdir(parents=True)
    path.symlink_to("/dev/full")
    first = kind.forks.run(project, "crawl", "demo", "-L", level)
    said = (project / "output.txt").read_text("utf-8").splitlines()
    path.unlink()
    last = kind.forks.run(project, "crawl", "demo")

    # Nothing is written to the log of a run without errors.
    assert first == (7 if level == "INFO" else 0)
    assert [line for line in said if "searchcrawl:" in line or "rror" in line] == (
        [f"searchcrawl: log {path}: No space left on device"] if level == "INFO" else []
    )
    assert last == 0
    assert as_undisturbed(kind, project) == []


@pytest.mark.parametrize(("processes", "name"), [("1", "demo.stacks"), ("2", "demo~1.stacks")])
def test_s5_log_when_a_file_in_its_folder_cannot_be_removed_at_the_end_then_exit_7_and_the_run_has_an_end(
    kind: Kind, project: Path, processes: str, name: str
) -> None:
    stacks = project / "var" / "log" / name
    with started(kind.forks.start(project, "crawl", "demo", "--processes", processes)) as running:
        running.until(stacks.exists)
        # As where the disk became read-only: the file is there, and cannot be removed.
        stacks.unlink()
        stacks.mkdir()
        first = running.wait()
    ended = query(project, "SELECT end_reason FROM runs")
    stacks.rmdir()
    last = kind.forks.run(project, "crawl", "demo")

    assert (first, ended, last) == (7, [("store_failed",)], 0)
    said = [
        line for line in (project / "output.txt").read_text("utf-8").splitlines() if "rror" in line or "log" in line
    ]
    assert said == [f"searchcrawl: log {stacks}: Is a directory"]
    assert as_undisturbed(kind, project) == []
