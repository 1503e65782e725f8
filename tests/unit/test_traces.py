"""What a process leaves that died: which pages it was parsing (X-R13), and whether a visit had stopped it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from searchcrawl.traces import ParseMark, StackFile

#: A process that dies while it parses pages, and after it has parsed another one.
_DYING: Final = """
import os, signal, sys, threading, time
from pathlib import Path
from searchcrawl.traces import ParseMark

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
#: A process whose reactor is at ``reactor`` while threads are at ``threads``, until the stall watch ends it.
_STALLING: Final = """
import asyncio, faulthandler, queue, re, sys, threading, time

def compute(): re.fullmatch("(a|a)*", "a" * 64 + "b")
def wait(): time.sleep(60)
class group_commit: pass
exec(compile("def _commit(): compute()", "/x/searchcrawl/commit/group_commit.py", "exec"), globals())
exec(compile("def deliver(): time.sleep(0.3); compute()", "/x/searchcrawl/delivery/batch_sender.py", "exec"), globals())
exec(compile("def take(): queue.SimpleQueue().get()", "/x/searchcrawl/commit/group_commit.py", "exec"), globals())

async def main():
    faulthandler.dump_traceback_later(1.0, file=open(sys.argv[1], "wb"), exit=True)
    for name in {threads}:
        threading.Thread(target=globals()[name], daemon=True).start()
    {reactor}

asyncio.run(main())
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
    code = _DYING.replace("{waiting}", repr(waiting)).replace("{ending}", ending)

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


@pytest.mark.parametrize(
    ("reactor", "threads", "of_visit"),
    [
        ("compute()", ["take"], True),
        ("wait()", [], True),
        ("await asyncio.to_thread(compute)", ["take"], True),
        ("await asyncio.sleep(60)", ["take", "_commit"], True),
        ("await asyncio.sleep(60)", ["take", "deliver"], False),
        # It was frozen, and the watch was quicker than the reactor when it went on.
        ("await asyncio.sleep(60)", ["take", "wait"], False),
    ],
    ids=["the page computes", "the page waits", "its helper", "the writer", "the delivery", "nobody"],
)
def test_stacks_when_a_process_stopped_turning_then_a_visit_is_blamed_only_if_it_was_at_work(
    tmp_path: Path, reactor: str, threads: list[str], of_visit: bool
) -> None:
    stacks = StackFile(tmp_path, "demo")
    code = _STALLING.replace("{reactor}", reactor).replace("{threads}", repr(threads))

    ended = subprocess.run([sys.executable, "-c", code, stacks.path], timeout=60, capture_output=True, check=False)

    assert ended.returncode == 1, ended.stderr
    assert stacks.is_of_visit() is of_visit


def test_stacks_when_the_disk_took_no_more_of_them_then_the_visit_is_blamed(tmp_path: Path) -> None:
    stacks = StackFile(tmp_path, "demo")
    stacks.path.write_text("Timeout (0:01:00)!\n", "utf-8")

    assert stacks.is_of_visit() is True
