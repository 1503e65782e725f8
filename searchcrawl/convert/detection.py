"""What a body is by its first bytes and, of a container, by its parts; and whether that refutes its header (B9, 1009).

An office file is a ZIP archive or an OLE2 file. Little of a body is read, whatever it holds: this runs in the reactor.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from searchcrawl.bodies import Body

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


def find_zip_type(body: Body) -> str:
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


def _list_members(body: Body) -> Iterator[_Member]:
    """The first members in the list at the end of an archive."""
    start = max(0, len(body) - _END.size - _MAX_COMMENT)
    tail = body[start:]
    found = tail.rfind(b"PK\x05\x06")
    if found < 0 or found + _END.size > len(tail):
        return
    end = start + found
    *_, list_bytes, _, _ = _END.unpack_from(tail, found)
    # Bytes before the archive move it.
    position = end - list_bytes
    for _ in range(_MAX_MEMBERS):
        if position < 0 or position + _ENTRY.size > end:
            return
        entry = _ENTRY.unpack(body[position : position + _ENTRY.size])
        if entry[0] != b"PK\x01\x02":
            return
        method, packed_bytes, name_bytes, offset = entry[4], entry[8], entry[10], entry[16]
        start = position + _ENTRY.size
        yield _Member(body[start : start + name_bytes].decode("utf-8", "replace"), method, packed_bytes, offset)
        position = start + name_bytes + entry[11] + entry[12]


def _read_member(body: Body, member: _Member, most: int) -> bytes:
    """The beginning of a member; empty where it cannot be read."""
    if member.offset + _LOCAL.size > len(body):
        return b""
    local = _LOCAL.unpack(body[member.offset : member.offset + _LOCAL.size])
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


def find_ole_type(body: Body) -> str:
    """The type of an OLE2 file by the names of its streams, or ``application/x-ole-storage``; never raises."""
    names = set(_list_streams(body))
    return next((mimetype for name, mimetype in _STREAMS.items() if name in names), OLE)


def _list_streams(body: Body) -> Iterator[str]:
    """The names of the streams that stand first in an OLE2 file."""
    if len(body) < _OLE_HEADER_BYTES:
        return
    size = _SECTOR_SIZES.get(int.from_bytes(body[_SHIFT_AT : _SHIFT_AT + 2], "little"), 0)
    (directory,) = _SECTOR.unpack_from(body[:_OLE_HEADER_BYTES], _DIRECTORY_AT)
    for _ in range(_MAX_SECTORS):
        start = (directory + 1) * size
        if not size or start + size > len(body):
            return
        sector = body[start : start + size]
        for at in range(0, size, _DIRECTORY_ENTRY_BYTES):
            (name_bytes,) = struct.unpack_from("<H", sector, at + _NAME_BYTES)
            if 2 < name_bytes <= _NAME_BYTES:
                yield sector[at : at + name_bytes - 2].decode("utf-16-le", "replace").strip("\x05")
        following = _find_next_sector(body, directory, size)
        if following is None:
            return
        directory = following


def _find_next_sector(body: Body, sector: int, size: int) -> int | None:
    """The sector that follows in a chain; None at its end, or where the header does not list its part of the table."""
    a_table = size // _SECTOR.size
    number, place = divmod(sector, a_table)
    if number >= _MAX_TABLES:
        return None
    (table,) = _SECTOR.unpack_from(body[:_OLE_HEADER_BYTES], _TABLES_AT + _SECTOR.size * number)
    at = (table + 1) * size + place * _SECTOR.size
    if at + _SECTOR.size > len(body):
        return None
    following: int = _SECTOR.unpack(body[at : at + _SECTOR.size])[0]
    return following


PDF: Final = "application/pdf"
RTF: Final = "application/rtf"
GZIP: Final = "application/gzip"
BZIP2: Final = "application/x-bzip2"
XZ: Final = "application/x-xz"
#: The first bytes of binary formats.
_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"%PDF-", PDF),
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (b"{\\rtf", RTF),
    (b"\x1f\x8b", GZIP),
    *((b"BZh%d1AY&SY" % level, BZIP2) for level in range(1, 10)),
    # Of an empty file.
    *((b"BZh%d\x17rE8P\x90" % level, BZIP2) for level in range(1, 10)),
    (b"\xfd7zXZ\x00", XZ),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"AT&TFORM", "image/vnd.djvu"),
    (b"\x7fELF", "application/x-executable"),
    (b"OggS", "application/ogg"),
    *((b"ID3%c" % version, "audio/mpeg") for version in range(2, 5)),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\xffWPC", "application/vnd.wordperfect"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
)
#: Those of nothing but letters: a text may begin so as well.
_LETTERS: Final = tuple(mark for mark, _ in _SIGNATURES if mark.decode("latin-1").isprintable() and mark.isascii())
#: A line of bytes that are no letters, or the first object: so a file begins, and no text about one.
_PDF_HEAD_BYTES: Final = 1_024
_PDF_HEAD: Final = re.compile(
    rb"%PDF-\d\.\d[^\r\n]*+[\r\n]++(?:%[^\r\n]*?[\x80-\xff]{4}|.*?\d \d{1,5} obj\b)", re.DOTALL
)
#: A body is read from its end in pieces of so many bytes.
_PIECE_BYTES: Final = 65_536
_RTF_HEAD_BYTES: Final = 16
_RTF_HEAD: Final = re.compile(rb"\{\\rtf\d[\\{}\s]")
_TAR: Final = "application/x-tar"
_TAR_BYTES: Final = 512
_TAR_AT: Final = 257
_TAR_MARK: Final = b"ustar"
_TAR_SUM: Final = slice(148, 156)
#: Containers of which the header may know better what they hold.
_CONTAINERS: Final = frozenset({ZIP, OLE, GZIP})
_OF_OFFICE: Final = ("application/vnd.openxmlformats-officedocument", "application/vnd.oasis.opendocument")
_FIRST_BYTES: Final = frozenset(mark[:1] for mark, _ in _SIGNATURES)


def detect(body: Body) -> str | None:
    """The type of a binary format that a body begins like; None where it begins like none that is known."""
    if not body or (body[:1] not in _FIRST_BYTES and not body.startswith(_TAR_MARK, _TAR_AT)):
        return None
    for mark, mimetype in _SIGNATURES:
        if body.startswith(mark):
            if mimetype == ZIP:
                return find_zip_type(body)
            return find_ole_type(body) if mimetype == OLE else mimetype
    return _TAR if body.startswith(_TAR_MARK, _TAR_AT) and _has_tar_sum(body[:_TAR_BYTES]) else None


def _has_tar_sum(header: bytes) -> bool:
    """Whether the header of a tar archive has its own sum (POSIX ustar); the mark alone may stand in any text."""
    try:
        said = int(header[_TAR_SUM].strip(b" \0"), 8)
    except ValueError:
        return False
    counted = header[: _TAR_SUM.start] + b" " * 8 + header[_TAR_SUM.stop :]
    # Some old programs took bytes for signed numbers.
    high = sum(byte >= 0x80 for byte in counted)
    return len(header) == _TAR_BYTES and said in {sum(counted), sum(counted) - 256 * high}


def begins_like_container(body: Body) -> bool:
    """Whether what a body is may be told only by what comes later in it."""
    return detect(body[:_TAR_BYTES]) in {ZIP, OLE}


def begins_like_binary(body: Body) -> bool:
    """Whether a body begins as no text does: with what is no letter in any encoding, or as a whole PDF file."""
    found = detect(body)
    if found == PDF:
        return _PDF_HEAD.match(body[:_PDF_HEAD_BYTES]) is not None
    return found is not None and not body.startswith(_LETTERS)


def is_rtf(body: Body) -> bool:
    """Whether a body that is sent as text is an RTF file from its beginning to its end."""
    return _RTF_HEAD.match(body[:_RTF_HEAD_BYTES]) is not None and _ends_with_brace(body)


def _ends_with_brace(body: Body) -> bool:
    """Whether a brace is the last of a body, but for blanks and zeros."""
    end = len(body)
    while end:
        start = max(0, end - _PIECE_BYTES)
        if rest := body[start:end].rstrip(b" \t\r\n\0"):
            return rest.endswith(b"}")
        end = start
    return False


def refutes(found: str, said: str) -> bool:
    """Whether bytes of the type ``found`` show that a header that says another binary type lies.

    A container proves nothing about what it may hold, unless what the header says is held by another one.
    """
    if found == said:
        return False
    if found == ENCRYPTED:
        return said != ENCRYPTED
    if found in _CONTAINERS:
        return _find_container(said) not in {None, found}
    return not (said.startswith("image/") and found.startswith("image/"))


def _find_container(mimetype: str) -> str | None:
    """The container of files of a type, or the type itself where it is one of those that are told by their bytes."""
    if mimetype.startswith(_OF_OFFICE) or mimetype.endswith("+zip") or "macroenabled" in mimetype:
        return ZIP
    if mimetype in {"application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"}:
        return OLE
    if mimetype in {PDF, RTF}:
        return mimetype
    return None
