"""What a body is by its first bytes, and whether that refutes its header (B9, 1009)."""

from __future__ import annotations

import re
from typing import Final

from searchcrawl.convert.containers import ENCRYPTED, OLE, ZIP, find_ole_type, find_zip_type

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
_RTF_HEAD: Final = re.compile(rb"\{\\rtf\d[\\{}\s]")
_TAR: Final = "application/x-tar"
_TAR_BYTES: Final = 512
_TAR_AT: Final = 257
_TAR_MARK: Final = b"ustar"
_TAR_SUM: Final = slice(148, 156)
#: Containers of which the header may know better what they hold.
_CONTAINERS: Final = frozenset({ZIP, OLE, GZIP})
_OF_OFFICE: Final = ("application/vnd.openxmlformats-officedocument", "application/vnd.oasis.opendocument")
_FIRST_BYTES: Final = frozenset(mark[0] for mark, _ in _SIGNATURES)


def detect(body: bytes) -> str | None:
    """The type of a binary format that a body begins like; None where it begins like none that is known."""
    if not body or (body[0] not in _FIRST_BYTES and not body.startswith(_TAR_MARK, _TAR_AT)):
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


def begins_like_container(body: bytes) -> bool:
    """Whether what a body is may be told only by what comes later in it."""
    return detect(body[:_TAR_BYTES]) in {ZIP, OLE}


def begins_like_binary(body: bytes) -> bool:
    """Whether a body begins as no text does: with what is no letter in any encoding, or as a whole PDF file."""
    found = detect(body)
    if found == PDF:
        return _PDF_HEAD.match(body[:_PDF_HEAD_BYTES]) is not None
    return found is not None and not body.startswith(_LETTERS)


def is_rtf(body: bytes) -> bool:
    """Whether a body that is sent as text is an RTF file from its beginning to its end."""
    return _RTF_HEAD.match(body) is not None and body.rstrip(b" \t\r\n\0").endswith(b"}")


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
