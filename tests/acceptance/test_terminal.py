"""What a user sees on a terminal of 80 columns: stops, wide answers, `quick`, and no option that does nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.acceptance.support_project import wait_until
from tests.acceptance.support_stories import page, pages
from tests.crawl_forks import COMMANDS
from tests.on_terminal import COLUMNS, Shown, Terminal, find_misfits, show
from tests.site.client import SiteProcess, write_project

HOST = "gen.acme.test"
START = "/n/4,kb=2/"
HIDE, RESTORE = "\x1b[?25l", "\x1b[?25h"


@pytest.fixture(scope="module")
def crawled(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_project(tmp_path_factory.mktemp("seen"), site, start={"urls": [site.url(HOST, START)]})
    ended = COMMANDS.run(folder, "crawl", "demo")
    assert ended.returncode == 0, ended.stderr
    shown = ended.stdout
    # Nothing failed, and the summary does not speak of it.
    assert "fetched" in shown
    assert "fetch failures" not in shown
    assert "waiting" not in shown
    return folder


def interrupt(folder: Path, site: SiteProcess, *, times: int, seconds: float) -> Shown:
    """Crawls a page that takes long and is interrupted."""
    site.clear_behaviours()
    site.set_behaviour(HOST, START, delay_seconds=seconds)
    write_project(folder, site, start={"urls": [site.url(HOST, START)]})
    with Terminal([sys.executable, "-m", "searchcrawl", "crawl", "demo"], folder) as terminal:
        terminal.wait_for(lambda shown: "in the queue" in shown)
        # The request is under way before the first key.
        wait_until(lambda: START in {entry["path"] for entry in site.log()})
        terminal.interrupt()
        if times > 1:
            terminal.wait_for(lambda shown: "once more" in shown)
            terminal.interrupt()
        ended = terminal.end()
    site.clear_behaviours()
    site.clear_log()
    return ended


@pytest.mark.parametrize(("times", "seconds"), [(1, 4), (2, 60)])
def test_crawl_when_interrupted_then_it_says_what_it_waits_for_and_leaves_the_terminal_as_it_was(
    site: SiteProcess, tmp_path: Path, times: int, seconds: float
) -> None:
    ended = interrupt(tmp_path / "p", site, times=times, seconds=seconds)

    assert ended.exit_code == 3
    text = " ".join(" ".join(ended.lines).split())
    assert text.count("Stopping: waits for 1 request under way. Ctrl-C once more ends it at once") == 1
    assert ended.raw.rindex(RESTORE) > ended.raw.rindex(HIDE)
    summaries = [line for line in ended.lines if line.startswith("demo: initial run")]
    assert len(summaries) == 1
    assert max(map(len, ended.lines)) <= COLUMNS
    assert [line for line in ended.lines if "Traceback" in line] == []


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("runs",), ("status",), ("status", "demo"), ("explain", "{start}"), ("sources", "show", "demo")],
)
def test_answer_when_the_terminal_has_80_columns_then_no_line_is_wider_and_no_word_is_cut(
    crawled: Path, site: SiteProcess, arguments: tuple[str, ...]
) -> None:
    given = [argument.format(start=site.url(HOST, START)) for argument in arguments]
    piped = COMMANDS.run(crawled, *given).stdout

    shown = show(crawled, *given)

    assert shown.exit_code == 0
    assert find_misfits(shown, piped) == []


def test_answer_when_a_command_is_used_wrongly_then_its_error_fits_the_terminal_too(crawled: Path) -> None:
    shown = show(crawled, "quick", "http://127.0.0.1:1/", "--allow-private", "x")

    assert shown.exit_code == 2
    assert "not a network in CIDR form" in " ".join(shown.lines)
    assert max(map(len, shown.lines)) <= COLUMNS


def quick(folder: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    ended = COMMANDS.run(
        folder, "quick", *arguments, "--allow-private", "127.0.0.1/32", TMPDIR=str(folder), **variables
    )
    return ended.returncode, ended.stdout


def test_quick_when_it_ends_then_what_it_found_is_kept_and_what_found_nothing_is_not(
    site: SiteProcess, tmp_path: Path
) -> None:
    address = f"http://127.0.0.1:{site.port}"
    pages(site, "127.0.0.1", one=page("one"), two=page("two"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")

    failed, said = quick(tmp_path / "tmp", f"{address}/nothing")
    left = [*(tmp_path / "tmp").iterdir()]
    kept, where = quick(tmp_path / "tmp", f"{address}/nothing", "--keep", str(tmp_path / "kept"))
    refused, _ = quick(tmp_path / "tmp", f"{address}/", "--keep", str(tmp_path / "full"))
    limited, found = quick(tmp_path / "tmp", f"{address}/", "--pages", "1")
    [project] = (tmp_path / "tmp").iterdir()
    searched = COMMANDS.run(project, "search", "*")

    assert (failed, left) == (8, [])
    assert "nothing is kept: --keep DIR" in said
    assert (kept, (tmp_path / "kept" / "searchcrawl.toml").is_file()) == (8, True)
    assert "What became of each URL" in where
    assert (refused, (tmp_path / "full" / "file").read_text()) == (2, "mine")
    # So many pages were asked for, and there they are.
    assert limited == 0, found
    assert "searchcrawl search WORDS" in found
    assert "1 hit" in searched.stdout


def test_crawl_when_keys_are_set_for_a_run_then_they_are_checked_like_the_file(crawled: Path) -> None:
    good = COMMANDS.run(crawled, "crawl", "demo", "--set", "fetch.delay_seconds=0.5", "--set", "title=Another one")
    wrong = COMMANDS.run(
        crawled,
        "crawl",
        "demo",
        "--set",
        "fetch.delay_seconds=-1",
        "--set",
        "scope.dept=2",
        "--set",
        "settings.LOG_LEVEL=1",
    )
    pair = COMMANDS.run(crawled, "crawl", "demo", "--set", "secret")
    elsewhere = COMMANDS.run(crawled, "plan", "demo", "--set", "fetch.delay_seconds=1")
    # What is missing beside a key is the fault of who set that key.
    beside = COMMANDS.run(crawled, "crawl", "demo", "--set", "login.password=secret", "--set", "start.urls=[]")

    assert good.returncode == 0, good.stderr
    assert wrong.returncode == 4
    assert wrong.stderr.splitlines() == [
        "--set: scope.dept: unknown key (did you mean depth?)",
        "--set: settings.LOG_LEVEL: not for a source: each source has one log: use logs in searchcrawl.toml (got 1)",
        "--set: fetch.delay_seconds: must not be negative (got -1)",
    ]
    assert elsewhere.returncode == 2
    assert elsewhere.stderr.endswith(
        "-s fetch.delay_seconds: is no setting of Scrapy; crawl --set KEY=VALUE sets a key of a source file\n"
    )
    assert (beside.returncode, beside.stderr.splitlines()) == (
        4,
        ["--set: start.urls: is required, or start.files", "--set: login.type: is required with password"],
    )
    assert (pair.returncode, pair.stderr) == (4, "--set: must be KEY=VALUE, as fetch.delay_seconds=5\n")
