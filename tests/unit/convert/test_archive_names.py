"""The names in archives, in whatever encoding they were written."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from urllib.parse import unquote

import pytest

from searchcrawl.convert.archive_reader import list_members
from tests.office_files import make_zip


def pack(*names: bytes) -> bytes:
    """A ZIP with these names, in an encoding that it does not say."""
    standing = [chr(ord("A") + number) * len(name) for number, name in enumerate(names)]
    packed = make_zip(dict.fromkeys(standing, b"words"))
    for stand, name in zip(standing, names, strict=True):
        packed = packed.replace(stand.encode(), name)
    return packed


def names_in(packed: bytes) -> list[str]:
    return [unquote(member.path) for member in list_members(packed, "x.zip")]


@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("utf-8", ["Grüße.txt"]),
        ("utf-8", ["日本.txt", "größe.txt"]),
        ("cp437", ["größe.txt"]),
        # The library would warn, as no encoding that it is asked for suits.
        ("cp850", ["ä"]),
        ("cp850", ["Straße.txt"]),
        ("cp850", ["Übersicht.pdf", "Prüfbericht für München.doc", "Größe.txt"]),
        ("cp1252", ["Grüße.txt"]),
        ("cp1252", ["Übersicht.pdf", "Prüfbericht für München.doc", "résumé.txt", "Año.txt"]),
        ("cp1252", ["Übersicht – Straße.pdf"]),
        ("cp852", ["Příloha č. 1.doc", "žádost.doc"]),
        ("cp1250", ["Zażółć.doc"]),
        ("cp866", ["Документ.doc"]),
        ("cp1251", ["Документ.doc"]),
        ("cp932", ["日本語.txt"]),
        ("cp932", ["新しいフォルダー/会議資料.doc", "表.txt", "テスト.txt"]),
        ("gbk", ["文件夹/新建文本文档.txt", "报告.doc"]),
        ("big5", ["新資料夾/報告.doc"]),
        ("cp949", ["새 폴더/문서.doc"]),
    ],
)
def test_zip_when_its_encoding_is_not_said_then_names_are_read_in_it(encoding: str, names: list[str]) -> None:
    packed = pack(*(name.encode(encoding) for name in [*names, "long_name_in_ascii.txt"]))

    assert names_in(packed) == [*names, "long_name_in_ascii.txt"]


@pytest.mark.parametrize(("summed", "name"), [(b"__.txt", "日本.txt"), (b"other", "__.txt")])
def test_zip_when_a_name_is_there_in_unicode_as_well_then_that_counts_if_it_is_for_this_one(
    summed: bytes, name: str
) -> None:
    packed, written = io.BytesIO(), "日本.txt".encode()
    with zipfile.ZipFile(packed, "w") as archive:
        info = zipfile.ZipInfo("__.txt")
        other = struct.pack("<HHL", 0x5455, 4, 0)
        info.extra = other + struct.pack("<HHBL", 0x7075, 5 + len(written), 1, zlib.crc32(summed)) + written
        archive.writestr(info, b"words")

    assert names_in(packed.getvalue()) == [name]


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("encoding", ["cp1252", "cp932", "utf-8"])
def test_tar_when_names_are_in_one_encoding_then_are_read_in_it(encoding: str, mode: str) -> None:
    names = (
        ["新しいフォルダー/会議資料.doc", "表.txt"] if encoding == "cp932" else ["Übersicht.pdf", "Straße für Köln.doc"]
    )
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode, format=tarfile.GNU_FORMAT, encoding=encoding) as archive:  # type: ignore[call-overload]
        for name in [*names, "plain.txt"]:
            info = tarfile.TarInfo(name)
            info.size = 5
            archive.addfile(info, io.BytesIO(b"words"))

    read = [
        (unquote(member.path), member.open().read())
        for member in list_members(packed.getvalue(), "x.tar")
        if member.open is not None
    ]

    assert read == [(name, b"words") for name in [*names, "plain.txt"]]


def test_zip_when_one_name_is_in_another_encoding_then_the_others_stay() -> None:
    packed = pack(*(name.encode("cp932") for name in ["会議資料.doc", "新しいフォルダー.txt"]), b"cut\x83")

    assert names_in(packed) == ["会議資料.doc", "新しいフォルダー.txt", "cutâ"]
