"""Whose fault it was that a process stopped turning, by the stacks of its threads (X-R13)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from searchcrawl.stack_file import StackFile

#: A process whose reactor is at ``reactor`` while threads are at ``threads``, until the stall watch ends it.
_PROCESS: Final = """
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
    code = _PROCESS.replace("{reactor}", reactor).replace("{threads}", repr(threads))

    ended = subprocess.run([sys.executable, "-c", code, stacks.path], timeout=60, capture_output=True, check=False)

    assert ended.returncode == 1, ended.stderr
    assert stacks.is_of_visit() is of_visit


def test_stacks_when_the_disk_took_no_more_of_them_then_the_visit_is_blamed(tmp_path: Path) -> None:
    stacks = StackFile(tmp_path, "demo")
    stacks.path.write_text("Timeout (0:01:00)!\n", "utf-8")

    assert stacks.is_of_visit() is True
