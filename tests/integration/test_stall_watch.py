"""A command that sends to the index and hangs ends by itself, with the stacks of its threads in the log (X-D12)."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.site.client import ROOT

_SECONDS: Final = 2.0
#: A flush whose receiver does ``what``.
_FLUSH: Final = """
import re, sys, time
from pathlib import Path
from searchcrawl.operations import source_lease
from tests.filled_store import CachedStore
from tests.redelivering import Watched, flush

source_lease.SEARCHCRAWL_STALL_SECONDS = {seconds}
folder = Path(sys.argv[1])
filled = CachedStore(folder, "sqlite:///" + sys.argv[1] + "/store.db")
filled.fetch("/a")
filled.end(exit_code=6)
(filled.project.logs_dir).mkdir(parents=True, exist_ok=True)
print(filled.project.logs_dir, flush=True)
flush(filled, Watched(filled, before=lambda batch: {what}))
print("sent")
"""


def run(folder: Path, what: str) -> tuple[int, str, str]:
    """The exit code of a flush, its output, and its log."""
    command = [sys.executable, "-c", _FLUSH.format(seconds=_SECONDS, what=what), str(folder)]
    ended = subprocess.run(command, cwd=ROOT, timeout=30, capture_output=True, text=True, check=False)
    logs, *rest = ended.stdout.splitlines()
    return ended.returncode, "".join(rest), (Path(logs) / "demo.log").read_text("utf-8")


def test_flush_when_a_library_keeps_the_lock_of_the_interpreter_then_it_ends_with_its_stacks(tmp_path: Path) -> None:
    code, output, log = run(tmp_path, "re.fullmatch('(a|a)*', 'a' * 64 + 'b')")

    assert (code, output) == (1, "")
    assert "batch_sender.py" in log


def test_flush_when_the_index_takes_its_time_then_it_goes_on(tmp_path: Path) -> None:
    begun = time.monotonic()

    code, output, log = run(tmp_path, f"time.sleep({2 * _SECONDS})")

    assert (code, output, log) == (0, "sent", "")
    assert time.monotonic() - begun > 2 * _SECONDS
