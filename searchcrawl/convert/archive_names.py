"""The names in archives as they were meant: programs write what their system has, whatever the format says (C8)."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

_USUAL: Final = "cp437"
_UTF_8: Final = 0x800
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
    encoding = guess_encoding(_to_bytes(member) for member, said in zip(members, sayings, strict=True) if said is None)
    return [
        said if said is not None else _decode(member, encoding) for member, said in zip(members, sayings, strict=True)
    ]


def guess_encoding(names: Iterable[bytes]) -> str:
    """The encoding of names that are not UTF-8, by the first ones; that of ZIP where there are none."""
    sample = b"\n".join(islice(names, _SAMPLE_NAMES))[:_SAMPLE_BYTES]
    return _guess(sample) if sample else _USUAL


def _read_said(member: zipfile.ZipInfo) -> str | None:
    """A name whose encoding is known; None for others. Many programs write UTF-8 without saying so."""
    written = _to_bytes(member)
    for found in _read_unicode_paths(member.extra, written):
        return found
    if member.flag_bits & _UTF_8 or written.isascii():
        return _read_entry_name(member)
    try:
        return written.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _to_bytes(member: zipfile.ZipInfo) -> bytes:
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
        return _to_bytes(member).decode(encoding)
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
