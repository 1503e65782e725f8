from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from searchcrawl.codes import Code
from searchcrawl.convert import archive_reader
from searchcrawl.convert.archive_reader import Kept, convert_archive, find_archive, list_members, unpack
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.context import ConversionContext
from searchcrawl.urls import resolve
from tests.office_files import make_zip

DATE = "Tue, 05 Mar 2024 10:00:00 GMT"


def make_tar(members: dict[str, bytes], mode: str = "w") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), 1_709_632_800
            archive.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return packed.getvalue()


def make_tgz(members: dict[str, bytes]) -> bytes:
    return make_tar(members, "w:gz")


def make_txz(members: dict[str, bytes]) -> bytes:
    return make_tar(members, "w:xz")


@pytest.mark.parametrize("make", [make_zip, make_tar, make_tgz, make_txz])
def test_archive_when_unpacked_then_its_files_are_there_and_none_leads_out(
    make: Callable[[dict[str, bytes]], bytes], tmp_path: Path
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    body = make(
        {"a.txt": b"one", "b/c d?.txt": b"two", "../../out.txt": b"no", "/abs.txt": b"three", "é!.txt": b"four"}
    )

    kept, size = unpack(body, "x.zip", str(inside))

    paths = ["a.txt", "b/c%20d%3F.txt", "abs.txt", "%C3%A9%21.txt"]
    assert list(kept) == paths
    assert {each.modified for each in kept.values()} == {DATE}
    assert [(inside / str(each.number)).read_bytes() for each in kept.values()] == [b"one", b"two", b"three", b"four"]
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {inside}
    assert size >= 3 + 3 + 5 + 4


@pytest.mark.parametrize(
    ("body", "name", "path"),
    [
        (gzip.compress(b"words", mtime=0), "notes.txt.gz", "notes.txt"),
        (bz2.compress(b"words"), "notes.txt.BZ2", "notes.txt"),
        (lzma.compress(b"words"), "notes.txt.xz", "notes.txt"),
        (gzip.compress(b"words", mtime=0), "download", "download"),
        (gzip.compress(b"words", mtime=0), "", "file"),
    ],
    ids=["gz", "bz2", "xz", "unnamed", "empty"],
)
def test_packed_file_when_unpacked_then_is_called_as_without_its_ending(
    body: bytes, name: str, path: str, tmp_path: Path
) -> None:
    kept, _ = unpack(body, name, str(tmp_path))

    assert kept == {path: Kept(0, "")}
    assert (tmp_path / "0").read_bytes() == b"words"


@pytest.mark.parametrize(
    "body",
    [b"", b"PK\x03\x04 cut", make_zip({"a": b"b"})[:-10], make_tgz({"a": b"b" * 9_000})[:-30], b"no archive"],
    ids=["empty", "head", "cut zip", "cut tar", "text"],
)
def test_archive_when_it_is_broken_then_fails_with_903(body: bytes, tmp_path: Path) -> None:
    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_FAILED):
        unpack(body, "a", str(tmp_path))


MANY = {f"{number}.txt": b"%d words" % number * 400 for number in range(9)}
PLAIN = make_tar(MANY)
PACKERS = [bz2.compress, gzip.compress, lzma.compress]


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("name", ["pack.tar.gz", "download"])
def test_packed_archive_when_any_byte_is_damaged_then_never_has_fewer_files(
    pack: Callable[[bytes], bytes], name: str, tmp_path: Path
) -> None:
    body = pack(PLAIN)
    paths = set(unpack(body, name, str(tmp_path))[0])

    for at in range(8, len(body), max(1, len(body) // 60)):
        for damaged in (body[:at], body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]):
            try:
                kept, _ = unpack(damaged, name, str(tmp_path))
            except ConversionFailed as error:
                assert error.code == Code.CONVERSION_FAILED  # noqa: PT017 - some damages hurt nothing
            else:
                assert set(kept) == paths


@pytest.mark.parametrize("at", [512 * number for number in range(14)] + [700, 512 * 4 + 100])
def test_tar_when_it_is_cut_then_fails_with_903(at: int, tmp_path: Path) -> None:
    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_FAILED):
        unpack(PLAIN[:at], "pack.tar", str(tmp_path))


@pytest.mark.parametrize("damage", [b"\xff" * 30, bytes(512)])
def test_tar_when_a_later_header_is_damaged_then_fails_with_903(damage: bytes, tmp_path: Path) -> None:
    at = PLAIN.index(b"4.txt\0")

    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_FAILED):
        unpack(PLAIN[:at] + damage + PLAIN[at + len(damage) :], "pack.tar", str(tmp_path))


@pytest.mark.parametrize("name", ["pack.zip", "pack.tar"])
def test_archive_when_it_is_zeros_then_fails_with_903(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_FAILED):
        unpack(bytes(10_240), name, str(tmp_path))


def test_zip_when_one_date_is_none_then_all_is_read_without_it(tmp_path: Path) -> None:
    body = bytearray(make_zip({"a.txt": b"one", "b.txt": b"two"}))
    at = body.index(b"PK\x01\x02") + 14
    body[at : at + 2] = bytes(2)

    kept, _ = unpack(bytes(body), "a.zip", str(tmp_path))

    assert kept == {"a.txt": Kept(0, ""), "b.txt": Kept(1, DATE)}


def test_zip_when_a_name_is_not_utf8_as_it_says_then_all_is_read(tmp_path: Path) -> None:
    body = make_zip({"x\xe9y.txt": b"one", "é.txt": b"two", "c.txt": b"three"})
    body = body.replace("x\xe9y.txt".encode(), b"x\xff\xfey.txt")

    kept, _ = unpack(body, "a.zip", str(tmp_path))

    assert {path: (tmp_path / str(each.number)).read_bytes() for path, each in kept.items()} == {
        "x%C2%A0%E2%96%A0y.txt": b"one", "%C3%A9.txt": b"two", "c.txt": b"three",
    }  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        make_zip({f"{number}.txt": b"" for number in range(30)}),
        make_zip({"a.txt": bytes(20 << 20)}),
        make_tgz({"a.txt": bytes(20 << 20)}),
        gzip.compress(b"x" * (20 << 20), mtime=0),
    ],
    ids=["members", "zip", "tar", "gzip"],
)
def test_r15_archive_when_it_passes_a_limit_then_fails_with_904(
    body: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_reader, "MAX_MEMBERS", 20)

    with pytest.raises(ConversionFailed, check=lambda error: error.code == Code.CONVERSION_LIMIT):
        unpack(body, "a.txt.gz", str(tmp_path))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 16 << 20


def test_r15_member_when_its_size_is_a_lie_then_it_is_counted_as_it_comes(tmp_path: Path) -> None:
    body = bytearray(make_zip({"a.txt": bytes(20 << 20)}))
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = body.index(mark) + at
        body[start : start + 4] = (9).to_bytes(4, "little")

    kept, _ = unpack(bytes(body), "a.zip", str(tmp_path))

    # What is longer than it says fails its checksum.
    assert kept == {"a.txt": Kept(None, DATE)}


def test_archive_when_it_is_one_in_too_many_then_fails_with_904() -> None:
    body = make_zip({"a.txt": b"x"})

    page = convert_archive(body, ConversionContext(url="http://a.test/a.zip!/b.zip!/c.zip"))
    with pytest.raises(ConversionFailed) as caught:
        convert_archive(body, ConversionContext(url="http://a.test/a.zip!/b.zip!/c.zip!/d.zip"))

    assert [link.url for link in page.links] == ["http://a.test/a.zip!/b.zip!/c.zip!/a.txt"]
    assert caught.value.code == Code.CONVERSION_LIMIT


def test_archive_when_its_url_has_a_query_then_its_files_have_urls_too() -> None:
    page = convert_archive(make_zip({"a b.txt": b"x"}), ConversionContext(url="http://a.test/get?id=5"))

    assert [link.url for link in page.links] == ["http://a.test/get?id=5!/a%20b.txt"]
    assert find_archive(page.links[0].url) == ("http://a.test/get?id=5", "a%20b.txt")


@pytest.mark.parametrize(
    "name",
    ["report (1).html", "a'b,c;d=e@f.txt", "100%.txt", "a+b&c$.txt", "[x]|{y}.txt", "é ü.txt", "a!b.txt", "q?#.txt"],
)
def test_file_when_a_link_spells_it_as_browsers_do_then_it_is_the_same_file(name: str, tmp_path: Path) -> None:
    written = name.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    body = make_zip({f"d/{name}": b"x"})

    kept, _ = unpack(body, "a.zip", str(tmp_path))
    (link,) = convert_archive(body, ConversionContext(url="http://a.test/a.zip")).links

    for url in (link.url, resolve(f"d/{written}", "http://a.test/a.zip!/index.html")):
        found = find_archive(url)
        assert found is not None
        assert list(kept) == [found[1]]


@pytest.mark.parametrize("make", [make_zip, make_tar])
@pytest.mark.parametrize("name", ["../out.txt", "a/../../out.txt", "..\\out.txt", "."])
def test_archive_when_a_file_leads_out_of_it_then_is_told(make: Callable[[dict[str, bytes]], bytes], name: str) -> None:
    page = convert_archive(make({"a.txt": b"x", name: b"y"}), ConversionContext(url="http://a.test/a.zip"))

    assert [link.url for link in page.links] == ["http://a.test/a.zip!/a.txt"]
    assert page.malformed == (f"!/{name.strip('.') and name.replace(chr(92), '/')}",)


def test_archive_when_redirects_led_to_it_then_its_files_are_called_by_its_row() -> None:
    context = ConversionContext(url="http://cdn.test/x9.gz?key=1", row_url="http://a.test/notes.txt.gz")

    page = convert_archive(gzip.compress(b"words", mtime=0), context)

    assert [link.url for link in page.links] == ["http://a.test/notes.txt.gz!/notes.txt"]


@pytest.mark.parametrize("url", ["http://a.test/a.zip", "http://a.test/a.zip!/", "http://a.test/!x"])
def test_url_when_it_is_not_that_of_a_file_in_an_archive_then_has_no_archive(url: str) -> None:
    assert find_archive(url) is None


def test_members_when_a_password_is_needed_then_cannot_be_opened() -> None:
    body = make_zip({"a.txt": b"x"})
    at = body.index(b"PK\x01\x02") + 8

    (member,) = list_members(body[:at] + b"\x01" + body[at + 1 :], "a.zip")

    assert member.open is None


def test_zip_when_it_has_a_link_then_that_is_no_file() -> None:
    packed = io.BytesIO(make_zip({"a.txt": b"one"}))
    with zipfile.ZipFile(packed, "a") as archive:
        link = zipfile.ZipInfo("link.txt")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")

    assert [member.path for member in list_members(packed.getvalue(), "x.zip")] == ["a.txt"]


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
