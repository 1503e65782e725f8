"""Finds the encoding of a body and decodes it (C9; X-D5, X-R11)."""

from __future__ import annotations

import io
import re
from codecs import getincrementaldecoder
from functools import lru_cache
from typing import Final

import webencodings

from searchcrawl.bodies import Body, LargeBody, list_pieces, open_body
from searchcrawl.html.content_type import join_content_type, parse_content_type
from searchcrawl.items import Headers

#: How many bytes are searched for a meta element. Browsers look at 1,024 bytes, and start again when the parser finds a
#: meta element later; this looks further at once.
_PRESCAN_BYTES: Final = 65_536
_SAMPLE_BYTES: Final = 16_384
_BYTES_BEFORE: Final = 512
#: Encodings that chardet may not answer: those that it finds in windows-1252 by mistake, and those that no pages have.
_NEVER_GUESSED: Final = [
    "iso8859-1",
    "iso8859-3",
    "iso8859-4",
    "iso8859-10",
    "iso8859-14",
    "iso8859-15",
    "iso8859-16",
    "johab",
]
#: A declaration of UTF-8 is wrong if so many bytes don't fit, most of all that are not ASCII, and if with another encoding
#: only one in so many doesn't.
_LEAST_BROKEN: Final = 10
_BETTER: Final = 20
#: One of another encoding is wrong if all is UTF-8, with so many bytes that follow others, and so many different ones. By
#: chance a word has the form of UTF-8 once in some thousand times; once in twenty where ``_DENSE`` has the encoding. The
#: letters "Ç Ğ İ Ö Ş Ü" with blanks between them that do not break have it as well, and one byte that follows.
_LEAST_MULTIPLE: Final = (5, 3)
_MULTIPLE_IF_DENSE: Final = (16, 8)
#: So too if one letter in so many has another form, as where one field of a page has another encoding.
_LEAST_FORMED: Final = 50
_LOOKED_AT_BYTES: Final = 2_048
#: Less is too short for a proof that it is no UTF-16.
_LEAST_BYTES: Final = 64
_HIGH: Final = re.compile(rb"[\x80-\xff]")
_HIGH_RUN: Final = re.compile(rb"[\x80-\xff]+")
_HIGH_IN_LATIN: Final = re.compile(
    rb"(?<=[A-Za-z])[\x80-\xff]{1,2}(?![\x80-\xff])|(?<![\x80-\xff])[\x80-\xff]{1,2}(?=[A-Za-z])"
)
#: Encodings with one byte a letter, of alphabets other than Latin.
_OTHER_SCRIPTS: Final = frozenset({
    "ibm866", "iso-8859-5", "iso-8859-6", "iso-8859-7", "iso-8859-8", "koi8-r", "koi8-u", "windows-1251",
    "windows-1253", "windows-1255", "windows-1256", "windows-874", "x-mac-cyrillic",
})  # fmt: skip
#: Encodings of one byte a letter for languages with Latin letters. The first bytes of ``_ORDINARY`` are a capital or â there,
#: and what follows is no letter, or one that never comes after it.
_WESTERN: Final = frozenset({
    "windows-1250", "windows-1252", "windows-1254", "iso-8859-2", "iso-8859-3", "iso-8859-4", "iso-8859-10", "iso-8859-14",
    "iso-8859-15", "iso-8859-16",
})  # fmt: skip
#: Encodings with letters in the place of bytes that may follow others in UTF-8, and of bytes that come first there.
_DENSE: Final = frozenset({"ibm866", "iso-8859-5", "macintosh", "windows-874", "x-mac-cyrillic"})
#: Where text has few letters beyond ASCII these are most of them: Latin letters, punctuation, signs. One with two bytes is to
#: stand elsewhere than after a capital: "MANHÃ»" has such a letter in both encodings; so has "Å" with a blank
#: that does not break. In other encodings it takes some of them.
_ORDINARY: Final = re.compile(r"[\x00-\x7f\xa0-\u011f\u0121-\u015f\u0161-\u017f\u0218-\u021b\u2000-\u2fff\ufeff]*")
_AFTER_NO_CAPITAL: Final = re.compile(r"[\u2000-\uffff]|(?<![A-Z])[^\x00-\x7f]")
_MARKUP: Final = re.compile(rb"<[^<>]{0,2000}>|[\t\n\r ]{2,}")

_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_TAG: Final = re.compile(rb"<(?:(!--)|(meta)(?=[\t\n\x0c\r /])|(/?[a-z])|[!/?])", re.IGNORECASE)
_NAME_END: Final = re.compile(rb"[\t\n\x0c\r >]")
_ATTRIBUTE: Final = re.compile(
    rb"[\t\n\x0c\r /]*+(?:(>)|([^\t\n\x0c\r />][^\t\n\x0c\r /=>]*+)[\t\n\x0c\r ]*+"
    rb"(?:=[\t\n\x0c\r ]*+(?:\"([^\"]*+)(\"|\Z)|'([^']*+)('|\Z)|([^\t\n\x0c\r >]*+)))?)"
)
_XML: Final = re.compile(rb"<\?xml[^>]{1,200}?\sencoding\s*=\s*[\"']([A-Za-z0-9_.:-]{1,40})[\"']")
_CONTENT_CHARSET: Final = re.compile(
    rb"charset[\t\n\x0c\r ]*=[\t\n\x0c\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\x0c\r ;\"'][^\t\n\x0c\r ;]*))",
    re.IGNORECASE,
)


# Encodings for which Python has a codec that knows more than that of webencodings.
_CODECS: Final = {"gbk": "gb18030", "iso-2022-jp": "iso2022_jp_ext", "x-user-defined": "cp1252"}
# The names of chardet that are no labels of the standard.
_DETECTED: Final = {
    "cp932": "shift_jis",
    "shift_jis_2004": "shift_jis",
    "cp949": "euc-kr",
    "euc_kr": "euc-kr",
    "euc_jis_2004": "euc-jp",
    "big5hkscs": "big5",
    "iso2022_jp_2": "iso-2022-jp",
    "iso2022_jp_2004": "iso-2022-jp",
    "iso2022_jp_ext": "iso-2022-jp",
    "cp874": "windows-874",
    "utf-16-le": "utf-16le",
    "utf-16-be": "utf-16be",
}


def find_encoding(label: str) -> str | None:
    """The name of the encoding that a label stands for (WHATWG Encoding Standard, lower case).

    None for an unknown label: Python also knows rot13, idna, unicode_escape and others that no page may choose
    (X-R11). None as well for those that the standard decodes to U+FFFD alone (hz-gb-2312, iso-2022-kr …).
    """
    encoding = webencodings.lookup(label)
    return None if encoding is None or encoding.name == "replacement" else str(encoding.name)


# There are not many, and nearly each page names one.
@lru_cache(maxsize=128)
def find_codec(encoding: str) -> str:
    """The Python codec that reads an encoding that ``find_encoding`` found."""
    return _CODECS.get(encoding) or str(webencodings.lookup(encoding).codec_info.name)


def decode(body: bytes, *, content_type: str, default_charset: str, markup: bool = True) -> tuple[str, str]:
    """The text of ``body`` without its BOM, and the name of its encoding (WHATWG, lower case).

    The first of these that says anything, and is not plainly wrong, is taken: a BOM, ``content_type`` (the header's value), a
    meta element in the first 64 KiB (where there is ``markup``), UTF-8 if the body is valid UTF-8, detection on a sample,
    ``default_charset``. Bytes that are not valid become U+FFFD; never raises.
    """
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(name, "replace"), name
    declared = _find_in_header(content_type) or (prescan(body) if markup else None)
    if declared is not None:
        text = _decode_as(body, declared)
        otherwise = _read_otherwise(body, text, declared, default_charset, markup=markup)
        return otherwise or (text, declared)
    if body.isascii() and b"\x1b" not in body:
        return body.decode("ascii"), find_encoding(default_charset) or "windows-1252"
    if b"\x1b$" not in body[:_PRESCAN_BYTES]:
        try:
            return body.decode("utf-8"), "utf-8"
        except UnicodeDecodeError:
            pass  # It is not UTF-8, so the encoding is detected.
    guessed = _detect(body) or find_encoding(default_charset) or "windows-1252"
    return _decode_as(body, guessed), guessed


def open_text(
    body: LargeBody, *, content_type: str, default_charset: str, markup: bool = True
) -> tuple[io.TextIOWrapper, str] | None:
    """What ``decode`` gives of a body that is UTF-8 and says nothing else, its text as a file; None for all others.

    Line ends are as they are.
    """
    has_bom = body.startswith(_BOMS[0][0])
    if not has_bom and body.startswith(tuple(bom for bom, _ in _BOMS)):
        return None
    declared = "utf-8" if has_bom else _find_in_header(content_type) or (prescan(body) if markup else None)
    if declared not in {None, "utf-8"}:
        return None
    decoder, is_ascii = getincrementaldecoder("utf-8")(), True
    try:
        for piece in list_pieces(body):
            # Of ISO-2022, maybe.
            if b"\x1b" in piece:
                return None
            decoder.decode(piece)
            is_ascii = is_ascii and piece.isascii()
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return None
    named = "utf-8" if declared or not is_ascii else find_encoding(default_charset) or "windows-1252"
    return io.TextIOWrapper(open_body(body), "utf-8-sig", newline=""), named


def _read_otherwise(
    body: bytes, text: str, declared: str, default_charset: str, *, markup: bool
) -> tuple[str, str] | None:
    """As ``decode``, where a body is plainly not in the encoding that it declares (X-R11); None where it is, or may be.

    ``text`` is what it would be.
    """
    if declared != "utf-8":
        utf8 = _prove_utf8(body, text, declared)
        return None if utf8 is None else (utf8, "utf-8")
    broken = text.count("\ufffd") if "\ufffd" in text else 0
    if broken < _LEAST_BROKEN or broken * 2 < _count_high(text):
        return None
    for encoding in (prescan(body) if markup else None, _detect(body), find_encoding(default_charset)):
        if encoding not in {None, declared}:
            other = _decode_as(body, str(encoding))
            if other.count("\ufffd") * _BETTER <= broken:
                return other, str(encoding)
    return None


def _prove_utf8(body: bytes, text: str, declared: str) -> str | None:
    """The text of a body that declares another encoding and is UTF-8 beyond doubt; ``text`` is what it would be."""
    if declared.startswith("utf-16"):
        # There a blank, a line or a tag has a byte 0.
        if len(body) < _LEAST_BYTES or b"\0" in body:
            return None
    elif body.isascii():
        return None
    try:
        utf8 = body.decode("utf-8")
    except UnicodeDecodeError as error:
        return _read_nearly_utf8(body, error.start)
    if declared.startswith("utf-16"):
        return utf8
    is_dense = declared in _DENSE and "\ufffd" not in text
    least, least_different = _MULTIPLE_IF_DENSE if is_dense else _LEAST_MULTIPLE
    following = len(body) - len(utf8)
    if following >= least and len({letter.encode()[1:] for letter in set(utf8) if letter > "\x7f"}) >= least_different:
        return utf8
    may_be_plain = declared in _WESTERN or (following >= least and not is_dense)
    return utf8 if may_be_plain and _ORDINARY.fullmatch(utf8) and _AFTER_NO_CAPITAL.search(utf8) else None


def _read_nearly_utf8(body: bytes, at: int) -> str | None:
    """The text of a body that is UTF-8 but for a few bytes, the first of them ``at``; None where it is none.

    What is around that byte decides first: a text in another encoding is read no further.
    """
    around = body[max(0, at - _LOOKED_AT_BYTES) : at + _LOOKED_AT_BYTES].decode("utf-8", "replace")
    if around.count("\ufffd") * 2 > _count_high(around):
        return None
    utf8 = body.decode("utf-8", "replace")
    broken = utf8.count("\ufffd")
    return utf8 if _count_high(utf8) - broken >= _LEAST_FORMED * broken else None


def _count_high(text: str) -> int:
    """How many characters are not ASCII."""
    return len(text) - len(text.encode("ascii", "ignore"))


@lru_cache(maxsize=512)
def _find_in_header(content_type: str) -> str | None:
    label = parse_content_type(content_type).charset
    return None if label is None else find_encoding(label)


def _decode_as(body: bytes, encoding: str) -> str:
    if encoding == "euc-jp":
        return _decode_euc_jp(body)
    return body.decode(find_codec(encoding), "replace")


def _decode_euc_jp(body: bytes) -> str:
    """Decodes EUC-JP with the NEC characters (circled digits …) that browsers know and Python's euc_jp does not."""
    try:
        return body.decode("euc_jp")
    except UnicodeDecodeError:
        return body.decode("euc_jis_2004", "replace")


def _detect(body: bytes) -> str | None:
    """The encoding that chardet finds for the text around the first byte that is not ASCII."""
    # Most sites declare their encodings: its tables are loaded where one does not.
    import chardet  # noqa: PLC0415
    from chardet.enums import EncodingEra  # noqa: PLC0415

    eras = EncodingEra.MODERN_WEB | EncodingEra.LEGACY_ISO
    match = _HIGH.search(body)
    start = max(0, match.start() - _BYTES_BEFORE) if match else 0
    sample = body[start : start + 4 * _SAMPLE_BYTES]
    sample = _MARKUP.sub(b" ", sample)[:_SAMPLE_BYTES]
    detected = chardet.detect(
        sample, encoding_era=eras, exclude_encodings=_NEVER_GUESSED, prefer_superset=True, compat_names=False
    )
    name = (detected["encoding"] or "").lower()
    encoding = _DETECTED.get(name) or find_encoding(name) or find_encoding(name.replace("iso8859", "iso-8859"))
    if encoding not in _OTHER_SCRIPTS:
        return encoding
    # chardet takes Italian for Cyrillic, because its few accents are at the ends of words of ASCII letters.
    return None if len(_HIGH_IN_LATIN.findall(sample)) * 2 > len(_HIGH_RUN.findall(sample)) else encoding


def prescan(body: Body) -> str | None:
    """The encoding that an XML declaration or a meta element names (HTML Standard, "prescan a byte stream"), or None.

    If it names UTF-16, the encoding is UTF-8; if x-user-defined, windows-1252. Unknown labels are ignored.
    """
    head = body[:_PRESCAN_BYTES]
    declaration = _XML.match(head)
    if declaration and (encoding := find_encoding(declaration[1].decode("ascii"))):
        return _correct(encoding)
    if b"charset" not in head and b"charset" not in head.lower():
        return None
    position = 0
    while match := _TAG.search(head, position):
        comment, meta, element = match.groups()
        position = match.end()
        if comment:
            end = head.find(b"-->", position - 2)
            position = len(head) if end < 0 else end + 3
        elif meta:
            found, position = _read_meta(head, position)
            if found is not None:
                return found
        elif element:
            end_of_name = _NAME_END.search(head, position)
            position = _skip_attributes(head, end_of_name.start() if end_of_name else len(head))
        else:
            end = head.find(b">", position)
            position = len(head) if end < 0 else end + 1
    return None


def _skip_attributes(head: bytes, position: int) -> int:
    while match := _ATTRIBUTE.match(head, position):
        position = match.end()
        if match[1]:
            break
    return position


def _read_meta(head: bytes, position: int) -> tuple[str | None, int]:
    """The encoding that a meta element declares, whose attributes start at ``position``, and where the element ends."""
    attributes: dict[bytes, bytes] = {}
    while match := _ATTRIBUTE.match(head, position):
        position = match.end()
        if match[1]:
            break
        if match[4] == b"" or match[6] == b"":
            return None, len(head)
        value = match[3] or match[5] or match[7] or b""
        attributes.setdefault(match[2].lower(), value.lower())
    else:
        return None, len(head)
    label = attributes.get(b"charset")
    encoding = None if label is None else find_encoding(label.decode("latin-1"))
    if label is None and attributes.get(b"http-equiv") == b"content-type":
        found = _CONTENT_CHARSET.search(attributes.get(b"content", b""))
        label = (found[1] or found[2] or found[3]) if found else None
        encoding = find_encoding(label.decode("latin-1")) if label else None
    return _correct(encoding), position


def _correct(encoding: str | None) -> str | None:
    """The encoding to use where a meta element names ``encoding``: the element was read as ASCII, so it is not UTF-16."""
    if encoding in {"utf-16be", "utf-16le"}:
        return "utf-8"
    return "windows-1252" if encoding == "x-user-defined" else encoding


#: A tag of a language, in lower case.
LANGUAGE_TAG: Final = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]{1,8})*")
_PAGE: Final = "text/html"
#: Types that are text, so that the same bytes may be sent as another one; what others are, the bytes tell.
_TEXTS: Final = ("text/", "application/json", "application/xml", "application/x-", "application/ld+json")


def read_content_language(headers: Headers) -> str:
    """The one language of Content-Language; several are the languages of the readers, not of the text."""
    values = [value for name, value in headers if name.lower() == b"content-language"]
    if not values:
        return ""
    tag = b",".join(values).decode("latin-1").strip().replace("_", "-").lower()
    return tag if LANGUAGE_TAG.fullmatch(tag) else ""


def describe_reading(body: Body, headers: Headers, mimetype: str) -> str:
    """How the headers make the bytes be read, in words that are compared; empty where a page is read as its bytes say."""
    kind = mimetype if mimetype != _PAGE and (mimetype.startswith(_TEXTS) or mimetype.endswith("+xml")) else ""
    parts = (kind, _find_charset(body, headers), read_content_language(headers))
    return " ".join(f"{name}={part}" for name, part in zip(("type", "charset", "language"), parts, strict=True) if part)


def _find_charset(body: Body, headers: Headers) -> str:
    """The encoding of the header, if another one may be taken without it."""
    label = parse_content_type(join_content_type(headers)).charset
    declared = find_encoding(label) if label is not None else None
    if declared is None or all(piece.isascii() and b"\x1b" not in piece for piece in list_pieces(body)):
        return ""
    named = prescan(body)
    if named is None and declared == "utf-8":
        return "" if _is_utf8(body) else declared
    return "" if named == declared else declared


def _is_utf8(body: Body) -> bool:
    decoder = getincrementaldecoder("utf-8")()
    try:
        for piece in list_pieces(body):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
