"""Worker processes that die or stop at any moment: only the task that they had taken fails, and nobody waits for ever."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.codes import Code
from searchcrawl.exceptions import ConversionFailed, WorkerLost, WorkersUnavailable
from searchcrawl.worker_pool import WorkerPool
from tests.workers import list_workers

#: More than a socket takes without a reader.
LARGE: Final = b"x" * 600_000
#: Ends each worker process while it starts.
BROKEN: Final = """
import os, sys
if any("spawn_main" in argument for argument in sys.orig_argv):
    os._exit(9)
"""
#: Unpacking a task in the worker process fails.
BROKEN_MODULE: Final = """
import multiprocessing
if multiprocessing.parent_process() is not None:
    raise ImportError("libnothing.so is missing")
def convert(): pass
"""


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool(max_memory_bytes=1 << 30, timeout_seconds=30)
    yield pool
    pool.close()
    assert list_workers() == []


def strike(number: int = signal.SIGKILL) -> int:
    """Sends a signal to the worker as soon as there is one; returns its id."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for worker in list_workers():
            os.kill(worker, number)
            return worker
    raise AssertionError("no worker has started")


def started(folder: Path) -> None:
    """Waits until a task of ``begin`` runs."""
    deadline = time.monotonic() + 30
    while not (folder / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def begin(folder: Path, then: Callable[..., Any], *args: Any) -> Any:
    (folder / "begun").touch()
    return then(*args)


def submit_large(pool: WorkerPool, count: int) -> list[Future[int]]:
    return [pool.submit(len, LARGE) for _ in range(count)]


def results(futures: list[Future[int]]) -> list[int]:
    return [future.result(60) for future in futures]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_worker_when_signals_come_while_it_loads_then_it_says_nothing_and_does_its_task(
    pool: WorkerPool, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    future = pool.submit(len, "abc")
    struck = strike(number)

    assert future.result(timeout=60) == 3
    assert list_workers() == [struck]
    assert capfd.readouterr().err == ""


def test_tasks_when_the_worker_is_killed_while_it_starts_then_all_are_done(pool: WorkerPool) -> None:
    tasks = submit_large(pool, 4)
    strike()

    assert results(tasks) == [len(LARGE)] * 4
    assert pool.submit(len, b"later").result(60) == 5


def test_tasks_when_workers_are_killed_while_they_start_again_and_again_then_all_are_done(pool: WorkerPool) -> None:
    tasks = submit_large(pool, 4)
    for _ in range(3):
        struck = strike()
        while struck in list_workers():
            time.sleep(0.01)

    assert results(tasks) == [len(LARGE)] * 4


def test_task_when_the_worker_was_killed_idle_then_the_next_one_does_it(pool: WorkerPool) -> None:
    worker = pool.submit(os.getpid).result(60)
    os.kill(worker, signal.SIGKILL)

    assert results(submit_large(pool, 3)) == [len(LARGE)] * 3


def test_tasks_when_the_worker_is_killed_with_one_of_them_then_only_that_one_fails(
    pool: WorkerPool, tmp_path: Path
) -> None:
    hit = pool.submit(begin, tmp_path, time.sleep, 300)
    others = submit_large(pool, 4)
    started(tmp_path)
    strike()

    assert results(others) == [len(LARGE)] * 4
    with pytest.raises(WorkerLost, match="died") as caught:
        hit.result(60)
    assert caught.value.code == Code.CONVERSION_LIMIT


def test_tasks_when_the_worker_is_stopped_idle_then_the_next_one_does_them() -> None:
    pool = WorkerPool(timeout_seconds=30, start_seconds=3)
    worker = pool.submit(os.getpid).result(60)
    os.kill(worker, signal.SIGSTOP)

    began = time.monotonic()
    tasks = submit_large(pool, 3)
    # A full socket holds a thread of the pool, and nobody else.
    assert time.monotonic() - began < 1
    assert results(tasks) == [len(LARGE)] * 3
    pool.close()
    assert list_workers() == []


def test_tasks_when_the_worker_is_stopped_with_one_of_them_then_that_one_alone_passes_its_limit(tmp_path: Path) -> None:
    pool = WorkerPool(timeout_seconds=2)
    hit = pool.submit(begin, tmp_path, time.sleep, 1)
    others = submit_large(pool, 3)
    started(tmp_path)
    strike(signal.SIGSTOP)

    with pytest.raises(WorkerLost, match="longer than 2 s") as caught:
        hit.result(60)
    assert caught.value.code == Code.CONVERSION_LIMIT
    assert results(others) == [len(LARGE)] * 3
    pool.close()


def test_pool_when_its_worker_is_stopped_then_it_closes_at_once_and_leaves_no_process() -> None:
    pool = WorkerPool()
    os.kill(pool.submit(os.getpid).result(60), signal.SIGSTOP)
    tasks = submit_large(pool, 3)
    time.sleep(0.2)

    began = time.monotonic()
    pool.close()

    assert time.monotonic() - began < 3
    assert list_workers() == []
    assert all(isinstance(task.exception(0), ConversionFailed) for task in tasks)
    assert isinstance(pool.submit(len, b"").exception(1), ConversionFailed)


def test_pool_when_closed_while_its_worker_starts_then_leaves_no_process() -> None:
    for pause in (0.0, 0.01, 0.05):
        pool = WorkerPool()
        tasks = submit_large(pool, 3)
        time.sleep(pause)

        pool.close()

        assert list_workers() == []
        assert all(task.done() for task in tasks)


def test_pool_when_no_worker_lives_long_enough_then_all_tasks_fail_without_blame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BROKEN, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    pool = WorkerPool()

    tasks = submit_large(pool, 4)

    for task in tasks:
        with pytest.raises(WorkersUnavailable, match="exit 9"):
            task.result(60)
    assert isinstance(pool.submit(len, b"").exception(1), WorkersUnavailable)
    pool.close()
    assert list_workers() == []


def test_pool_when_workers_cannot_load_the_function_then_says_so_and_blames_no_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_converter.py").write_text(BROKEN_MODULE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import broken_converter

    pool = WorkerPool()

    with pytest.raises(WorkersUnavailable, match="libnothing"):
        pool.submit(broken_converter.convert).result(60)
    pool.close()


def test_tasks_when_their_memory_is_too_small_for_them_then_they_alone_fail() -> None:
    pool = WorkerPool(max_memory_bytes=400 << 20)
    # The process has no room for the task itself, and for its result.
    too_large = pool.submit(len, bytes(300 << 20))
    too_long = pool.submit(bytes, 250 << 20)

    for task in (too_large, too_long):
        with pytest.raises(WorkerLost, match="MB"):
            task.result(60)
    assert pool.submit(len, b"ab").result(60) == 2
    pool.close()


def test_task_when_it_or_its_result_cannot_be_sent_then_it_alone_fails(pool: WorkerPool) -> None:
    for task in (pool.submit(len, threading.Lock()), pool.submit(threading.Lock)):
        with pytest.raises(ConversionFailed, match="pickle") as caught:
            task.result(60)
        assert caught.value.code == Code.CONVERSION_FAILED
    assert pool.submit(len, b"ab").result(60) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_task_when_its_worker_is_asked_to_end_with_all_processes_then_it_is_done(
    pool: WorkerPool, tmp_path: Path, number: int
) -> None:
    task = pool.submit(begin, tmp_path, time.sleep, 1)
    started(tmp_path)

    strike(number)

    assert task.result(60) is None


def test_time_limit_when_the_owner_stands_still_then_its_time_does_not_count(tmp_path: Path) -> None:
    pool = WorkerPool(timeout_seconds=3)
    task = pool.submit(begin, tmp_path, time.sleep, 2)
    started(tmp_path)
    worker = list_workers()[0]
    # A child stops both, as the freezer of a container does, and wakes them up.
    both = (os.getpid(), worker)
    if os.fork() == 0:
        with suppress(BaseException):
            for number, pause in ((signal.SIGSTOP, 5), (signal.SIGCONT, 0)):
                for process in both:
                    os.kill(process, number)
                time.sleep(pause)
        os._exit(0)

    os.wait()
    assert task.result(60) is None
    pool.close()


def test_tasks_when_workers_are_killed_at_random_then_each_ends(pool: WorkerPool) -> None:
    ended = threading.Event()

    def kill() -> None:
        # Often enough to hit each step of a start, and seldom enough that some start.
        for pause in (0.02, 0.3, 0.05, 0.5, 0.1, 0.4, 0.03, 0.2):
            ended.wait(pause)
            for worker in list_workers():
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    tasks = [pool.submit(begin_none, LARGE) for _ in range(60)]
    ends = [task.exception(60) for task in tasks]
    ended.set()
    killer.join()

    assert {type(end) for end in ends} <= {type(None), WorkerLost}
    assert sum(end is not None for end in ends) <= 8


def begin_none(data: bytes) -> int:
    time.sleep(0.02)
    return len(data)
