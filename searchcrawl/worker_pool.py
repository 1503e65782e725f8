"""Worker processes for input that may be hostile: each task has limits of time and memory (X-D12, X-R15)."""

from __future__ import annotations

import multiprocessing
import os
import resource
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, TypeVar

import pebble
import pebble.pool.process

from searchcrawl import clock
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConversionFailed, DocumentError, WorkerLost

MAX_MEMORY_BYTES: Final = 2 << 30
TIMEOUT_SECONDS: Final = 20.0
#: A process is replaced after so many tasks, because native libraries leak memory.
_TASKS_PER_PROCESS: Final = 500

T = TypeVar("T")


# pebble counts limits by the time of day, which may be set while a task runs. There is no public way to have it use
# another clock; made for pebble 5.1 to 5.2, and test_conversion_pool fails without it.
_pebbles_own = vars(pebble.pool.process)
_pebbles_own["time"] = SimpleNamespace(time=clock.monotonic, sleep=_pebbles_own["time"].sleep)


@dataclass(frozen=True, slots=True)
class _Refused:
    """A DocumentError as a value that can be pickled: its class, message and code."""

    kind: type[DocumentError]
    message: str
    code: int


class WorkerPool:
    """Runs functions in worker processes, which start with the first task (docs: decisions/worker-processes).

    The processes are spawned, because a fork would copy a process full of threads and connections. The limit of memory
    is a limit of the address space. A process that passes a limit or dies is replaced; only its task fails.
    """

    def __init__(
        self, *, workers: int = 1, max_memory_bytes: int = MAX_MEMORY_BYTES, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        self._workers = workers
        self._max_memory_bytes = max_memory_bytes
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._pool: pebble.ProcessPool | None = None
        self._under_way: set[Future[Any]] = set()

    def submit(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
        """Returns a future with the result of ``function(*args, **kwargs)``; all three are pickled.

        It fails with the DocumentError that the function raised, or with ConversionFailed: WorkerLost (904)
        where a limit was passed or the process died, 903 for any other exception. Its callbacks
        run in a thread of the pool. Does not block.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        # Under the lock, so that a pool that is being closed gets no task.
        with self._lock:
            if self._pool is None:
                self._pool = pebble.ProcessPool(
                    max_workers=self._workers,
                    max_tasks=_TASKS_PER_PROCESS,
                    initializer=_prepare_process,
                    initargs=(self._max_memory_bytes,),
                    context=multiprocessing.get_context("spawn"),
                )
            task = self._pool.schedule(_run, args=(function, args, kwargs), timeout=self._timeout_seconds)
            self._under_way.add(future)
        task.add_done_callback(lambda done: self._settle(future, done))
        return future

    def close(self) -> None:
        """Kills what still runs and fails its futures with 904; blocks until the processes ended (up to 3 s)."""
        with self._lock:
            pool, self._pool = self._pool, None
            under_way, self._under_way = self._under_way, set()
        if pool is not None:
            pool.stop()  # type: ignore[no-untyped-call]  # pebble's
            pool.join()
        for future in under_way:
            future.set_exception(_build_stop())

    def _settle(self, future: Future[T], done: Future[Any]) -> None:
        with self._lock:
            if future not in self._under_way:
                return  # close() has failed it
            self._under_way.remove(future)
        try:
            result = done.result()
        except TimeoutError:
            future.set_exception(_build_limit_error(f"took longer than {self._timeout_seconds:g} s"))
        except MemoryError:
            future.set_exception(_build_limit_error(f"needed more than {self._max_memory_bytes >> 20} MB"))
        except pebble.ProcessExpired as error:
            future.set_exception(_build_limit_error(f"the process died (exit {error.exitcode})"))
        except CancelledError:
            future.set_exception(_build_stop())
        except Exception as error:  # noqa: BLE001 - one bad document never ends a crawl
            future.set_exception(ConversionFailed(_format_error(error), code=Code.CONVERSION_FAILED))
        else:
            if isinstance(result, _Refused):
                future.set_exception(result.kind(result.message, code=result.code))
            else:
                future.set_result(result)


def _build_limit_error(message: str) -> WorkerLost:
    return WorkerLost(message, code=Code.CONVERSION_LIMIT)


def _build_stop() -> ConversionFailed:
    # It says nothing against the document.
    return ConversionFailed("stopped", code=Code.CONVERSION_LIMIT)


def _format_error(error: Exception) -> str:
    """The message of an error, without control characters: it may quote the page, and goes to rows, logs and terminals."""
    text = f"{type(error).__name__}: {error}"[:500]
    return "".join(character if character.isprintable() else " " for character in text)


def _prepare_process(max_memory_bytes: int) -> None:
    """Runs first in each process."""
    resource.setrlimit(resource.RLIMIT_AS, (max_memory_bytes, max_memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_exit_with_owner, daemon=True).start()


def _exit_with_owner() -> None:
    """Ends this worker after the process that owns the pool: a process that was killed cannot end its workers."""
    owner = multiprocessing.parent_process()
    if owner is not None:
        owner.join()
        os._exit(1)


def _run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs in the worker process. A DocumentError has keyword arguments and cannot be pickled, so it becomes a value."""
    try:
        return function(*args, **kwargs)
    except DocumentError as error:
        return _Refused(type(error), str(error), error.code)
