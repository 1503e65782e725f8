"""What of a text tells its language: prose from its beginning, its middle and its end (C9)."""

from __future__ import annotations

from typing import Final

#: A line of prose has so many bytes of UTF-8, and at most so many of a hundred are symbols and digits, as code has them.
_LEAST_BYTES: Final = 40
_MOST_SYMBOLS: Final = 4
_SYMBOLS: Final = b"{}[]<>=;_#$|\\/*&^%@+~`0123456789"
#: With less prose than this, in bytes, all lines of a part count.
_LEAST_PROSE: Final = 100


def cut_prose(text: str, *, part: int, taken: int) -> list[bytes]:
    """Prose in UTF-8 from three parts of a text, each of ``part`` characters; up to ``taken`` of each.

    A text that is no longer than the three is looked at as a whole.
    """
    if len(text) <= 3 * part:
        return [_cut(text, 3 * taken)]
    middle = (len(text) - part) // 2
    return [_cut(text[begin : begin + part], taken) for begin in (0, middle, len(text) - part)]


def _cut(text: str, taken: int) -> bytes:
    lines = text.encode("utf-8", "replace").split(b"\n")
    prose: list[bytes] = []
    size = 0
    for line in lines:
        if len(line) >= _LEAST_BYTES and _is_prose(line):
            prose.append(line)
            size += len(line)
            if size >= taken:
                break
    if size < _LEAST_PROSE:
        prose = lines
    found = b"\n".join(prose)
    return found[:taken] if found.isascii() else found.decode("utf-8", "replace")[:taken].encode()


def _is_prose(line: bytes) -> bool:
    return (len(line) - len(line.translate(None, _SYMBOLS))) * 100 <= len(line) * _MOST_SYMBOLS
