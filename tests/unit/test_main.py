"""The module that starts a command, which each worker process of the installed script imports again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.site.client import ROOT


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_script_when_installed_then_it_calls_the_light_module() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]

    assert scripts == {"searchcrawl": "searchcrawl.__main__:main"}


def test_module_when_a_worker_process_loads_it_then_nothing_of_a_command_is_loaded() -> None:
    code = "import sys; before = {*sys.modules}; import searchcrawl.__main__; print(sorted({*sys.modules} - before))"

    assert run(code) == "['__future__', 'gc', 'searchcrawl', 'searchcrawl.__main__']\n"


def test_collector_when_a_command_runs_then_it_is_on_again() -> None:
    code = """
import atexit, gc, sys
from searchcrawl.__main__ import main
atexit.register(lambda: print(gc.isenabled()))
sys.argv = ["searchcrawl", {name!r}, "--help"]
main()
"""

    # One of ours and one of Scrapy's.
    assert [run(code.format(name=name)).splitlines()[-1] for name in ("status", "version")] == ["True", "True"]


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("words", "package"),
    [
        # What no command needs that sends no request.
        *(
            (words, "scrapy")
            for words in ("search word", "status", "urls demo", "explain http://127.0.0.1/", "verify demo")
        ),
        *(
            (words, "twisted")
            for words in ("search word", "status", "urls demo", "explain http://127.0.0.1/", "verify demo")
        ),
        # The list of commands reads no configuration.
        *(("--help", package) for package in ("scrapy", "pydantic", "sqlalchemy")),
    ],
)
def test_command_when_it_sends_no_request_then_it_loads_no_crawler(words: str, package: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sources", tmp_path / "sources")
    for name in ("scrapy.cfg", "searchcrawl.toml"):
        shutil.copy(ROOT / name, tmp_path)
    code = f"""
import atexit, sys
from searchcrawl.__main__ import main
atexit.register(lambda: print({package!r} in sys.modules))
sys.argv = ["searchcrawl", *{words.split()!r}]
main()
"""

    ended = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert ended.stdout.splitlines()[-1] == "False", ended.stderr


WRITING: Final = pytest.mark.parametrize("words", ["--help", "--version", "version", "completion bash"])


def start(words: str, folder: Path, **streams: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command as a shell does, which has what it writes to a pipe or a file kept until much of it is there."""
    (folder / "scrapy.cfg").touch()
    (folder / "searchcrawl.toml").write_text('contact = "crawler@example.org"\n')
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    program = [sys.executable, "-m", "searchcrawl", *words.split()]
    environment |= {"PYTHONPATH": str(ROOT), "SEARCHCRAWL_PROJECT": str(folder)}
    return subprocess.run(program, cwd=folder, env=environment, text=True, check=False, **streams)


@pytest.fixture
def unread() -> Iterator[int]:
    """A pipe whose reader has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@WRITING
def test_main_when_standard_output_is_on_a_full_disk_then_one_line_and_7(words: str, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = start(words, tmp_path, stdout=full, stderr=subprocess.PIPE)

    assert (ended.returncode, ended.stderr) == (7, "searchcrawl: [Errno 28] No space left on device\n")


@WRITING
def test_main_when_nobody_reads_standard_output_then_it_ends_well(words: str, tmp_path: Path, unread: int) -> None:
    ended = start(words, tmp_path, stdout=unread, stderr=subprocess.PIPE)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_main_when_nobody_reads_standard_error_then_its_exit_code_stays(tmp_path: Path, unread: int) -> None:
    ended = start("crawl nowhere", tmp_path, stdout=unread, stderr=unread)

    assert ended.returncode == 2


def test_main_when_standard_error_is_on_a_full_disk_then_its_exit_code_stays(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = start("crawl nowhere", tmp_path, stdout=full, stderr=full)

    assert ended.returncode == 2
