"""The module that starts a command, which each worker process of the installed script imports again."""

from __future__ import annotations

import subprocess
import sys
import tomllib

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
