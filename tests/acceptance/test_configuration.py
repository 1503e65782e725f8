"""Configuration as users meet it: real processes, exit codes, exact lines."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.crawl_forks import COMMANDS

GOOD = '[start]\nurls = ["https://example.org/"]\n[scope]\ninclude_hosts = ["example.org"]\n'


def run(folder: Path, *args: str, module: str = "searchcrawl", **variables: str) -> subprocess.CompletedProcess[str]:
    """One command in ``folder``, called as ours or as Scrapy's."""
    return COMMANDS.run_as(module, folder, *args, **variables)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "sources").mkdir(parents=True)
    (root / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n")
    (root / "searchcrawl.toml").write_text('contact = "crawler@example.org"\n')
    (root / "sources" / "good.toml").write_text(GOOD)
    return root


def test_init_when_the_folder_is_new_then_a_project_that_checks_and_lists(tmp_path: Path) -> None:
    made = run(tmp_path, "init", "new")

    checked, listed = run(tmp_path / "new", "sources", "check"), run(tmp_path / "new", "list")
    assert (made.returncode, made.stderr) == (0, "")
    assert (checked.returncode, checked.stdout.splitlines()[0]) == (0, "1 source, no errors")
    assert checked.stdout.endswith(": searchcrawl doctor\n")
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "example\n", "")


def test_init_when_the_folder_is_not_empty_then_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("")

    made = run(tmp_path, "init", "mine")

    assert made.returncode == 2
    assert made.stderr.endswith("not empty: mine\n")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


def test_sources_check_when_files_are_broken_then_exit_4_and_a_line_each(project: Path) -> None:
    (project / "sources" / "intranet.toml").write_text(GOOD + "depth = -1\n")
    (project / "sources" / "wiki.toml").write_text("[start\n")

    checked = run(project, "sources", "check")
    as_json = run(project, "sources", "check", "--json")
    text = (project / "searchcrawl.toml").read_text()
    (project / "searchcrawl.toml").write_text(f"unheard_of = 1\n{text}")
    all_files = run(project, "sources", "check")

    assert (all_files.returncode, all_files.stderr) == (
        4,
        f"searchcrawl.toml: unheard_of: unknown key\n{checked.stderr}",
    )
    assert (checked.returncode, checked.stdout) == (4, "")
    assert checked.stderr == (
        "sources/intranet.toml: scope.depth: must not be negative (got -1)\n"
        "sources/wiki.toml: line 1: expected ']' at the end of a table declaration\n"
    )
    assert (as_json.returncode, as_json.stderr) == (4, "")
    assert json.loads(as_json.stdout) == {
        "ok": False,
        "errors": [
            {"file": "sources/intranet.toml", "key": "scope.depth", "message": "must not be negative (got -1)"},
            {
                "file": "sources/wiki.toml",
                "key": "line 1",
                "message": "expected ']' at the end of a table declaration",
            },
        ],
    }


@pytest.mark.parametrize("module", ["searchcrawl", "scrapy"])
def test_list_when_a_source_is_broken_then_the_others_with_a_warning_and_exit_0(project: Path, module: str) -> None:
    (project / "sources" / "broken.toml").write_text(GOOD + "[mail]\nhost = 'x'\n")

    listed = run(project, "list", module=module)

    assert (listed.returncode, listed.stdout) == (0, "good\n")
    assert listed.stderr == "warning: sources/broken.toml: mail: not available yet\n"


@pytest.mark.few(2)
@pytest.mark.parametrize("module", ["searchcrawl", "scrapy"])
@pytest.mark.parametrize("command", [("list",), ("sources", "check")])
def test_commands_when_the_project_file_is_broken_then_exit_4_and_one_line(
    project: Path, command: tuple[str, ...], module: str
) -> None:
    (project / "searchcrawl.toml").write_text("")

    ended = run(project, *command, module=module)

    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr == "searchcrawl.toml: contact: is required\n"


def test_commands_when_the_project_is_named_by_the_environment_then_they_work_anywhere(
    project: Path, tmp_path: Path
) -> None:
    below = run(project / "sources", "list")
    elsewhere = run(tmp_path, "list", "--json", SEARCHCRAWL_PROJECT=str(project))
    nowhere = run(tmp_path, "list")

    assert (below.returncode, below.stdout) == (0, "good\n")
    assert (elsewhere.returncode, elsewhere.stdout) == (0, '{"name":"good"}\n')
    assert (nowhere.returncode, nowhere.stdout) == (4, "")
    assert nowhere.stderr == "scrapy.cfg: no project here or above: searchcrawl init DIR, or SEARCHCRAWL_PROJECT\n"


def test_searchcrawl_when_called_without_a_command_then_ours_are_listed(tmp_path: Path) -> None:
    overview, version = run(tmp_path), run(tmp_path, "--version")

    assert overview.returncode == 0
    assert "\n  init " in overview.stdout
    assert "\n  sources " in overview.stdout
    assert "genspider" not in overview.stdout
    assert version.stdout.startswith("searchcrawl ")
