"""Heads of answers that only a strict parser refuses, written as it takes them (RFC 9112, X-R7). Pure.

Followed is what Chromium does, where the end of the body cannot be in doubt. The connection must not be used again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

#: The version and the status of an answer, behind a byte order mark or other bytes that a browser skips.
_STATUS_LINE: Final = re.compile(
    rb".{0,4}?http/([0-9])(?:\.([0-9]))?[ \t]{1,20}([0-9]{3})(?![0-9])", re.IGNORECASE | re.DOTALL
)
#: An answer that has no such line by here has none.
_STATUS_LINE_BYTES: Final = 40
_END: Final = re.compile(rb"\n\r?\n")
_BLANKS: Final = frozenset({b" ", b"\t"})
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++")
_LENGTH: Final = b"content-length"
_TRANSFER: Final = b"transfer-encoding"
#: Says nothing, also beside a length (RFC 7230 did away with it).
_NO_CODING: Final = frozenset({b"", b"identity"})
_CHUNKED: Final = b"chunked"
#: A line that is no header and has one of these puts the end of the body in doubt; with a zero byte Chromium reads none.
_DOUBTFUL: Final = re.compile(rb"content-length|transfer-encoding|\0", re.IGNORECASE)
_SWITCHING: Final = b"101"


class MendedHead(NamedTuple):
    """The head of an answer as a strict parser takes it, and what was received behind it."""

    head: bytes
    rest: bytes


class Unmendable(Exception):
    """What was received is no HTTP, or it is in doubt where the body ends."""


def mend_head(received: bytes) -> MendedHead | None:
    """The head of the final answer in ``received``; None while its end has not come.

    The version may be in any case or none of HTTP/1, blanks around names are left out, equal lengths count once,
    ``Transfer-Encoding: identity`` is dropped, and so are lines that are no headers, a length beside chunks, which outweigh
    it, and answers before the final one (1xx). Raises Unmendable.
    """
    position = 0
    while True:
        found = _STATUS_LINE.match(received, position)
        if found is None:
            if len(received) - position < _STATUS_LINE_BYTES:
                return None
            raise Unmendable
        end = _END.search(received, found.end())
        if end is None:
            return None
        position = end.end()
        if found[3].startswith(b"1") and found[3] != _SWITCHING:
            continue
        reason, *others = _split(received[found.end() : end.start()])
        version = b"1.0" if (found[1], found[2]) in {(b"0", b"9"), (b"1", b"0")} else b"1.1"
        lines = [b"HTTP/%s %s %s" % (version, found[3], reason.strip()), *_mend_lines(others)]
        return MendedHead(b"\r\n".join([*lines, b"", b""]), received[position:])


def _split(head: bytes) -> list[bytes]:
    """The lines of a head; raises Unmendable for a carriage return within one, which others take for its end."""
    lines = [line.removesuffix(b"\r") for line in head.split(b"\n")]
    if any(b"\r" in line for line in lines):
        raise Unmendable
    return lines


def _mend_lines(lines: list[bytes]) -> list[bytes]:
    kept: list[bytes] = []
    lengths: list[bytes] = []
    codings: list[bytes] = []
    for line in _list_headers(lines):
        name, _, value = line.partition(b":")
        name = name.rstrip(b" \t")
        if name.lower() == _LENGTH:
            lengths += value.split(b",")
            continue
        if name.lower() == _TRANSFER:
            if all(coding.strip(b" \t").lower() in _NO_CODING for coding in value.split(b",")):
                continue
            codings.append(value.strip(b" \t").lower())
        # A line that goes on with the one before has no name.
        kept.append(line if line[:1] in _BLANKS else name + b":" + value)
    return kept if codings == [_CHUNKED] else kept + _join_lengths(lengths)


def _list_headers(lines: list[bytes]) -> Iterator[bytes]:
    """The lines that are headers, and those that go on with one; raises Unmendable for others that say how long the body is."""
    is_header = True
    for line in lines:
        if line[:1] not in _BLANKS:
            name, colon, _ = line.partition(b":")
            is_header = bool(colon) and _NAME.fullmatch(name.rstrip(b" \t")) is not None
        if is_header:
            yield line
        elif _DOUBTFUL.search(line):
            raise Unmendable


def _join_lengths(lengths: list[bytes]) -> list[bytes]:
    """One line for lengths that are all the same (RFC 9110 §8.6); raises Unmendable for different ones."""
    stripped = [length.strip(b" \t") for length in lengths]
    values = {length.lstrip(b"0") or length[:1] for length in stripped}
    if len(values) > 1:
        raise Unmendable
    return [b"Content-Length: " + value for value in values]
