"""Which pages a process was parsing when it died, as the next one reads it (X-R13)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from searchcrawl.parse_mark import ParseMark

#: A process that dies while it parses pages, and after it has parsed another one.
_PROCESS: Final = """
import os, signal, sys, threading, time
from pathlib import Path
from searchcrawl.parse_mark import ParseMark

def die(): os.kill(os.getpid(), signal.SIGKILL)
def fail(): raise ValueError
def wait(): begun.release(); time.sleep(60)

begun, mark = threading.Semaphore(0), ParseMark(Path(sys.argv[1]), "demo")
mark.open()
mark.call(5, str, "parsed")
try:
    mark.call(6, fail)
except ValueError:
    pass
for url_id in {waiting}:
    threading.Thread(target=mark.call, args=(url_id, wait), daemon=True).start()
    begun.acquire()
{ending}
"""


@pytest.mark.parametrize(
    ("waiting", "ending", "parsed"),
    [
        ([], "mark.call(7, die)", {7}),
        ([8, 1 << 40], "mark.call(7, die)", {7, 8, 1 << 40}),
        (list(range(1, 600)), "mark.call(700, die)", set(range(1, 513))),
        ([], "die()", set()),
    ],
    ids=["one", "threads", "more than there are places", "none"],
)
def test_mark_when_its_process_dies_then_the_next_one_reads_what_it_was_parsing(
    tmp_path: Path, waiting: list[int], ending: str, parsed: set[int]
) -> None:
    code = _PROCESS.replace("{waiting}", repr(waiting)).replace("{ending}", ending)

    ended = subprocess.run([sys.executable, "-c", code, tmp_path], timeout=60, capture_output=True, check=False)

    assert ended.returncode == -9, ended.stderr
    assert ParseMark(tmp_path, "demo").read() == parsed


@pytest.mark.parametrize(("written", "parsed"), [(None, set()), (b"", set()), (b"\7" + bytes(7) + b"\3", {7})])
def test_mark_when_its_file_is_missing_or_cut_then_what_is_whole_is_read(
    tmp_path: Path, written: bytes | None, parsed: set[int]
) -> None:
    mark = ParseMark(tmp_path, "demo")
    if written is not None:
        mark.path.write_bytes(written)

    assert mark.read() == parsed
