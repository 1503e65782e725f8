"""Mails: what is written in them becomes plain text in UTF-8 before a library reads them (C8).

The library takes the styles and scripts of HTML for text, prefers it to the same in plain text, and knows no encoding that
is not named. It reads no forwarded mail where the outer one has no text. Attachments and headers are left to it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import string
import struct
from collections.abc import Iterator
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser
from itertools import islice
from typing import Final, NamedTuple

from searchcrawl.convert.html_converter import read_html_text
from searchcrawl.html.encoding import decode

_PLAIN: Final = "text/plain"
_HTML: Final = "text/html"
_FORWARDED: Final = "message/rfc822"
_ALTERNATIVE: Final = "multipart/alternative"
_DIGEST: Final = "multipart/digest"
#: What is nested deeper stays as it is: each level reads the mail once more.
_MAX_DEPTH: Final = 20
_MAX_HEADER_BYTES: Final = 2_000
_NAMELESS: Final = frozenset({"", "us-ascii", "ascii"})
#: Encodings by names that the library does not know.
_OTHER_NAMES: Final = {"cp932": "shift_jis", "ms932": "shift_jis", "cp936": "gbk", "cp949": "euc-kr", "cp950": "big5"}
#: Headers that say how a part is written, with the lines that they are folded into.
_ABOUT: Final = re.compile(
    rb"^content-(?:type|transfer-encoding|disposition):[^\n]*+(?>\n[ \t][^\n]*+)*+\n?", re.IGNORECASE | re.MULTILINE
)
#: Headers of a forwarded mail that are text of the outer one.
_SAID: Final = re.compile(
    rb"^((?:subject|from|to|cc|date):[^\n]*+(?>\n[ \t][^\n]*+)*+)\n?", re.IGNORECASE | re.MULTILINE
)
_MOST_SAID: Final = 10
_CODED_BYTES: Final = string.ascii_letters.encode() + string.digits.encode() + b"+/=" + string.whitespace.encode()
_LINE_END: Final = re.compile(rb"(--)?[ \t]*+\r?(?:\n|\Z)")
_WRITTEN: Final = b"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"


#: The names of streams of Outlook (MS-OXMSG, 2.2.1.3) for the text, and for its HTML, which sorts as its other one.
_TEXT_STREAMS: Final = ("__substg1.0_1000001F", "__substg1.0_1000001E")
_HTML_STREAMS: Final = {
    "__substg1.0_10130102": "__substg1.0_10130103",
    "__substg1.0_1013001F": "__substg1.0_10130020",
    "__substg1.0_1013001E": "__substg1.0_1013001D",
}
_ENTRY_BYTES: Final = 128
_SIZE_OFFSET: Final = 120
_NO_TEXT_BYTES: Final = 8


def hide_html(body: bytes) -> bytes:
    """The message of Outlook without its HTML, if each text in it is there in plain text as well."""
    texts = [at for name in _TEXT_STREAMS for at in _find_entries(body, name)]
    sized = [at for at in texts if struct.unpack_from("<L", body, at + _SIZE_OFFSET)[0] > _NO_TEXT_BYTES]
    found = {at: hidden for name, hidden in _HTML_STREAMS.items() for at in _find_entries(body, name)}
    if not found or len(sized) < len(found):
        return body
    changed = bytearray(body)
    for at, hidden in found.items():
        changed[at : at + 2 * len(hidden)] = hidden.encode("utf-16-le")
    return bytes(changed)


def _find_entries(body: bytes, name: str) -> Iterator[int]:
    """Where the entries of a directory with this name begin."""
    sought = (name + "\0").encode("utf-16-le")
    at = body.find(sought)
    while at >= 0:
        if not at % _ENTRY_BYTES and at + _ENTRY_BYTES <= len(body):
            yield at
        at = body.find(sought, at + len(sought))


def simplify_mail(body: bytes, default_charset: str) -> bytes:
    """The mail with its texts as plain ones in UTF-8; of several forms of the same text the plain one."""
    body = _mend_head(body if b"\n" in body else body.replace(b"\r", b"\n"), default_charset)
    mail = _Mail(body, default_charset)
    mail.take(mail.read_part(0, 0, len(body)), depth=0)
    return b"".join(mail.pieces)


def _mend_head(body: bytes, default_charset: str) -> bytes:
    """The mail with its headers in UTF-8: some are written without any coding."""
    content = _find_content(body, 0, len(body))
    head = body[:content]
    try:
        head.decode("utf-8")
    except UnicodeDecodeError:
        return _decode(head, "", default_charset).encode("utf-8", "replace") + body[content:]
    return body


class _Part(NamedTuple):
    """A part of a mail: where its mark, its headers and its content begin, where it ends, and what its headers say."""

    mark: int
    head: int
    content: int
    end: int
    about: Message

    @property
    def kind(self) -> str:
        """Its type; empty for an attachment, which is none of the mail's texts, unless it is a mail."""
        kind = self.about.get_content_type()
        return "" if kind != _FORWARDED and self.about.get_content_disposition() == "attachment" else kind

    @property
    def charset(self) -> str:
        """The encoding that it names; empty for none."""
        charset = (self.about.get_content_charset() or "").lower()
        return "" if charset in _NAMELESS else _OTHER_NAMES.get(charset, charset)


class _Mail:
    def __init__(self, body: bytes, default_charset: str) -> None:
        self.pieces: list[bytes | memoryview] = []
        self._body = body
        self._view = memoryview(body)
        self._default_charset = default_charset
        self._forwarded = 0

    def read_part(self, mark: int, head: int, end: int, *, default_kind: str = _PLAIN) -> _Part:
        content = _find_content(self._body, head, end)
        found = (each.group()[:_MAX_HEADER_BYTES].rstrip() for each in _ABOUT.finditer(self._body, head, content))
        about = BytesHeaderParser().parsebytes(b"\n".join(found))
        about.set_default_type(default_kind)
        return _Part(mark, head, content, end, about)

    def take(self, part: _Part, depth: int, *, without_html: bool = False) -> None:
        """Writes a part."""
        kind = part.kind
        boundary = part.about.get_boundary() if kind.startswith("multipart/") and depth < _MAX_DEPTH else None
        text = self._read_text(part) if kind in {_PLAIN, _HTML} else None
        if boundary:
            self._take_parts(part, boundary, depth, without_html=without_html)
        elif kind == _FORWARDED and depth < _MAX_DEPTH and not _transfer_of(part):
            self._take_forwarded(part, depth, without_html=without_html)
        elif text is not None:
            self.pieces += [self._read_head(part), _WRITTEN, _encode(text)]
        else:
            self.pieces.append(self._view[part.mark : part.end])

    def _read_head(self, part: _Part) -> bytes:
        """The mark and the headers of a part, but for those that say how it is written."""
        head = self._body[part.mark : part.content].rstrip(b"\r\n")
        return _ABOUT.sub(b"", head + b"\n") if head else b""

    def _take_forwarded(self, part: _Part, depth: int, *, without_html: bool) -> None:
        """Writes a mail in a mail as parts of it, the first of which is what its headers say."""
        inner = self.read_part(part.content, part.content, part.end)
        said = list(islice(_SAID.finditer(self._body, inner.head, inner.content), _MOST_SAID))
        lines = [part.about.get_filename() or ""]
        lines += [_read_header(each[1][:_MAX_HEADER_BYTES], self._default_charset) for each in said]
        self._forwarded += 1
        mark = b"%s-%08d" % (hashlib.sha256(self._body).hexdigest().encode(), self._forwarded)
        self.pieces += [
            self._read_head(part),
            b"Content-Type: multipart/mixed; boundary=",
            mark,
            b"\r\n\r\n--",
            mark,
            b"\r\n",
        ]
        self.pieces += [_WRITTEN, _encode("\n".join(lines)), b"\r\n--", mark, b"\r\n"]
        self.take(inner, depth + 1, without_html=without_html)
        self.pieces += [b"\r\n--", mark, b"--\r\n"]

    def _take_parts(self, part: _Part, boundary: str, depth: int, *, without_html: bool) -> None:
        parts = list(self._split(part, b"--" + boundary.encode("utf-8", "surrogateescape")))
        self.pieces.append(self._view[part.mark : parts[0].mark if parts else part.end])
        if part.kind == _ALTERNATIVE:
            plain = (each for each in parts if each.kind == _PLAIN)
            without_html |= any(self._body[each.content : each.end].strip() for each in plain)
        for each in parts:
            if not (without_html and each.kind == _HTML):
                self.take(each, depth + 1, without_html=without_html)
        if parts:
            self.pieces.append(self._view[parts[-1].end : part.end])

    def _split(self, part: _Part, line: bytes) -> Iterator[_Part]:
        """The parts between lines that begin with ``line``."""
        begun: tuple[int, int] | None = None
        kind = _FORWARDED if part.kind == _DIGEST else _PLAIN
        at = self._body.find(line, part.content, part.end)
        while at >= 0:
            after = _LINE_END.match(self._body, at + len(line), part.end)
            if after is not None and (at == part.content or self._body[at - 1 : at] == b"\n"):
                if begun is not None:
                    yield self.read_part(*begun, at, default_kind=kind)
                begun = at, after.end()
                if after.group(1):
                    return
            at = self._body.find(line, at + len(line), part.end)
        if begun is not None:
            yield self.read_part(*begun, part.end, default_kind=kind)

    def _read_text(self, part: _Part) -> str | None:
        """The text of a part; None for one that the library reads as well."""
        charset, is_html, transfer = part.charset, part.kind == _HTML, _transfer_of(part)
        written = self._body[part.content : part.end]
        coded, footer = _split_footer(written) if transfer == "base64" else (written, b"")
        is_known = charset and charset not in _OTHER_NAMES.values()
        is_plain = not is_html and not footer
        content = None if is_known and is_plain else _undo_transfer(coded, transfer)
        if content is None or (is_plain and content.isascii()):
            return None
        if is_html:
            content_type = f"{part.kind}; charset={charset}" if charset else part.kind
            text = read_html_text(content, content_type, default_charset=self._default_charset)
        else:
            text = _decode(content, charset, self._default_charset)
        return f"{text}\n{_decode(footer, '', self._default_charset)}" if footer else text


def _split_footer(written: bytes) -> tuple[bytes, bytes]:
    """A content in base64, and the plain text that mailing lists write below it; empty for none."""
    if not written.translate(None, _CODED_BYTES):
        return written, b""
    at = width = 0
    for line in written.splitlines(keepends=True):
        coded = line.strip()
        if coded.translate(None, _CODED_BYTES) or (width and not coded):
            break
        at += len(line)
        width = width or len(coded)
        # Only the last line is shorter, or padded.
        if width and (len(coded) < width or coded.endswith(b"=")):
            break
    return (written[:at], written[at:]) if width else (written, b"")


def _undo_transfer(written: bytes, transfer: str) -> bytes | None:
    if transfer == "quoted-printable":
        return binascii.a2b_qp(written)
    if transfer != "base64":
        return None if transfer else written
    try:
        # Padding is often left away.
        return binascii.a2b_base64(written + b"===")
    except binascii.Error:
        return None


def _find_content(body: bytes, head: int, end: int) -> int:
    """Where the content of a part begins: after the first empty line."""
    for blank in (b"\n", b"\r\n"):
        if body.startswith(blank, head, end):
            return head + len(blank)
    for blank in (b"\n\n", b"\n\r\n"):
        at = body.find(blank, head, end)
        end = at + len(blank) if at >= 0 else end
    return end


def _encode(text: str) -> bytes:
    return base64.encodebytes(text.encode("utf-8", "replace"))


def _decode(written: bytes, charset: str, default_charset: str) -> str:
    header = f"{_PLAIN}; charset={charset}" if charset else _PLAIN
    return decode(written, content_type=header, default_charset=default_charset, markup=False)[0]


def _read_header(line: bytes, default_charset: str) -> str:
    """A header as one line, its encoded words decoded; as it stands where they are broken."""
    text = " ".join(_decode(line, "", default_charset).split())
    try:
        words = decode_header(text)
    except (HeaderParseError, ValueError):
        return text
    return "".join(
        word if isinstance(word, str)
        else _decode(word, charset, default_charset) if charset
        else word.decode("raw-unicode-escape", "replace")
        for word, charset in words
    )  # fmt: skip


def _transfer_of(part: _Part) -> str:
    """The coding of a content; empty for none."""
    transfer = str(part.about.get("Content-Transfer-Encoding", "")).partition(";")[0].strip().lower()
    return "" if transfer in {"7bit", "8bit", "binary"} else transfer
