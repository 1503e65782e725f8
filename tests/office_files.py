"""Builds small office files and archives: ZIP and OLE2 containers, and an Outlook message."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping
from typing import Final

_OLE_MARK: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SECTOR: Final = 512
_MOMENT: Final = (2024, 3, 5, 10, 0, 0)
_SMALL: Final = 64
_CONTENT: Final = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:{0}>{1}</office:{0}></office:body></office:document-content>'
)
_MANIFEST: Final = b'<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
_WORD: Final = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>%b</w:body></w:document>'
_NONE: Final = 0xFFFFFFFF
_END: Final = 0xFFFFFFFE
_OF_TABLE: Final = 0xFFFFFFFD
_A_SECTOR: Final = _SECTOR // 4


def make_zip(members: Mapping[str, bytes]) -> bytes:
    """A ZIP archive with these members."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _MOMENT)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return packed.getvalue()


def open_document(kind: str, body: str) -> bytes:
    """A file of OpenDocument."""
    content = _CONTENT.format(kind, body).encode()
    return make_zip({
        "mimetype": f"application/vnd.oasis.opendocument.{kind}".encode(),
        "META-INF/manifest.xml": _MANIFEST,
        "content.xml": content,
    })  # fmt: skip


def make_docx(body: bytes) -> bytes:
    """A file of Word whose body is this XML."""
    return make_zip({"[Content_Types].xml": b"<Types/>", "word/document.xml": _WORD % body})


def make_ole(streams: Mapping[str, bytes]) -> bytes:
    """An OLE2 file (MS-CFB, version 3) with these streams, each under 4,096 bytes, side by side in its root."""
    small = bytearray()
    small_table: list[int] = []
    entries = []
    for name, content in streams.items():
        first, count = len(small_table), max(1, -(-len(content) // _SMALL))
        small += content.ljust(count * _SMALL, b"\0")
        small_table += [*range(first + 1, first + count), _END]
        entries.append((name, 2, first, len(content)))
    small_sectors = max(1, -(-len(small) // _SECTOR))
    table_sectors = max(1, -(-len(small_table) // _A_SECTOR))
    directory_sectors = -(-(len(entries) + 1) // 4)
    # Sector 0 is the table of chains; then the directory, the table of small chains, and the small sectors.
    chains = [_OF_TABLE]
    starts = []
    for count in (directory_sectors, table_sectors, small_sectors):
        starts.append(len(chains))
        chains += [*range(len(chains) + 1, len(chains) + count), _END]
    assert len(chains) <= _A_SECTOR
    directory, smalls, stream = starts
    body = struct.pack(f"<{_A_SECTOR}L", *chains, *[_NONE] * (_A_SECTOR - len(chains)))
    rows = [_entry("Root Entry", 5, stream, len(small), child=1 if entries else _NONE)]
    rows += [
        _entry(name, kind, first, length, right=number + 2 if number + 1 < len(entries) else _NONE)
        for number, (name, kind, first, length) in enumerate(entries)
    ]
    rows += [_entry("", 0, 0, 0)] * (directory_sectors * 4 - len(rows))
    body += b"".join(rows)
    padding = table_sectors * _A_SECTOR - len(small_table)
    body += struct.pack(f"<{table_sectors * _A_SECTOR}L", *small_table, *[_NONE] * padding)
    body += bytes(small).ljust(small_sectors * _SECTOR, b"\0")
    header = _OLE_MARK + bytes(16) + struct.pack("<5H", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<9L", 0, 1, directory, 0, 4_096, smalls, table_sectors, _END, 0)
    return header + struct.pack("<109L", 0, *[_NONE] * 108) + body


def _entry(name: str, kind: int, first: int, length: int, *, right: int = _NONE, child: int = _NONE) -> bytes:
    text = name.encode("utf-16-le") + b"\0\0" if name else b""
    head = text.ljust(64, b"\0") + struct.pack("<HBB3L", len(text), kind, 1, _NONE, right, child)
    return head + bytes(36) + struct.pack("<LQ", first, length)


def make_message(*, subject: str, sender: str, text: str, html: str = "") -> bytes:
    """An Outlook message (MS-OXMSG) without recipients and attachments."""
    values = {0x001A: "IPM.Note", 0x0037: subject, 0x0C1A: sender, 0x0C1F: "a@b.test", 0x1000: text} | (
        {0x1013: html} if html else {}
    )
    streams = {f"__substg1.0_{number:04X}001F": value.encode("utf-16-le") for number, value in values.items()}
    rows = b"".join(
        struct.pack("<HHLQ", 0x001F, number, 6, len(value.encode("utf-16-le")) + 2) for number, value in values.items()
    )
    # The text is in Unicode.
    rows += struct.pack("<HHLQ", 0x0003, 0x340D, 6, 0x00040000)
    return make_ole({**streams, "__properties_version1.0": bytes(32) + rows})
