"""Whoever reads an answer may end first (``| head``): the command goes on, and its exit code is that of what it did."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess, write_project

HOST = "gen.acme.test"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A crawled project that has lost its index, with a source file that is wrong and a source that nothing answers."""
    with SiteProcess() as site:
        folder = write_project(tmp_path_factory.mktemp("closed"), site, start={"urls": [site.url(HOST, "/n/4,kb=2/")]})
        assert COMMANDS.run(folder, "crawl", "demo").returncode == 0
        sources = folder / "sources"
        dead = (sources / "demo.toml").read_text(encoding="utf-8").replace(str(site.port), "9")
        (sources / "dead.toml").write_text(dead, encoding="utf-8")
        (sources / "wrong.toml").write_text('type = "web"\ncolour = "red"\n', encoding="utf-8")
        yield folder


def run_unread(folder: Path, *words: str, errors_too: bool = False) -> tuple[int, str]:
    """The exit code of a command whose output nobody reads, and what it wrote to standard error."""
    reader, writer = os.pipe()
    os.close(reader)
    errors = subprocess.STDOUT if errors_too else subprocess.PIPE
    command = [sys.executable, "-m", "searchcrawl", *words]
    ended = subprocess.run(command, cwd=folder, stdout=writer, stderr=errors, text=True, check=False, timeout=60)
    os.close(writer)
    return ended.returncode, ended.stderr or ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["search", "*", "--source", "demo"], 0),
        (["search", "*", "--source", "demo", "--json"], 0),
        (["status"], 0),
        (["urls", "demo"], 0),
        (["--help"], 0),
        (["sources", "check", "--json"], 4),
        (["crawl", "dead"], 8),
        (["crawl", "dead", "--json"], 8),
    ],
)
def test_command_when_nobody_reads_its_output_then_its_exit_code_is_the_same(
    project: Path, words: list[str], code: int
) -> None:
    ended, errors = run_unread(project, *words)

    assert ended == code, errors
    assert "Broken pipe" not in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_verify_when_nobody_reads_what_differs_then_its_exit_code_says_so(
    project: Path, tmp_path: Path, form: list[str]
) -> None:
    folder = tmp_path / "lost"
    shutil.copytree(project, folder)
    shutil.rmtree(folder / "var" / "index")

    assert run_unread(folder, "verify", "demo", *form)[0] == 1


def test_crawl_when_nobody_reads_its_errors_either_then_its_exit_code_is_the_same(project: Path) -> None:
    assert run_unread(project, "crawl", "dead", errors_too=True)[0] == 8
