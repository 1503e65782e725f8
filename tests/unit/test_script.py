"""The ``searchcrawl`` script, whose file each worker process runs again."""

from __future__ import annotations

import subprocess
import sys

from tests.site.client import ROOT


def test_script_when_a_worker_process_loads_it_then_nothing_of_a_command_is_loaded() -> None:
    code = "import sys; before = {*sys.modules}; import searchcrawl.script; print(sorted({*sys.modules} - before))"

    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert loaded == "['__future__', 'searchcrawl', 'searchcrawl.script']\n"
