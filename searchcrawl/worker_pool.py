"""A worker process for input that may be hostile: each task has limits of time and memory (X-D12, X-R15)."""

from __future__ import annotations

import atexit
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from searchcrawl.codes import Code
from searchcrawl.exceptions import ConversionFailed, WorkersUnavailable
from searchcrawl.worker_process import (
    NO_MEMORY,
    TAKEN,
    Packed,
    TaskFailure,
    TimeLimit,
    WorkerProcess,
    build_limit_error,
    build_memory_error,
    format_error,
    pack_with_bodies,
    unpack,
)

logger = logging.getLogger(__name__)

MAX_MEMORY_BYTES: Final = 2 << 30
TIMEOUT_SECONDS: Final = 20.0
#: A process that has not taken a task by then is replaced: also on a busy machine it starts within seconds.
_START_SECONDS: Final = 60.0
#: Before each process that a task is given to, until one takes it: a machine that is short of memory may recover.
_PAUSES_SECONDS: Final = (0.0, 0.0, 0.5, 1.0, 2.0, 4.0)
#: A process is replaced after so many tasks, because native libraries leak memory.
_TASKS_PER_PROCESS: Final = 500
#: A process whose socket has closed is ending, and then its exit code says why.
_EXIT_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 5.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    future: Future[Any] = field(default_factory=Future)


class WorkerPool:
    """Runs functions in a worker process, which starts with the first task (docs: decisions/worker-processes).

    A process that passes a limit or dies is replaced. Only a task that it had taken fails; one that it had not goes to
    the next process. A thread of the pool waits for the process, so that nobody else does.
    """

    def __init__(
        self,
        *,
        max_memory_bytes: int = MAX_MEMORY_BYTES,
        timeout_seconds: float = TIMEOUT_SECONDS,
        start_seconds: float = _START_SECONDS,
    ) -> None:
        self._max_memory_bytes = max_memory_bytes
        self._timeout_seconds = timeout_seconds
        self._start_seconds = start_seconds
        self._lock = threading.Lock()
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._under_way: set[_Task] = set()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        #: set and unset by the thread
        self._worker: WorkerProcess | None = None
        self._failure: WorkersUnavailable | None = None

    def submit(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
        """Returns a future with the result of ``function(*args, **kwargs)``; all three are pickled.

        It fails with the DocumentError that the function raised, or with ConversionFailed: WorkerLost (904)
        where a limit was passed or the process died, 903 for any other exception. Where no process lives long enough
        to take a task, it fails with WorkersUnavailable, and so does each one after it. Its callbacks
        run in a thread of the pool. Does not block.
        """
        task = _Task(function, args, kwargs)
        task.future.set_running_or_notify_cancel()
        with self._lock:
            error: Exception | None = _build_stop() if self._closed.is_set() else self._failure
            if error is None:
                self._under_way.add(task)
                self._tasks.put(task)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="worker pool", daemon=True)
                    self._thread.start()
                    # Before multiprocessing waits for the process, which would wait for more tasks.
                    atexit.register(self.close)
        if error is not None:
            task.future.set_exception(error)
        return task.future

    def close(self) -> None:
        """Kills what still runs and fails its futures with 904; blocks until the process ended (up to 5 s)."""
        with self._lock:
            if self._thread is None:
                return
            self._closed.set()
            self._tasks.put(None)
            if self._worker is not None:
                self._worker.kill()
            under_way, self._under_way = self._under_way, set()
        atexit.unregister(self.close)
        self._thread.join(_CLOSE_SECONDS)
        for task in under_way:
            task.future.set_exception(_build_stop())

    def _work(self) -> None:
        """The thread: one task after the other."""
        while (task := self._tasks.get()) is not None and not self._closed.is_set():
            try:
                result = self._run(task)
            except WorkersUnavailable as error:
                self._fail(error)
            except Exception as error:  # noqa: BLE001 - one bad document never ends a crawl
                self._settle(task, error=error)
            else:
                self._settle(task, result)
        self._end_worker()

    def _run(self, task: _Task) -> Any:
        try:
            packed = pack_with_bodies((task.function, task.args, task.kwargs))
            worker = self._hand_over(packed)
            del packed
            result = self._wait(worker)
        except (ConversionFailed, WorkersUnavailable):
            raise
        except Exception as error:
            raise ConversionFailed(format_error(error), code=Code.CONVERSION_FAILED) from error
        if worker.tasks >= _TASKS_PER_PROCESS:
            self._end_worker(_EXIT_SECONDS)
        if isinstance(result, TaskFailure):
            raise result.build_error()
        return result

    def _hand_over(self, task: Packed) -> WorkerProcess:
        """Has a process take a task, and returns it; raises WorkersUnavailable where several in a row did not."""
        reason = ""
        for pause in _PAUSES_SECONDS:
            if self._closed.wait(pause):
                raise _build_stop()
            limit = TimeLimit(self._start_seconds)
            try:
                worker = self._worker or self._start_worker()
                worker.send(task, limit)
                answer = worker.receive(limit)
            except TimeoutError:
                reason = f"it took no task for {self._start_seconds:g} s"
                self._end_worker()
            except (EOFError, OSError, MemoryError) as error:
                code = self._end_worker(_EXIT_SECONDS)
                if code == NO_MEMORY:
                    raise build_memory_error(self._max_memory_bytes) from error
                reason = f"exit {code}" if code is not None else f"it cannot be started: {error}"
            else:
                if answer == TAKEN:
                    return worker
                reason = answer.decode(errors="replace")
                self._end_worker()
            if not self._closed.is_set():
                logger.warning(
                    "a worker process was lost before it took its task, which waits for the next (%s)", reason
                )
        raise WorkersUnavailable(
            f"{len(_PAUSES_SECONDS)} worker processes in a row were lost before they took a document, the last one: "
            f"{reason}. No document is blamed; those that waited are read by the next run"
        )

    def _wait(self, worker: WorkerProcess) -> Any:
        """The result of the task that ``worker`` has taken."""
        try:
            return unpack(worker.receive(TimeLimit(self._timeout_seconds)))
        except TimeoutError as error:
            self._end_worker()
            raise build_limit_error(f"took longer than {self._timeout_seconds:g} s") from error
        except (EOFError, OSError) as error:
            code = self._end_worker(_EXIT_SECONDS)
            raise build_limit_error(f"the process died (exit {code})") from error

    def _start_worker(self) -> WorkerProcess:
        worker = WorkerProcess(self._max_memory_bytes)
        with self._lock:
            self._worker = worker
            if self._closed.is_set():
                worker.kill()
        return worker

    def _end_worker(self, grace_seconds: float = 0.0) -> int | None:
        """Ends the process, if there is one; returns its exit code."""
        with self._lock:
            # From here on close() leaves it alone: a process is ended by one thread.
            worker, self._worker = self._worker, None
        return None if worker is None else worker.end(grace_seconds)

    def _fail(self, failure: WorkersUnavailable) -> None:
        """Fails all tasks: no other one is taken from now on."""
        with self._lock:
            self._failure = failure
            under_way, self._under_way = self._under_way, set()
            while not self._tasks.empty():
                self._tasks.get()
            if self._closed.is_set():
                self._tasks.put(None)
        for task in under_way:
            task.future.set_exception(failure)

    def _settle(self, task: _Task, result: Any = None, *, error: Exception | None = None) -> None:
        with self._lock:
            if task not in self._under_way:
                return  # close() fails it
            self._under_way.remove(task)
        if error is not None:
            task.future.set_exception(error)
        else:
            task.future.set_result(result)


def _build_stop() -> ConversionFailed:
    # It says nothing against the document.
    return ConversionFailed("stopped", code=Code.CONVERSION_LIMIT)
