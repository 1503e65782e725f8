"""Office files are told apart by what their containers hold."""

from __future__ import annotations

import io
import struct
import time
import zipfile

import pytest

from searchcrawl.convert.detection import ENCRYPTED, OLE, ZIP, detect, find_ole_type, find_zip_type
from tests.office_files import make_ole, make_zip

_OFFICE = "application/vnd.openxmlformats-officedocument"


def types_of(main: str) -> bytes:
    return f'<Types><Default Extension="xml" ContentType="application/xml"/><Override ContentType="{main}"/></Types>'.encode()


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"mimetype": b"application/epub+zip"}, "application/epub+zip"),
        ({"mimetype": b" application/vnd.oasis.opendocument.text\n"}, "application/vnd.oasis.opendocument.text"),
        ({"mimetype": b"no type at all"}, ZIP),
        (
            {"[Content_Types].xml": types_of(f"{_OFFICE}.wordprocessingml.document.main+xml")},
            f"{_OFFICE}.wordprocessingml.document",
        ),
        (
            {"[Content_Types].xml": types_of("application/vnd.ms-word.template.macroEnabledTemplate.main+xml")},
            "application/vnd.ms-word.template.macroenabled.12",
        ),
        (
            {"[Content_Types].xml": types_of("application/vnd.ms-excel.sheet.binary.macroEnabled.main")},
            "application/vnd.ms-excel.sheet.binary.macroenabled.12",
        ),
        ({"xl/workbook.xml": b"<x/>"}, f"{_OFFICE}.spreadsheetml.sheet"),
        ({"a.txt": b"words"}, ZIP),
        ({}, ZIP),
    ],
)
@pytest.mark.parametrize("before", [b"", b"bytes before the archive"])
def test_archive_when_it_is_a_document_then_its_parts_say_of_which_type(
    members: dict[str, bytes], expected: str, before: bytes
) -> None:
    archive = make_zip(members)

    assert find_zip_type(archive) == expected
    assert find_zip_type(before + archive) in {expected, ZIP}
    assert detect(archive) == expected


def test_archive_when_its_parts_lie_then_nothing_is_raised() -> None:
    archive = make_zip({"mimetype": b"application/epub+zip", "[Content_Types].xml": b"x" * 100})

    for cut in range(0, len(archive), 3):
        find_zip_type(archive[:cut] + archive[cut + 3 :])
        find_zip_type(archive[:cut])


def test_archive_when_it_has_a_million_members_or_a_bomb_then_little_is_read() -> None:
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    many = b"PK\x03\x04" + entry * 500_000
    many += struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0, 0, len(entry) * 500_000, 4, 0)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", b" " * 300_000_000)
    began = time.process_time()

    assert find_zip_type(many) == ZIP
    assert find_zip_type(bomb.getvalue()) == ZIP
    assert time.process_time() - began < 0.1


@pytest.mark.parametrize(
    ("streams", "expected"),
    [
        (["WordDocument", "1Table"], "application/msword"),
        (["Workbook"], "application/vnd.ms-excel"),
        (["PowerPoint Document", "Current User"], "application/vnd.ms-powerpoint"),
        (["__properties_version1.0", "__substg1.0_0037001F"], "application/vnd.ms-outlook"),
        (["EncryptionInfo", "EncryptedPackage"], ENCRYPTED),
        (["Something"], OLE),
        ([f"s{n}" for n in range(20)] + ["WordDocument"], "application/msword"),
    ],
)
def test_ole_file_when_it_has_streams_then_they_say_of_which_type(streams: list[str], expected: str) -> None:
    file = make_ole(dict.fromkeys(streams, b"x" * 10))

    assert find_ole_type(file) == expected
    assert detect(file) == expected


def test_ole_file_when_it_is_broken_then_nothing_is_raised() -> None:
    file = make_ole({"WordDocument": b"x"})

    for at in range(0, len(file), 7):
        find_ole_type(file[:at])
        find_ole_type(file[:at] + b"\xfe\xff\xff\xff" + file[at + 4 :])
