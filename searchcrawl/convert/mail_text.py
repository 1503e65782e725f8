"""Mails: what is written in them becomes plain text in UTF-8 before a library reads them (C8).

The library takes the styles and scripts of HTML for text, prefers it to the same in plain text, and knows no encoding that
is not named. Attachments and headers are left to it.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterator
from email.message import Message
from email.parser import BytesHeaderParser
from typing import Final, NamedTuple

from searchcrawl.html.encoding import decode_text

_PLAIN: Final = "text/plain"
_HTML: Final = "text/html"
_FORWARDED: Final = "message/rfc822"
_ALTERNATIVE: Final = "multipart/alternative"
#: What is nested deeper stays as it is: each level reads the mail once more.
_MAX_DEPTH: Final = 20
_MAX_HEADER_BYTES: Final = 2_000
_NAMELESS: Final = frozenset({"", "us-ascii", "ascii"})
#: Headers that say how a part is written, with the lines that they are folded into.
_ABOUT: Final = re.compile(
    rb"^content-(?:type|transfer-encoding|disposition):[^\n]*+(?:\n[ \t][^\n]*+)*+\n?", re.IGNORECASE | re.MULTILINE
)
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
    mail = _Mail(body, default_charset)
    mail.take(mail.read_part(0, 0, len(body)), depth=0)
    return b"".join(mail.pieces)


class _Part(NamedTuple):
    """A part of a mail: where its mark, its headers and its content begin, where it ends, and what its headers say."""

    mark: int
    head: int
    content: int
    end: int
    about: Message

    @property
    def kind(self) -> str:
        """Its type; empty for an attachment, which is none of the mail's texts."""
        return "" if self.about.get_content_disposition() == "attachment" else self.about.get_content_type()


class _Mail:
    def __init__(self, body: bytes, default_charset: str) -> None:
        self.pieces: list[bytes | memoryview] = []
        self._body = body
        self._view = memoryview(body)
        self._default_charset = default_charset

    def read_part(self, mark: int, head: int, end: int) -> _Part:
        content = self._find_content(head, end)
        found = (each.group()[:_MAX_HEADER_BYTES].rstrip() for each in _ABOUT.finditer(self._body, head, content))
        return _Part(mark, head, content, end, BytesHeaderParser().parsebytes(b"\n".join(found)))

    def take(self, part: _Part, depth: int, *, without_html: bool = False) -> None:
        """Writes a part."""
        kind = part.kind
        boundary = part.about.get_boundary() if kind.startswith("multipart/") and depth < _MAX_DEPTH else None
        text = self._read_text(part) if kind in {_PLAIN, _HTML} else None
        if boundary:
            self._take_parts(part, boundary, depth, without_html=without_html)
        elif kind == _FORWARDED and depth < _MAX_DEPTH and not _transfer_of(part):
            self.pieces.append(self._view[part.mark : part.content])
            self.take(self.read_part(part.content, part.content, part.end), depth + 1, without_html=without_html)
        elif text is not None:
            head = _ABOUT.sub(b"", self._body[part.mark : part.content].rstrip(b"\r\n") + b"\n")
            self.pieces += [head, _WRITTEN, base64.encodebytes(text.encode("utf-8", "replace"))]
        else:
            self.pieces.append(self._view[part.mark : part.end])

    def _take_parts(self, part: _Part, boundary: str, depth: int, *, without_html: bool) -> None:
        parts = list(self._split(part, b"--" + boundary.encode("utf-8", "surrogateescape")))
        self.pieces.append(self._view[part.mark : parts[0].mark if parts else part.end])
        if part.kind == _ALTERNATIVE:
            without_html |= any(self._is_plain_text(each) for each in parts)
        for each in parts:
            if not (without_html and each.kind == _HTML):
                self.take(each, depth + 1, without_html=without_html)
        if parts:
            self.pieces.append(self._view[parts[-1].end : part.end])

    def _split(self, part: _Part, line: bytes) -> Iterator[_Part]:
        """The parts between lines that begin with ``line``."""
        begun: tuple[int, int] | None = None
        at = self._body.find(line, part.content, part.end)
        while at >= 0:
            after = _LINE_END.match(self._body, at + len(line), part.end)
            if after is not None and (at == part.content or self._body[at - 1 : at] == b"\n"):
                if begun is not None:
                    yield self.read_part(*begun, at)
                begun = at, after.end()
                if after.group(1):
                    return
            at = self._body.find(line, at + len(line), part.end)
        if begun is not None:
            yield self.read_part(*begun, part.end)

    def _is_plain_text(self, part: _Part) -> bool:
        return part.kind == _PLAIN and bool(self._body[part.content : part.end].strip())

    def _read_text(self, part: _Part) -> str | None:
        """The text of a part; None for one that the library reads as well."""
        charset = (part.about.get_content_charset() or "").lower()
        is_html = part.kind == _HTML
        written = None if charset not in _NAMELESS and not is_html else self._undo_transfer(part)
        if written is None or (not is_html and written.isascii()):
            return None
        header = f"{part.kind}; charset={charset}" if charset not in _NAMELESS else part.kind
        if is_html:
            return _read_html(written, header, self._default_charset)
        return decode_text(written, content_type=header, default_charset=self._default_charset)[0]

    def _undo_transfer(self, part: _Part) -> bytes | None:
        written, transfer = self._body[part.content : part.end], _transfer_of(part)
        if transfer == "quoted-printable":
            return binascii.a2b_qp(written)
        if transfer != "base64":
            return None if transfer else written
        try:
            # Padding is often left away.
            return binascii.a2b_base64(written + b"===")
        except binascii.Error:
            return None

    def _find_content(self, head: int, end: int) -> int:
        """Where the content of a part begins: after the first empty line."""
        for blank in (b"\n", b"\r\n"):
            if self._body.startswith(blank, head, end):
                return head + len(blank)
        for blank in (b"\n\n", b"\n\r\n"):
            at = self._body.find(blank, head, end)
            end = at + len(blank) if at >= 0 else end
        return end


def _transfer_of(part: _Part) -> str:
    """The coding of a content; empty for none."""
    transfer = str(part.about.get("Content-Transfer-Encoding", "")).partition(";")[0].strip().lower()
    return "" if transfer in {"7bit", "8bit", "binary"} else transfer


def _read_html(body: bytes, content_type: str, default_charset: str) -> str:
    from searchcrawl.html.page import parse_html  # noqa: PLC0415  # most documents do without

    page = parse_html(
        body,
        url="http://mail.invalid/",
        content_type=content_type,
        default_charset=default_charset,
        robots_headers=(),
        user_agent="",
    )
    return page.text
