"""Takes a store away from those who use it: a process that holds its lock, and a proxy whose connections are cut."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

#: Holds the write lock of an SQLite file until its input ends; then does what it was told last.
_HOLD: Final = """
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
store.execute("BEGIN IMMEDIATE")
print("held", flush=True)
last = sys.stdin.read()
if last:
    store.execute(last)
store.execute("COMMIT")
"""


class LockHolder:
    """A process that holds the write lock of an SQLite file from its beginning to ``let_go``."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "held\n":
            raise RuntimeError("the lock could not be taken")

    def let_go(self, last: str = "") -> None:
        """Ends the process, after one statement more where one is given; may be called twice."""
        if self._process.poll() is None:
            self._process.communicate(last, timeout=60)


@contextmanager
def locked(folder: Path) -> Iterator[LockHolder]:
    """The store of a project that uses SQLite is locked."""
    holder = LockHolder(folder / "var" / "searchcrawl.db")
    try:
        yield holder
    finally:
        holder.let_go()


class CuttableProxy:
    """Stands between clients and a server on a socket in the file system; ``port`` is its own, on 127.0.0.1.

    ``cut`` ends all connections and refuses new ones until ``restore``. ``cut_at_commit`` does so by itself when a
    client sends its ``number``-th COMMIT from now on: the server gets it or not, its answer reaches nobody.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._commits_left = 0
        self._delivers = False
        #: set once a commit was cut
        self.commit_was_cut = threading.Event()
        self.port = 0
        self._listen()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def cut(self) -> None:
        """Ends all connections without a word, and refuses new ones."""
        with self._lock:
            # A thread that waits in accept() would keep the port open.
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            _end(pair)

    def restore(self) -> None:
        """Takes connections again, at the same port."""
        self._listen()

    def cut_at_commit(self, number: int, *, delivers: bool) -> None:
        """Cuts at a COMMIT, which the server gets only if this ``delivers`` it."""
        self.commit_was_cut.clear()
        with self._lock:
            self._delivers, self._commits_left = delivers, number

    def _listen(self) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self._listener.listen(50)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._target))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs.add((client, server))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=[one, other, one is client], daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if from_client and b"COMMIT" in data and self._is_the_one():
                    if self._delivers:
                        # What the server has got it reads, also when nobody is there any more.
                        target.sendall(data)
                    self.cut()
                    self.commit_was_cut.set()
                    return
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def _is_the_one(self) -> bool:
        with self._lock:
            self._commits_left -= 1
            return self._commits_left == 0


def _end(pair: tuple[socket.socket, socket.socket]) -> None:
    for one in pair:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
