"""One side of the sockets between the process of a run and a member: values, pickled, each with its length before it.

A second socket has the descriptors of the large bodies in them: what asyncio reads from a socket is bytes alone.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, Final

from searchcrawl.worker_process import Packed, pack_with_bodies, unpack_with_bodies

#: The length of a value, and how many large bodies it has.
_HEAD: Final = struct.Struct("!QB")
#: So many bytes may wait to be sent before who sends should wait.
_MOST_WAITING_BYTES: Final = 4 << 20


def send_blocking(connection: socket.socket, value: Any) -> None:
    """Sends one value where no event loop runs: what a process says that cannot begin, or cannot go on."""
    packed = pack_with_bodies(value)
    connection.setblocking(True)
    connection.sendall(_frame(packed))


class Channel(asyncio.Protocol):
    """Sends values, and calls ``take`` with each that comes; ``lost`` is called once, when the other side has ended.

    Both sides are processes of ours: pickles of anybody else must not come here. ``send`` may be called by any thread,
    all else by the event loop that has opened it. What is sent before waits.
    """

    def __init__(self, take: Callable[[Any], None], lost: Callable[[], None]) -> None:
        self._take = take
        self._lost = lost
        self._received = bytearray()
        self._early: list[Any] = []
        self._transport: asyncio.Transport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._owner = 0
        self._lock = threading.Lock()

    async def open(self, connection: socket.socket, files: socket.socket) -> None:
        """Takes both sockets over; descriptors are in ``files``."""
        self._files = files
        self._loop = asyncio.get_running_loop()
        await self._loop.create_connection(lambda: self, sock=connection)

    @property
    def is_full(self) -> bool:
        """Whether so much waits to be sent that no more should come."""
        return not self._room.is_set()

    async def wait_for_room(self) -> None:
        """Waits until more may be sent, or the other side has ended."""
        await self._room.wait()

    async def send_last(self, value: Any) -> None:
        """Sends a value, and waits until all is sent."""
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high=0)
        self.send(value)
        await self.wait_for_room()

    def send(self, value: Any) -> None:
        """Sends a value; raises what pickling it does. Nothing is sent to a side that has ended."""
        with self._lock:
            if not self._owner:
                self._early.append(value)
                return
        if threading.get_ident() == self._owner:
            self._write(value)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._write, value)

    def hold_back(self) -> None:
        """Takes no more values for now, but those that have come already."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def let_through(self) -> None:
        """Takes values again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Closes this side once all is sent."""
        if self._transport is not None:
            self._transport.close()

    # What asyncio calls.

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=_MOST_WAITING_BYTES)
        with self._lock:
            self._owner, early = threading.get_ident(), self._early
            self._early = []
        for value in early:
            self._write(value)

    def data_received(self, data: bytes) -> None:
        received, at = self._received, 0
        received += data
        while len(received) - at >= _HEAD.size:
            length, bodies = _HEAD.unpack_from(received, at)
            begin = at + _HEAD.size
            end = begin + length
            if len(received) < end:
                break
            value = unpack_with_bodies(received[begin:end], self._receive_descriptors(bodies))
            at = end
            self._take(value)
        if at:
            del received[:at]

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._files.close()
        self._room.set()
        self._lost()

    def _write(self, value: Any) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        # Not with writelines: some versions of Python (3.12.0 to 3.12.8, 3.13.0, 3.13.1) never pause who writes with it.
        packed = pack_with_bodies(value)
        if packed.bodies:
            # Before the value, so that they are there when it comes. It waits where hundreds were not taken: no more are sent than
            # visits are under way.
            socket.send_fds(self._files, [b"\0"], [body.descriptor for body in packed.bodies])
        self._transport.write(_frame(packed))

    def _receive_descriptors(self, count: int) -> list[int]:
        found = socket.recv_fds(self._files, 1, count)[1] if count else []
        if len(found) < count:
            raise OSError("this process may open no more files")
        return found


def _frame(packed: Packed) -> bytes:
    return b"".join((_HEAD.pack(len(packed.data), len(packed.bodies)), packed.data))
