"""One worker process and the socket to it: its death is the end of a file, and every wait for it has a limit (X-R15)."""

from __future__ import annotations

import atexit
import io
import multiprocessing
import os
import resource
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Final, NamedTuple

from searchcrawl import clock
from searchcrawl.bodies import LargeBody
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConversionFailed, DocumentError, WorkerLost
from searchcrawl.terminal import send_prints_to_errors
from searchcrawl.user_code import name_error

#: The exit code of a process whose memory is too small for its task alone.
NO_MEMORY: Final = 77
#: Sent by the process once it has unpacked a task: what happens from then on is due to the task.
TAKEN: Final = b""

_LENGTH: Final = struct.Struct("!Q")
#: So many large bodies a task may have.
_MOST_BODIES: Final = 8
_SLICE_SECONDS: Final = 1.0
#: A process that was killed ends at once, unless the operating system itself hangs.
_END_SECONDS: Final = 3.0
_KEPT_BYTES: Final = 8 << 20
#: Addresses for the code of libraries, and for what they reserve and never write to.
_RESERVED_BYTES: Final = 1 << 30
#: Both are often sent to all processes of a terminal or a service: the owner ends what it has begun first.
_OF_OWNER: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SPAWN: Final = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """Why a task failed, as a value that can be pickled: the class of its DocumentError, message and code."""

    kind: type[DocumentError]
    message: str
    code: int

    def build_error(self) -> DocumentError:
        """The error to be raised."""
        return self.kind(self.message, code=self.code)


class TimeLimit:
    """How long all transfers under it may take together.

    It is counted in slices: while this process stood still itself (stopped, or without a turn), one slice passes at most.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def transfer(self, connection: socket.socket, move: Callable[[memoryview], int], data: memoryview) -> None:
        """Moves all of ``data``; raises TimeoutError, and EOFError or another OSError where the other side has ended."""
        while data:
            step = min(_SLICE_SECONDS, self._left)
            if step <= 0:
                raise TimeoutError
            began = clock.monotonic()
            connection.settimeout(step)
            with suppress(TimeoutError):
                moved = move(data)
                if not moved:
                    raise EOFError
                data = data[moved:]
            self._left -= min(clock.monotonic() - began, step)


class WorkerProcess:
    """A process that does one task at a time: it is sent one, answers that it is taken, and then with its result.

    It is spawned, because a fork would copy a process full of threads and connections.
    """

    def __init__(self, max_memory_bytes: int) -> None:
        """Starts it; raises OSError where the operating system has none left."""
        self._process, self._socket = spawn(_serve, max_memory_bytes)
        self.tasks = 0

    def send(self, task: Packed, limit: TimeLimit) -> None:
        """Sends a task; raises what ``TimeLimit.transfer`` does."""
        self.tasks += 1
        descriptors = [body.descriptor for body in task.bodies]
        # What is so short is sent whole.
        send = partial(_send_with, self._socket, descriptors) if descriptors else self._socket.send
        limit.transfer(self._socket, send, memoryview(_LENGTH.pack(len(task.data))))
        limit.transfer(self._socket, self._socket.send, task.data)

    def receive(self, limit: TimeLimit) -> bytearray:
        """The next answer; raises what ``TimeLimit.transfer`` does."""
        head = bytearray(_LENGTH.size)
        limit.transfer(self._socket, self._socket.recv_into, memoryview(head))
        data = bytearray(_LENGTH.unpack(head)[0])
        limit.transfer(self._socket, self._socket.recv_into, memoryview(data))
        return data

    def kill(self) -> None:
        """Ends the process at once, and so each wait for it."""
        self._process.kill()

    def end(self, grace_seconds: float = 0.0) -> int | None:
        """Ends the process, by force if it has not ended by itself; returns its exit code (negative: a signal)."""
        self._socket.close()
        self._process.join(grace_seconds)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join(_END_SECONDS)
        return self._process.exitcode


def spawn(serve: Callable[..., None], *args: Any, is_leaf: bool = True) -> tuple[BaseProcess, socket.socket]:
    """Starts a process that runs ``serve(SOCKET, *args)``, and the socket to it; raises OSError where there is none left.

    It calls ``follow_owner`` first: until then it waits with signals. If it ``is_leaf`` it starts no processes itself.
    """
    ours, theirs = socket.socketpair()
    try:
        process = _SPAWN.Process(target=serve, args=(theirs, *args), daemon=is_leaf)
        # It lets signals through once it is started: before, and not in between.
        resource_tracker.ensure_running()
        with _blocking(*_OF_OWNER):
            process.start()
        # Before multiprocessing waits for it: it may wait for this one.
        atexit.register(process.kill)
    except BaseException:
        ours.close()
        raise
    finally:
        # Only the process has it now: its death is seen.
        theirs.close()
    return process, ours


def follow_owner() -> None:
    """Leaves signals to the process that started this one, and has this one end with it.

    What is printed here goes to standard error: standard output is for what the owner answers.
    """
    send_prints_to_errors()
    for number in _OF_OWNER:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _OF_OWNER)
    threading.Thread(target=_exit_with_owner, daemon=True).start()


@contextmanager
def _blocking(*signals: signal.Signals) -> Iterator[None]:
    """Has processes that this thread starts wait with these signals: while they load they would end with a traceback."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Packed(NamedTuple):
    """A value as bytes, and the large bodies in it: another process gets their descriptors."""

    data: memoryview
    bodies: list[LargeBody]


class _BodyPickler(ForkingPickler):
    """Has its number in the place of each large body."""

    def __init__(self, written: io.BytesIO, bodies: list[LargeBody]) -> None:
        super().__init__(written)
        self._bodies = bodies

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, LargeBody):
            return NotImplemented
        self._bodies.append(obj)
        return _take_body, (len(self._bodies) - 1, len(obj))


#: The descriptors of the large bodies in the value that is being unpacked; one thread of a process does that.
_received: Final[list[int]] = []


def _take_body(number: int, size: int) -> LargeBody:
    return LargeBody.take(_received[number], size)


def pack_with_bodies(value: Any) -> Packed:
    """A value that may have large bodies in it; raises what its pickling does."""
    written, bodies = io.BytesIO(), list[LargeBody]()
    _BodyPickler(written, bodies).dump(value)
    return Packed(memoryview(written.getvalue()), bodies)


def pack(value: Any) -> memoryview:
    """A value as bytes; raises what its pickling does."""
    written = io.BytesIO()
    ForkingPickler(written).dump(value)
    # Not its buffer: Python 3.13 complains where a failed task keeps that longer than the stream.
    return memoryview(written.getvalue())


def unpack(data: bytearray) -> Any:
    """The value of ``pack``, which may come from a process of ours only."""
    return ForkingPickler.loads(data)


def unpack_with_bodies(data: bytearray, descriptors: list[int]) -> Any:
    """The value of ``pack_with_bodies``; the descriptors are those of its bodies, and now theirs. For one thread of a process."""
    _received[:] = descriptors
    return unpack(data)


def format_error(error: Exception) -> str:
    """The message of an error, without control characters: it may quote the page, and goes to rows, logs and terminals."""
    text = name_error(error)[:500]
    return "".join(character if character.isprintable() else " " for character in text)


def build_limit_error(message: str) -> WorkerLost:
    """The error of a task that passed a limit, or whose process died."""
    return WorkerLost(message, code=Code.CONVERSION_LIMIT)


def build_memory_error(max_memory_bytes: int) -> WorkerLost:
    """The error of a task that needs too much memory."""
    return build_limit_error(f"needed more than {max_memory_bytes >> 20} MB")


def _serve(connection: socket.socket, max_memory_bytes: int) -> None:
    """Runs in the process: does tasks until the owner closes the socket."""
    follow_owner()
    # What is written to counts; on systems that do not count it, addresses do.
    _limit(resource.RLIMIT_DATA, max_memory_bytes)
    _limit(resource.RLIMIT_AS, max_memory_bytes + _RESERVED_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    # Once so much was freed, the allocator keeps as much for the next task: giving it back each time costs a fifth more.
    bytearray(_KEPT_BYTES)
    connection.setblocking(True)
    with suppress(EOFError, OSError), connection:
        while True:
            _serve_task(connection, max_memory_bytes)
    # Threads of native libraries may still run while an interpreter ends, and crash.
    os._exit(0)


def _limit(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (least, least))


def _serve_task(connection: socket.socket, max_memory_bytes: int) -> None:
    try:
        head, descriptors, _, _ = socket.recv_fds(connection, _LENGTH.size, _MOST_BODIES)
        if not head:
            raise EOFError
        data = _receive_bytes(
            connection, _LENGTH.unpack(head + _receive_bytes(connection, _LENGTH.size - len(head)))[0]
        )
        try:
            function, args, kwargs = unpack_with_bodies(data, descriptors)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a module that cannot be imported, which is no fault of a task
            _send(connection, format_error(error).encode())
            return
        del data
    except MemoryError:
        os._exit(NO_MEMORY)
    _send(connection, TAKEN)
    _send(connection, _run(function, args, kwargs, max_memory_bytes))


def _run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], max_memory_bytes: int) -> Any:
    """The result, or why there is none. Errors may not be picklable, so they become values."""
    try:
        return pack(function(*args, **kwargs))
    except DocumentError as error:
        refused = TaskFailure(type(error), str(error), error.code)
    except MemoryError:
        lost = build_memory_error(max_memory_bytes)
        refused = TaskFailure(type(lost), str(lost), lost.code)
    except Exception as error:  # noqa: BLE001 - one bad document never ends a crawl
        refused = TaskFailure(ConversionFailed, format_error(error), Code.CONVERSION_FAILED)
    return pack(refused)


def _send_with(connection: socket.socket, descriptors: list[int], data: memoryview) -> int:
    return socket.send_fds(connection, [data], descriptors)


def _receive_bytes(connection: socket.socket, length: int) -> bytearray:
    data = bytearray(length)
    rest = memoryview(data)
    while rest:
        received = connection.recv_into(rest)
        if not received:
            raise EOFError
        rest = rest[received:]
    return data


def _send(connection: socket.socket, data: memoryview | bytes) -> None:
    connection.sendall(_LENGTH.pack(len(data)))
    connection.sendall(data)


def _exit_with_owner() -> None:
    """Ends this process after the one that owns it: a process that was killed cannot end its workers."""
    owner = multiprocessing.parent_process()
    if owner is not None:
        owner.join()
        os._exit(1)
