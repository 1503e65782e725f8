"""What a container holds: an office file is a ZIP archive or an OLE2 file, and its parts say which one (B9).

Little of a body is read, whatever it holds: this runs in the reactor.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

ZIP: Final = "application/zip"
OLE: Final = "application/x-ole-storage"
#: An office file in an envelope that only its password opens.
ENCRYPTED: Final = "application/x-encrypted-office"

#: The members at the beginning of an archive's list, among which those that say its type are.
_MAX_MEMBERS: Final = 1_000
_MAX_TYPES_BYTES: Final = 262_144
_MAX_TYPE_BYTES: Final = 256
#: The comment of an archive has at most so many bytes.
_MAX_COMMENT: Final = 65_535
_END: Final = struct.Struct("<4s4H2LH")
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_MAIN: Final = re.compile(rb'ContentType="(application/vnd\.[-.+\w]{1,120}?)\.main(?:\+xml)?"', re.ASCII)
_MIME_TYPE: Final = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,120}")
#: Members that give away archives without a type of their own.
_MEMBERS: Final = {
    "word/document.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xl/workbook.xml": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ppt/presentation.xml": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "META-INF/container.xml": "application/epub+zip",
}

#: In the header of an OLE2 file: the size of a sector as a power of two, the first sector of the list of streams, and the
#: sectors of the table of chains.
_SHIFT_AT: Final = 30
_DIRECTORY_AT: Final = 48
_TABLES_AT: Final = 76
_MAX_TABLES: Final = 109
_OLE_HEADER_BYTES: Final = 512
_SECTOR: Final = struct.Struct("<L")
_DIRECTORY_ENTRY_BYTES: Final = 128
_NAME_BYTES: Final = 64
#: The sectors of the list of streams that are looked at.
_MAX_SECTORS: Final = 32
_SECTOR_SIZES: Final = {9: 512, 12: 4_096}
_STREAMS: Final = {
    "EncryptedPackage": ENCRYPTED,
    "WordDocument": "application/msword",
    "Workbook": "application/vnd.ms-excel",
    "Book": "application/vnd.ms-excel",
    "PowerPoint Document": "application/vnd.ms-powerpoint",
    "__properties_version1.0": "application/vnd.ms-outlook",
    "VisioDocument": "application/vnd.visio",
    "HwpSummaryInformation": "application/x-hwp",
}


class _Member(NamedTuple):
    name: str
    method: int
    packed_bytes: int
    offset: int


def find_zip_type(body: bytes) -> str:
    """The type of a ZIP archive: that of the document that it is, or ``application/zip``; never raises."""
    members = {member.name: member for member in _list_members(body)}
    if (named := members.get("mimetype")) is not None:
        text = _read_member(body, named, _MAX_TYPE_BYTES).decode("ascii", "replace").strip().lower()
        if _MIME_TYPE.fullmatch(text):
            return text
    if (types := members.get("[Content_Types].xml")) is not None:
        found = _MAIN.search(_read_member(body, types, _MAX_TYPES_BYTES))
        if found is not None:
            return _name_office_type(found[1].decode("ascii"))
    return next((mimetype for name, mimetype in _MEMBERS.items() if name in members), ZIP)


def _name_office_type(main: str) -> str:
    """The type of a file by that of its main part."""
    name = main.replace("macroEnabledTemplate", "macroEnabled").lower()
    return f"{name}.12" if name.endswith("macroenabled") else name


def _list_members(body: bytes) -> Iterator[_Member]:
    """The first members in the list at the end of an archive."""
    end = body.rfind(b"PK\x05\x06", max(0, len(body) - _END.size - _MAX_COMMENT))
    if end < 0 or end + _END.size > len(body):
        return
    *_, list_bytes, _, _ = _END.unpack_from(body, end)
    # Bytes before the archive move it.
    position = end - list_bytes
    for _ in range(_MAX_MEMBERS):
        if position < 0 or position + _ENTRY.size > end:
            return
        entry = _ENTRY.unpack_from(body, position)
        if entry[0] != b"PK\x01\x02":
            return
        method, packed_bytes, name_bytes, offset = entry[4], entry[8], entry[10], entry[16]
        start = position + _ENTRY.size
        yield _Member(body[start : start + name_bytes].decode("utf-8", "replace"), method, packed_bytes, offset)
        position = start + name_bytes + entry[11] + entry[12]


def _read_member(body: bytes, member: _Member, most: int) -> bytes:
    """The beginning of a member; empty where it cannot be read."""
    if member.offset + _LOCAL.size > len(body):
        return b""
    local = _LOCAL.unpack_from(body, member.offset)
    if local[0] != b"PK\x03\x04":
        return b""
    start = member.offset + _LOCAL.size + local[9] + local[10]
    packed = body[start : start + min(member.packed_bytes, most)]
    if member.method == 0:
        return packed
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most) if member.method == 8 else b""
    except zlib.error:
        return b""


def find_ole_type(body: bytes) -> str:
    """The type of an OLE2 file by the names of its streams, or ``application/x-ole-storage``; never raises."""
    names = set(_list_streams(body))
    return next((mimetype for name, mimetype in _STREAMS.items() if name in names), OLE)


def _list_streams(body: bytes) -> Iterator[str]:
    """The names of the streams that stand first in an OLE2 file."""
    if len(body) < _OLE_HEADER_BYTES:
        return
    size = _SECTOR_SIZES.get(int.from_bytes(body[_SHIFT_AT : _SHIFT_AT + 2], "little"), 0)
    (directory,) = _SECTOR.unpack_from(body, _DIRECTORY_AT)
    for _ in range(_MAX_SECTORS):
        start = (directory + 1) * size
        if not size or start + size > len(body):
            return
        for at in range(start, start + size, _DIRECTORY_ENTRY_BYTES):
            (name_bytes,) = struct.unpack_from("<H", body, at + _NAME_BYTES)
            if 2 < name_bytes <= _NAME_BYTES:
                yield body[at : at + name_bytes - 2].decode("utf-16-le", "replace").strip("\x05")
        following = _find_next_sector(body, directory, size)
        if following is None:
            return
        directory = following


def _find_next_sector(body: bytes, sector: int, size: int) -> int | None:
    """The sector that follows in a chain; None at its end, or where the header does not list its part of the table."""
    a_table = size // _SECTOR.size
    number, place = divmod(sector, a_table)
    if number >= _MAX_TABLES:
        return None
    (table,) = _SECTOR.unpack_from(body, _TABLES_AT + _SECTOR.size * number)
    at = (table + 1) * size + place * _SECTOR.size
    if at + _SECTOR.size > len(body):
        return None
    following: int = _SECTOR.unpack_from(body, at)[0]
    return following
