"""Parses a long page in pieces, each with the elements around it: linear time, and no nesting is lost (X-R13).

A piece ends before a tag, and a mark behind it tells whether that is one (in a comment, a script or a value it is not)
and which elements are open there: they are opened again, without their content, in front of the next piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from selectolax.lexbor import LexborCSSSelector, LexborHTMLParser, LexborNode

from searchcrawl.html.page_text import BLOCK_MARK
from searchcrawl.html.regions import ANY, HEADED, MOST_OF_NAME, SEAM, is_headed, list_around

#: So many tags has a piece, if they are spread evenly, and so many at most.
_TAGS: Final = 1_000
_MOST_TAGS: Final = 3_000
#: Parts of it that are tried where a piece has too many, or would end where no tag is.
_PARTS: Final = (1, 0.5, 0.2, 0.05)
#: So many bytes more may a piece have whose end would be in a comment or a script, or which has no place to end.
_MOST_HIDDEN: Final = 500_000
_MAX_DEPTH: Final = 100
#: What the elements around a piece may have in characters.
_MAX_OPENED: Final = 4_000

# Its place is where it is written, in tables and selects, too.
_MARK: Final = b'<script id="searchcrawl-end-of-piece"></script>'
_MARK_ID: Final = "searchcrawl-end-of-piece"
_MARK_SELECTOR: Final = f"#{_MARK_ID}"
#: One for all pieces: to make one takes as long as to use it. Only one thread runs in it at a time.
_SELECTOR: Final = LexborCSSSelector()  # type: ignore[no-untyped-call]
_BLOCK: Final = re.compile(
    rb"<(?:article|blockquote|d[dlt]|div|h[1-6]|li|[ou]l|p|pre|section|table|t[dhr])(?=[\s>])", re.IGNORECASE
)
_DOCTYPE: Final = re.compile(rb"<!doctype[^<>]{0,300}>", re.IGNORECASE)
_MOST_BEFORE: Final = 2_000
_CLOSING: Final = re.compile(rb"(?:-->|</(?:script|style|textarea|svg)\s*>)(?=[\s<])", re.IGNORECASE)
_WORD: Final = re.compile(rb"\s<(?=[a-z])", re.IGNORECASE)
#: What of an element around a piece is not opened again, for it would be a link once more.
_LEADING: Final = frozenset({"href", "src", "xlink:href", "action", "data"})
#: What decides which region it is: so much of it is looked at.
_DECIDING: Final = frozenset({"class", "id", "role", "style"})
_UNSAFE: Final = str.maketrans({"&": "&amp;", '"': "&quot;"})


def parse_pieces(raw: bytes, *, tags: int, is_harmless: Callable[[bytes, int], bool]) -> list[LexborHTMLParser] | None:
    """The trees of the pieces of a page (in UTF-8, with ``tags`` tags); None where it cannot be parsed in this way.

    ``is_harmless`` tells of a piece, with the number of its tags, whether it is parsed quickly.
    """
    if _MARK_ID.encode() in raw:
        return None
    found: list[LexborHTMLParser] = []
    # Without it a table would be in the paragraph before it.
    doctype = _DOCTYPE.search(raw, 0, _MOST_BEFORE)
    position, opened, around = 0, b"", b"" if doctype is None else doctype[0]
    while position < len(raw):
        piece = _parse_piece(raw, position, len(raw) * _TAGS // max(tags, 1), opened, is_harmless)
        if piece is None:
            return None
        tree, position, opened = piece
        opened = around + opened
        found.append(tree)
    return found


def _parse_piece(
    raw: bytes, start: int, size: int, opened: bytes, is_harmless: Callable[[bytes, int], bool]
) -> tuple[LexborHTMLParser, int, bytes] | None:
    """The piece that begins at ``start``: its tree, its end, and the elements open there; None if there is none."""
    for end in _list_ends(raw, start, size):
        tags = raw.count(b"<", start, end)
        if tags > _MOST_TAGS or not is_harmless(raw[start:end], tags):
            continue
        is_last = end == len(raw)
        tree = LexborHTMLParser(opened + raw[start:end] + (b"" if is_last else _MARK), scripting=True)
        mark = None if is_last else _find_mark(tree)
        if mark is None and not is_last:
            continue
        opened_there = b"" if mark is None else _open_again(mark)
        root = tree.root
        for seam in (mark, _find_first(root) if opened and root is not None else None):
            if seam is not None:
                seam.insert_before(SEAM)
                seam.decompose()
        return None if opened_there is None else (tree, end, opened_there)
    return None


def _list_ends(raw: bytes, start: int, size: int) -> Iterator[int]:
    """Where a piece may end, the best first: before a block, or between words where no block begins soon.

    One that would end in a comment or a script may end behind it, and one with too many tags earlier.
    """
    for part in _PARTS:
        near = start + max(int(size * part), 1)
        far = near + size + _MOST_HIDDEN
        if near >= len(raw):
            yield len(raw)
            continue
        found = _BLOCK.search(raw, near, near + size) or _WORD.search(raw, near, far) or _BLOCK.search(raw, near, far)
        if found is not None:
            yield found.end() - len(found[0].lstrip())
        elif far >= len(raw):
            yield len(raw)
        closing = _CLOSING.search(raw, near, far)
        if closing is not None:
            yield closing.end()


def _find_mark(tree: LexborHTMLParser) -> LexborNode | None:
    """The mark at the end of a piece; None where it is no element, or not the last one."""
    node = tree.root
    while node is not None and (child := node.last_child) is not None:
        node = child
    return node if node is not None and node.tag == "script" and node.id == _MARK_ID else None


def _find_first(root: LexborNode) -> LexborNode | None:
    """The mark at the beginning of a piece."""
    found: list[LexborNode] = _SELECTOR.find_first(_MARK_SELECTOR, root)  # type: ignore[attr-defined]  # not in its stub
    return found[0] if found else None


def _open_again(mark: LexborNode) -> bytes | None:
    """The start tags of the elements around the mark, the outermost first; None where there are too many."""
    tags: list[tuple[str, str]] = []
    for parent in list_around(mark):
        if len(tags) >= _MAX_DEPTH:
            return None
        name = parent.tag
        if name and name[0] not in "-!#":
            tags.append((name, _write_context(parent)))
    tags.reverse()
    written = "".join(f"<{name}{attributes}>" for name, attributes in tags)
    if len(written) > _MAX_OPENED:
        written = "".join(f"<{name}>" for name, _ in tags)
    return written.encode("utf-8", "ignore") + _MARK if len(written) <= _MAX_OPENED else None


def _write_context(node: LexborNode) -> str:
    """The attributes with which an element is opened again: what decides about it is decided as it was."""
    written = {
        name: (value or "")[:MOST_OF_NAME]
        for name, value in node.attributes.items()
        if name not in _LEADING and (name in _DECIDING or len(value or "") <= MOST_OF_NAME)
    }
    if is_headed(node):
        written[HEADED] = ""
    return "".join([f' {name}="{value.translate(_UNSAFE)}"' for name, value in written.items()])


def join_pieces(texts: Sequence[str]) -> str:
    """The text of a page from the texts of its pieces, with marks: those of what is around a piece stay in the first.

    In the others stays what a parser moves before a seam or behind it: text without marks.
    """
    if len(texts) == 1:
        return texts[0]
    parts: list[str] = []
    for number, text in enumerate(texts):
        before, rest = _split(text, text.find(SEAM) if number else -1)
        piece, behind = _split(rest, rest.rfind(SEAM) if number < len(texts) - 1 else -1, is_end=True)
        parts += (ANY.sub(" ", before), piece, ANY.sub(" ", behind))
    return BLOCK_MARK.join(parts)


def _split(text: str, seam: int, *, is_end: bool = False) -> tuple[str, str]:
    """What is before a seam, and behind it; all is on one side where there is none."""
    if seam < 0:
        return (text, "") if is_end else ("", text)
    return text[:seam], text[seam + len(SEAM) :]
