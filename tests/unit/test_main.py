"""The module that starts a command, which each worker process of the installed script imports again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

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


@pytest.mark.parametrize("words", ["--help", "--version", "version"])
def test_main_when_standard_output_is_on_a_full_disk_then_one_line_and_7(words: str, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "searchcrawl", *words.split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            program, cwd=tmp_path, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    assert ended.returncode == 7
    assert ended.stderr == "searchcrawl: [Errno 28] No space left on device\n"
