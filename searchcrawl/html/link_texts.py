"""The texts of links in the main text of a page, for the pages that they lead to (C8, G2).

While the tree is walked, each link gets a mark before it and another one after it; in the text of the page the number of
those before says which link it is. A page that writes such marks itself has no texts of links, or wrong ones of its own links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from searchcrawl.html.headings import remove_marks
from searchcrawl.html.page_text import BLOCK_MARK, collapse
from searchcrawl.html.regions import LINK_BEGIN, LINK_END, MARK, PRINTABLE_KINDS

#: So many texts of a page are read, and so many characters of each.
_MOST_TEXTS: Final = 1_000
_MOST_CHARACTERS: Final = 120
#: In so many characters as they are written, blanks among them, these have to be.
_MOST_WRITTEN: Final = 500
_LETTER: Final = re.compile(r"[^\W\d_]")
#: A text that is an address says nothing that the link doesn't.
_ADDRESS: Final = re.compile(r"[a-z][a-z+.-]*://|www\.|mailto:", re.IGNORECASE)


def read_link_texts(marked: str, lengths: Sequence[int], links: int) -> list[tuple[int, str]]:
    """Numbers and texts of the links in what is indexed of a page, in document order.

    ``marked`` is its text with all marks, ``lengths`` are above 0 for those of its segments that are indexed, ``links`` is
    how many links were marked.
    """
    if not links or not marked.count(LINK_BEGIN) == marked.count(LINK_END) == links:
        return []
    first, *parts = marked.split(MARK)
    segments = [first, *(part[1:] if part[:1] in PRINTABLE_KINDS else part for part in parts)]
    return list(islice(_read_segments(segments, lengths), _MOST_TEXTS))


def _read_segments(segments: Sequence[str], lengths: Sequence[int]) -> Iterator[tuple[int, str]]:
    number, is_open = -1, False
    # Many links of a page have the same text.
    cleaned: dict[str, str] = {}
    for segment, length in zip(segments, lengths, strict=False):
        for place, part in enumerate(segment.split(LINK_BEGIN)):
            if place:
                number, is_open = number + 1, True
            elif not is_open:
                continue
            # Without a mark of its own a segment may still be in a link as a whole.
            end = part.find(LINK_END)
            if length and end:
                written = part if end < 0 else part[:end]
                text = cleaned.get(written)
                if text is None:
                    text = cleaned[written] = _clean(written)
                if text:
                    yield number, text
            # What is behind a link in a link is left out.
            is_open = end < 0


def _clean(written: str) -> str:
    """The text of a link in one line; empty where it says nothing."""
    text = " ".join(written[:_MOST_WRITTEN].replace(BLOCK_MARK, " ").split())
    if not text.isprintable():
        text = collapse(remove_marks(text))
    if len(text) > _MOST_CHARACTERS:
        # Not a part of a word, if there is more than one.
        text = text[: _MOST_CHARACTERS + 1].rpartition(" ")[0] or text[:_MOST_CHARACTERS]
    # Most begin with a letter, and have no sign of an address.
    if not text[:1].isalpha() and _LETTER.search(text) is None:
        return ""
    return "" if (":" in text or "." in text) and _ADDRESS.match(text) else text
