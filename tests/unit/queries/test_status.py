"""The state of a source as its job has it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from searchcrawl.queries.status import _find_job_state
from searchcrawl.store.runs import holder
from searchcrawl.store.runs.job_table import Job, JobState


def find_state(**values: Any) -> str:
    return _find_job_state("completed", Job(state=JobState.LAUNCHING, **values), suspended=False, disabled=False)


@pytest.fixture
def ended() -> str:
    """A process of this machine that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        text = holder.describe_process(process.pid)
        process.communicate()
    return text


def test_state_when_what_was_started_lives_or_has_ended_before_its_run_then_launching_or_waiting(ended: str) -> None:
    here = holder.describe_own()

    assert [find_state(launcher=here), find_state(launcher=here, child=here)] == ["launching", "launching"]
    assert [find_state(launcher=ended), find_state(launcher=here, child=ended)] == ["waiting_for_start"] * 2


def test_state_when_a_scrapyd_was_asked_then_it_is_launching_until_a_tick_knows_more(ended: str) -> None:
    assert find_state(launcher=ended, place="http://127.0.0.1:6800") == "launching"
