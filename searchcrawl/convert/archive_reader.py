"""What is in an archive (ZIP, tar, or one packed file), within limits on its members, its size and its ratio (C8, X-R15).

A member has a URL of its own: that of the archive, ``!/``, and its path.
"""

from __future__ import annotations

import bz2
import calendar
import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from email.utils import formatdate
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from searchcrawl.bodies import Body, open_body, read_whole
from searchcrawl.codes import Code
from searchcrawl.convert.converter import MAX_FILE_MEMORY_BYTES, Converter, build_page, run_in_process
from searchcrawl.convert.detection import BZIP2, GZIP, XZ, detect
from searchcrawl.exceptions import ConversionFailed, InvalidUrl
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.file_name import find_file_name
from searchcrawl.html.links import MAX_MALFORMED, MAX_SHOWN
from searchcrawl.items import Link, Page
from searchcrawl.rules.archives import ENDINGS, MARK, MAX_DEPTH, TAR_ENDINGS
from searchcrawl.urls import resolve

_USUAL: Final = "cp437"
#: The extra field of Info-ZIP with the name in UTF-8: its id, and its version and checksum before the name.
_UNICODE_PATH: Final = 0x7075
_VERSION_AND_CHECKSUM: Final = struct.Struct("<BL")
_FIELD: Final = struct.Struct("<HH")
#: So much of the names tells their encoding.
_SAMPLE_NAMES: Final = 500
_SAMPLE_BYTES: Final = 16_384
_WEST: Final = ("cp850", "cp1252")
_EAST: Final = ("cp852", "cp1250")
_OTHERS: Final = ("cp866", "cp1251", "cp932", "gb18030", "big5hkscs", "cp949")
#: What languages have besides ASCII letters: those of Western Europe, and of its east.
_WESTERN: Final = tuple(map(frozenset, ("äöüß", "àâæçèéêëîïôùûüÿœ", "áéíñóúüç", "àáâãçéêíóôõúü", "åäöæøé", "àèéìòù")))
_EASTERN: Final = tuple(
    map(frozenset, ("áčďéěíňóřšťúůýž", "ąćęłńóśźż", "áéíóöőúüű", "áäčďéíĺľňóôŕšťúýž", "ăâîşţ", "čćđšž"))
)
#: What names have besides letters.
_SIGNS: Final = frozenset("–—‘’“”„«»°§€²³´·©®")


def read_names(members: Sequence[zipfile.ZipInfo]) -> list[str]:
    """The names of all members; those in no encoding that is said are read as one, by what most of them are."""
    sayings = [_read_said(member) for member in members]
    encoding = guess_encoding(
        _encode_entry(member) for member, said in zip(members, sayings, strict=True) if said is None
    )
    return [
        said if said is not None else _decode(member, encoding) for member, said in zip(members, sayings, strict=True)
    ]


def guess_encoding(names: Iterable[bytes]) -> str:
    """The encoding of names that are not UTF-8, by the first ones; that of ZIP where there are none."""
    sample = b"\n".join(islice(names, _SAMPLE_NAMES))[:_SAMPLE_BYTES]
    return _guess(sample) if sample else _USUAL


def _read_said(member: zipfile.ZipInfo) -> str | None:
    """A name whose encoding is known; None for others. Many programs write UTF-8 without saying so."""
    written = _encode_entry(member)
    for found in _read_unicode_paths(member.extra, written):
        return found
    if member.flag_bits & _UTF_8 or written.isascii():
        return _read_entry_name(member)
    try:
        return written.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _encode_entry(member: zipfile.ZipInfo) -> bytes:
    return _read_entry_name(member).encode("utf-8" if member.flag_bits & _UTF_8 else _USUAL, "replace")


def _read_entry_name(member: zipfile.ZipInfo) -> str:
    """The name as the library read it from the entry itself: since Python 3.12 ``filename`` may be that of an extra field."""
    return member.orig_filename.partition("\0")[0]


def _read_unicode_paths(extra: bytes, written: bytes) -> Iterator[str]:
    """The name in UTF-8 that extra fields have, if they were made for this name and not for an earlier one."""
    at = 0
    while at + _FIELD.size <= len(extra):
        kind, size = _FIELD.unpack_from(extra, at)
        field = extra[at + _FIELD.size : at + _FIELD.size + size]
        at += _FIELD.size + size
        if kind == _UNICODE_PATH and len(field) > _VERSION_AND_CHECKSUM.size:
            version, checksum = _VERSION_AND_CHECKSUM.unpack_from(field)
            if version == 1 and checksum == zlib.crc32(written):
                yield field[_VERSION_AND_CHECKSUM.size :].decode("utf-8", "replace").partition("\0")[0]


def _decode(member: zipfile.ZipInfo, encoding: str) -> str:
    try:
        return _encode_entry(member).decode(encoding)
    except UnicodeDecodeError:
        return _read_entry_name(member)


def _guess(sample: bytes) -> str:
    """The encoding of names; of the European ones one with which they have the letters of a language."""
    guess = _detect(sample, (_USUAL, *_WEST, *_EAST, *_OTHERS))
    if guess not in {_USUAL, *_WEST, *_EAST}:
        return guess
    fitting = _find_fitting(sample, _WEST, _WESTERN) or _find_fitting(sample, _EAST, _EASTERN)
    # An archive has names in several languages.
    fitting = fitting or _find_fitting(sample, _WEST, [frozenset[str]().union(*_WESTERN)])
    return _detect(sample, fitting) if len(fitting) > 1 else [*fitting, _USUAL][0]


def _find_fitting(sample: bytes, encodings: Sequence[str], alphabets: Sequence[frozenset[str]]) -> list[str]:
    """The encodings with which all letters but those of ASCII are in one of the alphabets."""
    fitting = []
    for encoding in encodings:
        letters = {letter for letter in sample.decode(encoding, "replace").lower() if not letter.isascii()} - _SIGNS
        if any(letters <= alphabet for alphabet in alphabets):
            fitting.append(encoding)
    return fitting


def _detect(sample: bytes, encodings: Sequence[str]) -> str:
    # Most archives do without: its tables are loaded where one does not.
    import chardet  # noqa: PLC0415

    # One of those that it may answer: it warns of any other.
    no_match = _USUAL if _USUAL in encodings else encodings[0]
    detected = chardet.detect(
        sample, compat_names=False, include_encodings=encodings, no_match_encoding=no_match, prefer_superset=True
    )
    return detected["encoding"] or no_match


MAX_MEMBERS: Final = 10_000
MAX_UNPACKED_BYTES: Final = 256 << 20
#: How often larger than itself a file may be once it is unpacked.
MAX_RATIO: Final = 250
#: Less than this is no bomb, whatever its ratio.
_HARMLESS_BYTES: Final = 8 << 20
_PIECE_BYTES: Final = 1 << 20
_ENCRYPTED: Final = 0x1
_UTF_8: Final = 0x800
#: The system that has made a member of a ZIP, and where its mode stands there.
_UNIX: Final = 3
_MODE_SHIFT: Final = 16
#: An entry of the directory of a ZIP, without its name.
_ENTRY_BYTES: Final = 46
#: What URLs have in their paths as it is, but for the mark.
_UNESCAPED: Final = "/$&'()*+,;=:@[]|"
_BLOCK_BYTES: Final = tarfile.BLOCKSIZE
_BROKEN: Final = (
    zipfile.BadZipFile, tarfile.TarError, struct.error, zlib.error, lzma.LZMAError, gzip.BadGzipFile, EOFError, OSError, ValueError,
    NotImplementedError, RuntimeError, KeyError, IndexError,
)  # fmt: skip
_UNPACKERS: Final[Mapping[str | None, Callable[[IO[bytes]], Any]]] = {
    GZIP: lambda file: gzip.GzipFile(fileobj=file),
    BZIP2: bz2.BZ2File,
    XZ: lzma.LZMAFile,
}


class ArchiveMember(NamedTuple):
    """A file in an archive: its path as it stands in a URL, its size, and how it is opened; None: it needs a password.

    ``modified`` is when it was changed, as HTTP writes dates; empty where that is not known. What ``leads_out`` of the
    archive, by its path, is not unpacked.
    """

    path: str
    size: int
    open: Callable[[], IO[bytes]] | None
    modified: str = ""
    leads_out: bool = False


class Kept(NamedTuple):
    """A file that was unpacked: the number by which it is called, None where it cannot be read; when it was changed."""

    number: int | None
    modified: str


def find_archive(url: str) -> tuple[str, str] | None:
    """The archive of a URL and the path in it, as members have it; None where the URL is not made like that of one."""
    archive, mark, path = url.rpartition(MARK)
    return (archive, _spell(path)) if mark and archive and path else None


def list_members(body: Body, name: str) -> Iterator[ArchiveMember]:
    """The files in an archive whose own name is ``name``.

    Raises ConversionFailed: 903 for a broken archive, 904 beyond a limit.
    """
    limits = _Limits(len(body))
    try:
        for member in _list_all(body, name, limits):
            limits.count(member.size)
            yield member
    except _BROKEN as error:
        raise ConversionFailed(
            f"archive: {type(error).__name__}: {error}"[:300], code=Code.CONVERSION_FAILED
        ) from error


def try_unpack(body: Body, name: str, folder: str) -> tuple[dict[str, Kept], int] | OSError:
    """What ``unpack`` returns, or the error of the disk: raised in a worker process it would count against the archive."""
    try:
        return unpack(body, name, folder)
    except OSError as error:
        return error


def unpack(body: Body, name: str, folder: str) -> tuple[dict[str, Kept], int]:
    """Writes the files of an archive to ``folder``, called by their numbers; what is at each path, and their bytes.

    Raises what ``list_members`` does, and OSError where they cannot be written.
    """
    limits, kept = _Limits(len(body)), dict[str, Kept]()
    for number, member in enumerate(list_members(body, name)):
        if member.leads_out:
            continue
        kept[member.path] = Kept(None, member.modified)
        if member.open is None:
            continue
        try:
            with member.open() as file, (Path(folder) / str(number)).open("wb") as written:
                while piece := file.read(_PIECE_BYTES):
                    # A size that an archive tells may be wrong.
                    limits.count_bytes(len(piece))
                    written.write(piece)
        except _BROKEN as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
        else:
            kept[member.path] = Kept(number, member.modified)
    return kept, limits.bytes


class _Limits:
    def __init__(self, packed_bytes: int) -> None:
        self._most = min(MAX_UNPACKED_BYTES, max(_HARMLESS_BYTES, packed_bytes * MAX_RATIO))
        self._members = self.bytes = 0

    def count(self, size: int) -> None:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise ConversionFailed(f"an archive of over {MAX_MEMBERS} files", code=Code.CONVERSION_LIMIT)
        self.count_bytes(size)

    def count_bytes(self, size: int) -> None:
        self.bytes += size
        self.check(self.bytes)

    def check(self, size: int) -> None:
        if size > self._most:
            message = f"an archive of over {self._most >> 20} MB, {MAX_RATIO} times its size or more than any may have"
            raise ConversionFailed(message, code=Code.CONVERSION_LIMIT)


def _list_all(body: Body, name: str, limits: _Limits) -> Iterator[ArchiveMember]:
    if body.startswith(b"PK"):
        yield from _list_zip(body)
        return
    unpack = _UNPACKERS.get(detect(body))
    if unpack is None:
        yield from _list_tar(lambda: open_body(body), limits)
        return
    # What is called a tar archive and is none is damaged.
    if name.lower().endswith(TAR_ENDINGS) or _begins_tar(unpack(open_body(body)).read(_BLOCK_BYTES)):
        yield from _list_tar(lambda: unpack(open_body(body)), limits)
        return
    stem = next((name[: -len(ending)] for ending in ENDINGS if name.lower().endswith(ending)), name)
    # Damaged bytes may be those of a tar archive: it is read to its end before it counts as one file.
    size = _measure(unpack(open_body(body)), limits)
    yield _build_member(stem or "file", size, lambda: unpack(open_body(body)))


def _begins_tar(block: bytes) -> bool:
    """Whether an unpacked file begins with the header of a tar archive."""
    try:
        tarfile.TarInfo.frombuf(block, tarfile.ENCODING, "surrogateescape")
    except tarfile.HeaderError:
        # Zeros alone are an empty archive, and may be anything else.
        return False
    return True


def _measure(file: IO[bytes], limits: _Limits) -> int:
    size = 0
    while piece := file.read(_PIECE_BYTES):
        size += len(piece)
        limits.check(size)
    return size


def _list_zip(body: Body) -> Iterator[ArchiveMember]:
    with _open_zip(body) as archive:
        members = archive.infolist()
        for info, name in zip(members, read_names(members), strict=True):
            # The content of a link is the path that it leads to, as in a tar archive.
            is_link = info.create_system == _UNIX and stat.S_ISLNK(info.external_attr >> _MODE_SHIFT)
            if info.is_dir() or is_link:
                continue
            is_open = not info.flag_bits & _ENCRYPTED
            opener = partial(archive.open, info) if is_open else None
            modified = _write_date(partial(calendar.timegm, (*info.date_time, 0, 0, 0)))
            yield _build_member(name, info.file_size, opener, modified)


def _open_zip(body: Body) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(open_body(body))
    except UnicodeDecodeError:
        return zipfile.ZipFile(io.BytesIO(_mend_names(read_whole(body))))


def _mend_names(body: bytes) -> bytes:
    """A ZIP whose names that are said to be UTF-8, and are not, count as names in the usual encoding of ZIP."""
    end = body.rfind(b"PK\x05\x06")
    size, start = struct.unpack_from("<II", body, end + 12) if end >= 0 else (0, 0)
    mended, at = bytearray(body), end - size
    # Something may stand before the archive.
    shift = at - start
    while at >= 0 and body.startswith(b"PK\x01\x02", at):
        (flags,) = struct.unpack_from("<H", body, at + 8)
        lengths = struct.unpack_from("<HHH", body, at + 28)
        (header,) = struct.unpack_from("<I", body, at + 42)
        try:
            body[at + _ENTRY_BYTES : at + _ENTRY_BYTES + lengths[0]].decode("utf-8")
        except UnicodeDecodeError:
            struct.pack_into("<H", mended, at + 8, flags & ~_UTF_8)
            if body.startswith(b"PK\x03\x04", header + shift):
                struct.pack_into("<H", mended, header + shift + 6, flags & ~_UTF_8)
        at += _ENTRY_BYTES + sum(lengths)
    return bytes(mended)


def _list_tar(open_file: Callable[[], IO[bytes]], limits: _Limits) -> Iterator[ArchiveMember]:
    file, encoding = open_file(), ""
    with tarfile.open(fileobj=file, mode="r:", encoding="utf-8") as archive:
        for info in archive:
            # Links lead nowhere: what they name is a file of its own, or not in the archive.
            if not info.isreg():
                continue
            name = info.name
            if not _is_utf_8(name):
                # What they all are in is known only at the end.
                encoding = encoding or guess_encoding(_list_other_names(open_file(), limits))
                name = _to_bytes(name).decode(encoding, "replace")
            modified = _write_date(partial(float, info.mtime))
            yield _build_member(name, info.size, partial(_extract, archive, info), modified)
        # The library takes any broken header for the end. What is cut or damaged must not look like one with fewer files.
        file.seek(archive.offset)
        end = file.read(2 * _BLOCK_BYTES)
        if not archive.offset or len(end) < _BLOCK_BYTES or end.strip(b"\0"):
            raise tarfile.ReadError("a tar archive without an end, or with a broken header")


def _list_other_names(file: IO[bytes], limits: _Limits) -> Iterator[bytes]:
    """The names in a tar archive that are not UTF-8."""
    size = 0
    with tarfile.open(fileobj=file, mode="r:", encoding="utf-8") as archive:
        for info in islice(archive, MAX_MEMBERS):
            size += info.size
            limits.check(size)
            if not _is_utf_8(info.name):
                yield _to_bytes(info.name)


def _is_utf_8(name: str) -> bool:
    """Whether a name in a tar archive could be read as UTF-8: other bytes of it are lone surrogates."""
    return not any("\udc80" <= letter <= "\udcff" for letter in name)


def _to_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _extract(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(info)
    if file is None:
        raise tarfile.ExtractError(info.name)
    return file


def _write_date(read_seconds: Callable[[], float]) -> str:
    try:
        return formatdate(read_seconds(), usegmt=True)
    except (ValueError, OverflowError, OSError):
        return ""


def _build_member(name: str, size: int, opener: Callable[[], IO[bytes]] | None, modified: str = "") -> ArchiveMember:
    """A file by its name in the archive; one whose name is none leads out of it as well."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in {"", "."}]
    path = _quote(_to_bytes("/".join(parts)))
    return ArchiveMember(path, size, opener, modified, leads_out=not parts or ".." in parts)


def _spell(path: str) -> str:
    """A path in a URL as that of a member is spelled: links may escape more, or less."""
    return "/".join(_quote(unquote_to_bytes(part)).replace("/", "%2F") for part in path.split("/"))


def _quote(path: bytes) -> str:
    return quote(path, safe=_UNESCAPED)


def convert_archive(body: Body, context: ConversionContext) -> Page:
    """A page without text, whose links are the files in the archive; what leads out of it counts as malformed.

    Raises ConversionFailed: 903 for a broken archive, 904 beyond a limit.
    """
    # Redirects may lead elsewhere, to a host that no rule includes, and to another one the next time.
    own_url = context.row_url or context.url
    if own_url.count(MARK) >= MAX_DEPTH:
        raise ConversionFailed(f"more than {MAX_DEPTH} archives in each other", code=Code.CONVERSION_LIMIT)
    found: dict[str, None] = {}
    malformed = []
    for member in list_members(body, find_file_name(context.headers, own_url)):
        try:
            if member.leads_out:
                raise InvalidUrl(member.path)
            found[resolve(f"{own_url}{MARK}{member.path}", listed=True)] = None
        except InvalidUrl:
            malformed.append(f"{MARK}{member.path}"[:MAX_SHOWN])
    return build_page(context, text="", links=[Link(url) for url in found], malformed=malformed[:MAX_MALFORMED])


ARCHIVE: Final = Converter(
    name="archive",
    mime_types=(
        *("application/zip", "application/x-zip-compressed", "application/x-zip", "application/x-tar"),
        *("application/gzip", "application/x-gzip", "application/x-gtar", "application/x-compressed-tar"),
        *("application/x-bzip2", "application/x-xz", "application/x-tgz", "application/x-gtar-compressed"),
        *("application/x-compressed", "application/x-gzip-compressed", "application/x-bzip"),
    ),
    convert=convert_archive,
    convert_large=convert_archive,
    choose_place=run_in_process,
    has_links=True,
    max_memory_bytes=MAX_FILE_MEMORY_BYTES,
)
