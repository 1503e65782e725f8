"""The tags that matter to what is read from a page, by Lexbor's numbers: these are cheaper to read from a node than names."""

from __future__ import annotations

from enum import Enum, auto
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchcrawl.html import regions
from searchcrawl.html.flat_markup import BLOCKS, ITEMS

_LINKS: Final = "a area frame"
_FIELDS: Final = "meta link base title"
_SILENT: Final = "iframe noembed noframes noscript script style template"
#: What is in them is for browsers that don't know them, or are suggestions.
_UNSHOWN: Final = "audio canvas datalist meter progress video"
_EMBEDDING: Final = "embed object"
_HEADINGS: Final = " ".join(regions.KIND_OF_HEADING)
#: The nearest of these around an element says whether it is one of a drawing (or a formula), or one of HTML.
_OF_DRAWINGS: Final = "math svg"
_OF_HTML: Final = "annotation-xml body desc foreignobject head html mi mn mo ms mtext"
#: So far it is looked for.
_MOST_AROUND: Final = 200


class TagKind(Enum):
    """What an element means to the text of a page."""

    BLOCK = auto()
    ITEM = auto()
    #: a block or an item that says what the text after it is about
    HEADING = auto()
    LINK = auto()
    OTHER = auto()
    #: a block or an item that may be a region of the page
    REGION = auto()


_ALL: Final = (_LINKS, _FIELDS, BLOCKS, ITEMS, _SILENT, _UNSHOWN, _EMBEDDING, _OF_DRAWINGS, _OF_HTML, regions.ELEMENTS)


def _tag_ids() -> dict[str, int]:
    create = LexborHTMLParser("").create_node
    return {tag: create(tag).tag_id for tags in _ALL for tag in tags.split()}


TAG_ID: Final = _tag_ids()
KIND_OF_TAG: Final = {
    TAG_ID[tag]: kind
    for kind, tags in (
        (TagKind.LINK, _LINKS),
        (TagKind.BLOCK, BLOCKS),
        (TagKind.ITEM, ITEMS),
        (TagKind.HEADING, _HEADINGS),
        (TagKind.OTHER, f"{_FIELDS} {_SILENT} {_UNSHOWN} {_EMBEDDING}"),
    )
    for tag in tags.split()
}
KIND_WITH_REGIONS: Final = {
    **KIND_OF_TAG,
    **{TAG_ID[tag]: TagKind.REGION for tag in regions.ELEMENTS.split()},
}
REGION_OF_TAG: Final = {TAG_ID[tag]: tag for tag in regions.ELEMENTS.split()}
UNSHOWN: Final = frozenset(TAG_ID[tag] for tag in _UNSHOWN.split())
EMBEDDING: Final = frozenset(TAG_ID[tag] for tag in _EMBEDDING.split())
META, LINK, BASE, TITLE, IFRAME, NOSCRIPT, HEAD = (
    TAG_ID[tag] for tag in ("meta", "link", "base", "title", "iframe", "noscript", "head")
)
HEADINGS: Final = {TAG_ID[tag]: tag for tag in regions.KIND_OF_HEADING}
H2, DT = TAG_ID["h2"], TAG_ID["dt"]
_DRAWINGS: Final = frozenset(TAG_ID[tag] for tag in _OF_DRAWINGS.split())
_DECIDING: Final = _DRAWINGS | {TAG_ID[tag] for tag in _OF_HTML.split()}


def is_of_drawing(node: LexborNode) -> bool:
    """Whether an element is one of a drawing or a formula, and not one of HTML with the same name."""
    around = (parent.tag_id for parent in islice(regions.list_around(node), _MOST_AROUND))
    return next((tag for tag in around if tag in _DECIDING), None) in _DRAWINGS
