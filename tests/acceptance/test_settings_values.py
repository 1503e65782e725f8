"""Values of settings that no run could begin with: refused by name, wherever they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project, use_settings_module
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess

WRONG: Final = (
    ("SEARCHCRAWL_MIN_FREE_MB", "abc", 'must be a number of at least 0 (got "abc")'),
    ("MEMUSAGE_LIMIT_MB", "x", 'must be a whole number of at least 0 (got "x")'),
    ("SEARCHCRAWL_STALL_SECONDS", "-3", 'must be a number of at least 0 (got "-3")'),
    ("SEARCHCRAWL_STALL_SECONDS", "nan", 'must be a number of at least 0 (got "nan")'),
    ("SEARCHCRAWL_GUARD", "perhaps", 'must be True or False (got "perhaps")'),
    ("SEARCHCRAWL_NOPE", "1", 'there is no such setting (got "1")'),
    (
        "SEARCHCRAWL_STALL_SECOND",
        "1",
        'there is no such setting (did you mean SEARCHCRAWL_STALL_SECONDS?) (got "1")',
    ),
)


@pytest.fixture(scope="module")
def project(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> CrawlProject:
    folder: Path = tmp_path_factory.mktemp("settings") / "p"
    return new_project(folder, site)


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_crawl_when_a_setting_of_the_command_line_is_wrong_then_exit_2_and_its_name(
    project: CrawlProject, site: SiteProcess, name: str, value: str, message: str
) -> None:
    log = project.folder / "job.log"
    site.clear_log()

    for command in (["crawl", "demo", "--logfile", str(log)], ["doctor"]):
        ended = project.command(*command, "-s", f"{name}={value}")

        assert ended.returncode == 2
        assert ended.stderr.splitlines()[-1] == f"searchcrawl {command[0]}: error: -s {name}: {message}"
    # Where scrapyd has the reason of a job.
    assert log.read_text("utf-8").count(f"no run, exit 2: -s {name}: {message}") == 1
    assert site.log() == []
    log.unlink()


@pytest.mark.parametrize("option", ["--logfile", "--pidfile"])
@pytest.mark.parametrize("program", ["searchcrawl", "scrapy"])
def test_crawl_when_a_file_of_an_option_cannot_be_written_then_exit_2_and_no_traceback(
    project: CrawlProject, site: SiteProcess, program: str, option: str
) -> None:
    site.clear_log()
    ended = COMMANDS.run_as(program, project.folder, "crawl", "demo", option, str(project.folder / "none" / "x"))

    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1].endswith(f"{option} {project.folder}/none/x: No such file or directory")
    assert "Traceback" not in ended.stderr
    assert site.log() == []


def test_crawl_when_a_setting_of_a_file_is_wrong_then_exit_4_and_its_name(site: SiteProcess, tmp_path: Path) -> None:
    made = new_project(tmp_path / "p", site, settings={"SEARCHCRAWL_STALL_SECONDS": -3})
    in_source = made.command("crawl", "demo")
    made.edit()
    use_settings_module(made.folder, "MEMUSAGE_LIMIT_MB = 'x'\n")
    in_module = made.command("crawl", "demo")

    said = "sources/demo.toml: settings.SEARCHCRAWL_STALL_SECONDS: must be a number of at least 0 (got -3)\n"
    assert (in_source.returncode, in_source.stderr) == (4, said)
    said = 'settings module: MEMUSAGE_LIMIT_MB: must be a whole number of at least 0 (got "x")\n'
    assert (in_module.returncode, in_module.stderr) == (4, said)
