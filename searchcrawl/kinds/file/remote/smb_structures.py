"""Structures of SMB2 in which files come in large numbers ([MS-FSCC] 2.4.18), read without objects for each field. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

#: FileIdFullDirectoryInformation: next, index, four times, size, space, attributes, length of the name, tag, number of the file.
INFORMATION: Final = 0x26
_ENTRY: Final = struct.Struct("<II4qqqIIIIQ")
#: Answers to a query, to a read, to an open and to a close ([MS-SMB2] 2.2.34, 2.2.20, 2.2.14, 2.2.16); places in them count from
#: the header on.
_QUERIED: Final = struct.Struct("<HHI")
_READ: Final = struct.Struct("<HBBI")
_OPENED: Final = struct.Struct("<HBBI4qqqII16s")
_CLOSED: Final = struct.Struct("<HHI4qqqI")
_CONTROLLED: Final = struct.Struct("<HHI16s4I")
_HAS_FACTS: Final = 0x1
_HEADER_BYTES: Final = 64
#: Requests to open, to close, and for what is known of something open (2.2.13, 2.2.15, 2.2.37).
_CREATE: Final = struct.Struct("<HBBIQQ5IHHII")
_CLOSE: Final = struct.Struct("<HHI16s")
_QUERY: Final = struct.Struct("<HBBIHHIII16s")
#: Others go on reading, writing and deleting; what is not there is not made.
_SHARED, _OPEN, _IMPERSONATION = 0x7, 1, 2
#: Where a server says its time when a dialect is agreed upon ([MS-SMB2] 2.2.4).
_SERVER_TIME: Final = struct.Struct("<q")
_SERVER_TIME_AT: Final = 40

FOLDER: Final = 0x10
_HIDDEN: Final = 0x2
REPARSE_POINT: Final = 0x400
#: Reparse points that stand for something else, by the bit of their tag, or by their tag: DFS, what no file is.
_STANDS_FOR: Final = 0x2000_0000
_ELSEWHERE: Final = frozenset(
    {0x8000_000A, 0x8000_0012, 0x8000_0014, 0x8000_0023, 0x8000_0024, 0x8000_0025, 0x8000_0026}
)
#: Characters that no name has: they would lead to another folder.
_SEPARATORS: Final = frozenset("/\\\0")
#: It would lead to another stream of a file.
_STREAM: Final = ":"
#: In units of 100 ns since 1601.
_OF_1970: Final = 116_444_736_000_000_000


class Facts(NamedTuple):
    """What is known of a file or folder; times in units of 100 ns since 1601, as they came."""

    size: int
    created: int
    written: int
    changed: int
    attributes: int
    #: of a reparse point
    tag: int = 0
    #: tells it apart on its volume; 0: the server does not say
    number: int = 0

    @property
    def version(self) -> tuple[int, int, int]:
        """What changes with its content."""
        return self.size, self.written, self.changed

    @property
    def is_folder(self) -> bool:
        return bool(self.attributes & FOLDER)

    @property
    def is_hidden(self) -> bool:
        return bool(self.attributes & _HIDDEN)

    @property
    def leads_elsewhere(self) -> bool:
        """Whether it is a link, a mount point or a part of DFS; compressed and archived files are files."""
        is_point = bool(self.attributes & REPARSE_POINT)
        return is_point and (bool(self.tag & _STANDS_FOR) or self.tag in _ELSEWHERE)


def read_entries(buffer: bytes) -> Iterator[tuple[str, Facts]]:
    """What a folder has in it, by name, without itself and the one above; raises ValueError for what is no list."""
    place = 0
    while buffer:
        try:
            fields = _ENTRY.unpack_from(buffer, place)
        except struct.error as error:
            raise ValueError("a list that is cut short") from error
        following, _, created, _, written, changed, size, _, attributes, length, tag, _, number = fields
        # A name ends before the next entry begins, so that no byte is read twice.
        end = place + _ENTRY.size + length
        if end > (place + following if following else len(buffer)):
            raise ValueError("a list that is cut short")
        name = buffer[place + _ENTRY.size : end].decode("utf-16-le", "surrogatepass")
        if not name or not _SEPARATORS.isdisjoint(name):
            raise ValueError("a name that is none")
        if name not in {".", ".."}:
            yield name, Facts(size, created, written, changed, attributes, tag, number)
        if not following:
            return
        place += following


class Message:
    """A request that needs no object for each of its fields."""

    def __init__(self, command: int, content: bytes) -> None:
        # As smbprotocol names it.
        self.COMMAND = command
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def pack(self) -> bytes:
        return self._content


def build_create(path: str, access: int, options: int) -> Message:
    """Opens what is at a path from the share on."""
    name = path.encode("utf-16-le", "surrogatepass")
    fields = (
        57,
        0,
        0,
        _IMPERSONATION,
        0,
        0,
        access,
        0,
        _SHARED,
        _OPEN,
        options,
        _HEADER_BYTES + _CREATE.size,
        len(name),
        0,
        0,
    )
    return Message(5, _CREATE.pack(*fields) + (name or b"\0" * 8))


def build_close(handle: bytes, *, has_facts: bool = True) -> Message:
    """Gives a handle back, and asks for what was known of it then."""
    return Message(6, _CLOSE.pack(24, _HAS_FACTS if has_facts else 0, 0, handle))


def build_query(handle: bytes, kind: int, information: int, most_bytes: int, more: int = 0) -> Message:
    """Asks for what is known of something open."""
    return Message(16, _QUERY.pack(41, kind, information, most_bytes, 0, 0, 0, more, 0, handle))


def read_queried(data: bytes) -> bytes:
    """What an answer to a query has in it; raises ValueError."""
    _, place, length = unpack(_QUERIED, data)
    return _cut(data, place, length)


def read_piece(data: bytes) -> bytes:
    """What an answer to a read has in it; raises ValueError."""
    _, place, _, length = unpack(_READ, data)
    return _cut(data, place, length)


def read_controlled(data: bytes) -> bytes:
    """What the answer of a pipe has in it ([MS-SMB2] 2.2.32); raises ValueError."""
    *_, place, length = unpack(_CONTROLLED, data)
    return _cut(data, place, length)


def read_opened(data: bytes) -> tuple[bytes, Facts]:
    """The handle of something that was opened, and what it is; raises ValueError."""
    _, _, _, _, created, _, written, changed, _, size, attributes, _, handle = unpack(_OPENED, data)
    return handle, Facts(size, created, written, changed, attributes)


def read_closed(data: bytes) -> Facts | None:
    """What something was when it was closed; None where the server does not say. Raises ValueError."""
    _, flags, _, created, _, written, changed, _, size, attributes = unpack(_CLOSED, data)
    return Facts(size, created, written, changed, attributes) if flags & _HAS_FACTS else None


def unpack(form: struct.Struct, data: bytes) -> tuple[Any, ...]:
    """The fields at the beginning of an answer; raises ValueError."""
    try:
        return form.unpack_from(data)
    except struct.error as error:
        raise ValueError("an answer that is cut short") from error


def _cut(data: bytes, place: int, length: int) -> bytes:
    begin = place - _HEADER_BYTES
    found = data[begin : begin + length] if length and begin >= 0 else b""
    if len(found) != length:
        raise ValueError("an answer that is cut short")
    return found


def encode_name(name: str) -> bytes:
    """A name as bytes; a server may have names that are no text."""
    return name.encode("utf-8", "surrogatepass")


def decode_name(name: bytes) -> str | None:
    """A name as a server has it; None for one that it cannot have."""
    try:
        found = name.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    is_name = found not in {"", ".", ".."} and _SEPARATORS.isdisjoint(found) and _STREAM not in found
    return found if is_name else None


def to_ms(time: int) -> int | None:
    """A time of SMB in milliseconds since 1970; None where there is none."""
    return (time - _OF_1970) // 10_000 if time > 0 else None


def read_server_ms(data: bytes) -> int | None:
    """What a server says of the time in its first answer; None where it does not."""
    if len(data) < _SERVER_TIME_AT + _SERVER_TIME.size:
        return None
    return to_ms(_SERVER_TIME.unpack_from(data, _SERVER_TIME_AT)[0])
