"""``selftest --kill9`` shows that killed crawls end as if undisturbed, and finds it out where they do not (L10)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import LIMIT_SECONDS, environment, run_apart, wait_until
from tests.crawl_forks import COMMANDS
from tests.site.client import ROOT

pytestmark = pytest.mark.extended

#: What is broken in each process of the crawler that is tested, and what has to be found.
BREAKS: Final = {
    "claims of a dead process are not released": (
        "from searchcrawl.store.urls import url_queue as broken\nbroken.INTERRUPTED = broken.TRIED_AGAIN\n",
        "not settled: ",
    ),
    "it is not noted how far a segment is written": (
        "from searchcrawl.store.documents import segment_table as broken\nbroken.set_committed = lambda *given: None\n",
        "record of ",
    ),
    "counters are not written with the rows": (
        "from searchcrawl.store.runs import run_table as broken\nbroken.add_counts = lambda *given: None\n",
        "to_fetch is ",
    ),
}


def selftest(folder: Path, *options: str) -> tuple[int, dict[str, Any], list[str]]:
    """Exit code, answer, and what is left in the folder for temporary files; modules in ``folder`` go before others."""
    places = folder / "temporary"
    places.mkdir()
    command = (sys.executable, "-m", "searchcrawl", "selftest", "--kill9", "--json", *options)
    variables = {"TMPDIR": str(places), "PYTHONPATH": f"{folder}:{ROOT}"}
    done = run_apart(folder, *command, seconds=4 * LIMIT_SECONDS, **variables)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout), [str(path) for path in places.glob("searchcrawl-*")]


def test_selftest_when_crawls_are_killed_then_all_is_equal_and_nothing_is_left(tmp_path: Path) -> None:
    code, found, left = selftest(tmp_path, "--kills", "1", "--seed", "5")

    crawls = found["crawls"]
    assert (code, found["ok"], found["kills"], found["seed"]) == (0, True, 1, 5)
    assert (found["folder"], left) == (None, [])
    assert sum(len(crawl["killed_at"]) for crawl in crawls) == 1
    assert {crawl["kind"] for crawl in crawls} == {"initial", "maintenance"}
    assert [crawl["differences"] for crawl in crawls] == [[]] * len(crawls)
    assert all(crawl["urls"] > crawl["documents"] > 50 for crawl in crawls)


@pytest.mark.few(1)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_selftest_when_it_is_ended_then_nothing_of_it_is_left(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-m", "searchcrawl", "selftest", "--kill9"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(TMPDIR=str(tmp_path))) as process:
        # Its first crawl is under way.
        wait_until(lambda: any(tmp_path.glob("searchcrawl-*/undisturbed/var/searchcrawl.db")))
        process.send_signal(how)
        code = process.wait(LIMIT_SECONDS)

    assert (code, [*tmp_path.iterdir()]) == (3, [])


@pytest.mark.few(1)
@pytest.mark.parametrize("broken", BREAKS)
def test_selftest_when_the_crawler_is_broken_then_it_says_how_and_keeps_the_folder(tmp_path: Path, broken: str) -> None:
    change, expected = BREAKS[broken]
    # Not each break shows at each kill, and a new failpoint moves them all.
    for seed in range(1, 5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        # Python runs it at the start of each process.
        (folder / "sitecustomize.py").write_text(change, "utf-8")
        code, found, left = selftest(folder, "--kills", "1", "--seed", str(seed))
        differences = [line for crawl in found["crawls"] for line in crawl["differences"]]
        if any(expected in line for line in differences):
            break

    assert (code, found["ok"], left) == (1, False, [found["folder"]])
    assert any(expected in line for line in differences), differences
    assert list(Path(found["folder"]).glob("*/sources/*.toml"))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_selftest_when_many_crawls_are_killed_then_all_is_equal(tmp_path: Path, seed: int) -> None:
    code, found, left = selftest(tmp_path, "--kills", "40", "--seed", str(seed))

    assert (code, found["kills"], left) == (0, 40, []), found


@pytest.mark.parametrize("options", [(), ("--kill9", "--kills", "0")])
def test_selftest_when_it_is_used_wrongly_then_exit_2(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert COMMANDS.run(tmp_path, "selftest", *options).returncode == 2
