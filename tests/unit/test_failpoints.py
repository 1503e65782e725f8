"""Failpoints act in a process of their own: they are read from its environment, and some end it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from searchcrawl import failpoints

ROOT = Path(__file__).resolve().parents[2]
PASS_THREE_TIMES = """
from searchcrawl import failpoints
for turn in range(3):
    failpoints.reach("row.updated")
    print("passed", turn + 1, flush=True)
failpoints.reach("links.mid")
"""


def passed_with(code: str = PASS_THREE_TIMES, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEARCHCRAWL_FAILPOINT")}
    environment |= variables
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_names_when_listed_then_are_unique() -> None:
    assert len(set(failpoints.NAMES)) == len(failpoints.NAMES)


@pytest.mark.parametrize(
    ("variables", "code", "passed", "error"),
    [
        ({}, 0, 3, ""),
        ({"SEARCHCRAWL_FAILPOINT": "row.updated"}, -signal.SIGKILL, 0, ""),
        ({"SEARCHCRAWL_FAILPOINT": "row.updated:2"}, -signal.SIGKILL, 1, ""),
        ({"SEARCHCRAWL_FAILPOINT": "row.updated:3:kill"}, -signal.SIGKILL, 2, ""),
        # Its turn never comes.
        ({"SEARCHCRAWL_FAILPOINT": "row.updated:4"}, 0, 3, ""),
        ({"SEARCHCRAWL_FAILPOINT": "row.updated:2:raise"}, 1, 1, "FailpointReached: row.updated"),
        ({"SEARCHCRAWL_FAILPOINT": "row.updated:raise:2"}, 1, 1, "FailpointReached: row.updated"),
    ],
)
def test_failpoint_when_its_turn_comes_then_acts_once(
    variables: dict[str, str], code: int, passed: int, error: str
) -> None:
    ended = passed_with(**variables)

    assert (ended.returncode, ended.stdout.count("passed")) == (code, passed)
    assert error in ended.stderr if error else not ended.stderr


def test_failpoint_when_any_is_asked_for_then_all_names_are_counted_together() -> None:
    ended = [passed_with(SEARCHCRAWL_FAILPOINT=f"any:{number}:raise") for number in (3, 4, 5)]

    # The fourth passing is that of another name.
    assert [each.returncode for each in ended] == [1, 1, 0]
    assert [each.stdout.count("passed") for each in ended] == [2, 3, 3]
    assert "FailpointReached: links.mid" in ended[1].stderr


def test_failpoint_when_told_that_the_disk_is_full_then_stays_full() -> None:
    code = """
import errno
from searchcrawl import failpoints
failures = []
for turn in range(3):
    try:
        failpoints.reach("segment.append")
    except OSError as error:
        failures.append((turn, error.errno == errno.ENOSPC))
print(failures)
"""

    ended = passed_with(code, SEARCHCRAWL_FAILPOINT="segment.append:2:enospc")

    assert ended.stdout.strip() == "[(1, True), (2, True)]"


def test_failpoint_when_told_to_sleep_then_delays_one_passing() -> None:
    code = """
import time
slept = []
time.sleep = slept.append
from searchcrawl import failpoints
for turn in range(3):
    failpoints.reach("fetch.sent")
print(slept)
"""

    ended = passed_with(code, SEARCHCRAWL_FAILPOINT="fetch.sent:2:sleep")

    assert ended.stdout.strip() == "[10]"


@pytest.mark.parametrize("wanted", ["", "nowhere", "row.updated:explode", "row.updated:-1"])
def test_failpoint_when_unknown_then_the_process_does_not_start(wanted: str) -> None:
    ended = passed_with(SEARCHCRAWL_FAILPOINT=wanted)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert "SEARCHCRAWL_FAILPOINT" in ended.stderr


@pytest.mark.parametrize(
    ("variables", "reached"),
    [
        ({}, {"links.mid": 1, "row.updated": 3}),
        # The process raises.
        ({"SEARCHCRAWL_FAILPOINT": "row.updated:2:raise"}, {"row.updated": 2}),
    ],
)
def test_counts_when_asked_for_then_are_written_at_the_end(
    tmp_path: Path, variables: dict[str, str], reached: dict[str, int]
) -> None:
    counts = tmp_path / "counts.json"

    ended = passed_with(SEARCHCRAWL_FAILPOINT_COUNT=str(counts), **variables)

    assert ended.returncode == bool(variables)
    assert json.loads(counts.read_text(encoding="utf-8")) == reached
