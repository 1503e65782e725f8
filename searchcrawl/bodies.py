"""Bodies of documents: bytes or, where they are large, a file without a name, so that none takes memory of its size (E6)."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar, Final, Self

from searchcrawl.exceptions import SpoolFailed
from searchcrawl.failpoints import reach

#: A body that is larger goes to the disk.
INLINE_BYTES: Final = 8 << 20
#: So much of one is in memory at once.
PIECE_BYTES: Final = 1 << 20
_MB: Final = 1 << 20


class _OpenFile:
    """A descriptor that is closed with the last reference to it, whoever has that."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


class LargeBody:
    """A body on the disk, which is read in parts as bytes are: ``len(body)``, ``body[:10]``, ``body.startswith``.

    The file has no name, and is gone with the last reference to it, or with its process. Any thread may read it, several at once.
    Raises OSError where the disk cannot be read.
    """

    def __init__(self, file: _OpenFile, size: int, digest: hashlib._Hash | None = None) -> None:
        self._file = file
        self._size = size
        self._digest = digest

    def __len__(self) -> int:
        return self._size

    @classmethod
    def take(cls, descriptor: int, size: int) -> Self:
        """The body of ``size`` bytes in a file that is open, and is closed with the body."""
        return cls(_OpenFile(descriptor), size)

    def __getitem__(self, part: slice) -> bytes:
        start, stop, step = part.indices(self._size)
        if step != 1:
            raise ValueError("a large body is read in one direction, and without gaps")
        found = bytearray(max(0, stop - start))
        with memoryview(found) as rest:
            at = 0
            while at < len(found):
                at += self.read_into(rest[at:], start + at)
        return bytes(found)

    def startswith(self, prefix: bytes | tuple[bytes, ...], at: int = 0) -> bool:
        """As that of bytes."""
        longest = len(prefix) if isinstance(prefix, bytes) else max(map(len, prefix))
        return self[at : at + longest].startswith(prefix)

    def read_into(self, buffer: bytearray | memoryview, at: int) -> int:
        """Reads from the offset ``at``, and returns how many bytes: some, unless the buffer is empty or ``at`` is the end."""
        with memoryview(buffer).cast("B") as whole, whole[: max(0, self._size - at)] as wanted:
            count = os.preadv(self.descriptor, [wanted], at)
            if wanted and not count:
                raise OSError("the file of a large body was cut")
        return count

    @property
    def descriptor(self) -> int:
        """The descriptor of the file; its position says nothing."""
        return self._file.descriptor

    @property
    def path(self) -> str:
        """Where a library of this process can open the file."""
        return f"/dev/fd/{self.descriptor}"

    def digest(self) -> hashlib._Hash:
        """The sha256 of all bytes, to be gone on with."""
        if self._digest is None:
            found = hashlib.sha256()
            for piece in list_pieces(self):
                found.update(piece)
            self._digest = found
        return self._digest.copy()


#: What a body is.
Body = bytes | LargeBody


def list_pieces(body: Body) -> Iterator[bytes]:
    """All bytes of a body in their order; those in memory at once."""
    if isinstance(body, bytes):
        yield body
        return
    for at in range(0, len(body), PIECE_BYTES):
        yield body[at : at + PIECE_BYTES]


def read_whole(body: Body) -> bytes:
    """All bytes of a body in memory, for what cannot do with less."""
    return body if isinstance(body, bytes) else body[:]


def digest_body(body: Body) -> hashlib._Hash:
    """The sha256 of a body, to be gone on with."""
    return hashlib.sha256(body) if isinstance(body, bytes) else body.digest()


def open_body(body: Body) -> IO[bytes]:
    """A body as a file that is read from its beginning, and may be sought in."""
    return io.BytesIO(body) if isinstance(body, bytes) else io.BufferedReader(_Reader(body), PIECE_BYTES)


def read_body(path: Path) -> Body:
    """What is in a file that nobody changes any more; it may be deleted. Raises OSError."""
    if path.stat().st_size <= INLINE_BYTES:
        return path.read_bytes()
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    body = LargeBody.take(descriptor, os.fstat(descriptor).st_size)
    body.digest()
    return body


def put_down(body: bytes, folder: Path, inline_bytes: int = INLINE_BYTES) -> Body:
    """A body that had to be taken into memory, on the disk where it is large; raises SpoolFailed."""
    spool = Spool(folder, inline_bytes)
    spool.write(body)
    return spool.finish()


class Spool:
    """Takes a body piece by piece: into memory and, once it has more than ``inline_bytes``, into a file without a name.

    That is in ``folder`` or, as long as it is not there, in the folder above: what a system has for temporary files may be memory.
    Without a folder all stays in memory.
    """

    #: So much of a disk is left free, in this process: with less than that the heartbeat ends a run.
    min_free_bytes: ClassVar[int] = 0

    def __init__(self, folder: Path | None, inline_bytes: int = INLINE_BYTES) -> None:
        self._folder = folder
        self._inline_bytes = inline_bytes
        self._pieces: list[bytes] = []
        self._file: _OpenFile | None = None
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Takes the next piece; raises SpoolFailed."""
        self.size += len(piece)
        self._pieces.append(piece)
        if self._folder is not None and self.size > self._inline_bytes:
            self._put_down(self._folder)

    def finish(self) -> Body:
        """The body, once all was written."""
        if self._file is None:
            return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        return LargeBody(self._file, self.size, self._digest)

    def _put_down(self, folder: Path) -> None:
        with self._naming():
            if self._file is None:
                self._file = _open_nameless(folder)
            reach("body.spooled")
            self._require_room(folder, self._file.descriptor)
            for piece in self._pieces:
                self._digest.update(piece)
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(self._file.descriptor, rest) :]
        self._pieces.clear()

    def _require_room(self, folder: Path, descriptor: int) -> None:
        if not self.min_free_bytes:
            return
        disk = os.fstatvfs(descriptor)
        if disk.f_bavail * disk.f_frsize - sum(map(len, self._pieces)) < self.min_free_bytes:
            kept = f"{self.min_free_bytes // _MB} MB of its disk are kept free (SEARCHCRAWL_MIN_FREE_MB)"
            raise SpoolFailed(f"{folder}: no large body can be put there: {kept}")

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SpoolFailed(f"{self._folder}: no large body can be put there: {error.strerror or error}") from error


def _open_nameless(folder: Path) -> _OpenFile:
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    with tempfile.TemporaryFile(prefix="searchcrawl-", dir=folder) as file:
        return _OpenFile(os.dup(file.fileno()))


def hold() -> Spool:
    """A spool that takes all into memory."""
    return Spool(None)


class _Reader(io.RawIOBase):
    """A large body as a file; each has a position of its own."""

    def __init__(self, body: LargeBody) -> None:
        self._body = body
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._body.read_into(buffer, self._at)
        self._at += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._body)}[whence]
        if begin + offset < 0:
            raise ValueError("a place before the beginning")
        self._at = begin + offset
        return self._at

    def tell(self) -> int:
        return self._at
