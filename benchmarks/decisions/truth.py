"""What a page holds in truth: the text of the container in which its generator puts its content."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.decisions.sites import Manual
from searchcrawl.html.encoding import decode

_SILENT: Final = "script, style, template, noscript, head"
#: What is of no language.
_CODE: Final = "pre, code, tt, kbd, samp, var"


#: What is written without spaces counts by the character.
_UNSPACED: Final = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
#: A word begins with a letter or figure: lines of underscores are drawings.
_WORD: Final = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}][^\W{_UNSPACED}]*")
#: The elements that begin and end a line, or a cell; a word may go on through all others.
_BLOCKS: Final = (
    "address, article, aside, blockquote, body, br, button, caption, dd, details, div, dl, dt, fieldset, figcaption, figure,"
    " footer, form, h1, h2, h3, h4, h5, h6, header, hr, li, main, nav, ol, option, p, pre, section, select, summary, table,"
    " tbody, td, tfoot, th, thead, tr, ul, img"
)


@dataclass(frozen=True, slots=True)
class Truth:
    """The words of a page's content, how often each; ``prose`` is its text without code, for telling its language."""

    words: Counter[str]
    prose: str


def read_truth(body: bytes, manual: Manual, *, content_type: str = "text/html") -> Truth:
    """The truth of a page; an empty one where it has no container of content."""
    text, _ = decode(body, content_type=content_type, default_charset="utf-8")
    parser = LexborHTMLParser(text, scripting=True)
    for selector in filter(None, (_SILENT, manual.without)):
        for node in parser.css(selector):
            node.decompose()
    for node in parser.css(_BLOCKS):
        node.insert_before(" ")
        node.insert_after(" ")
    containers = _find_containers(parser, manual)
    words = count_words(_read(containers))
    for container in containers:
        for node in container.css(_CODE):
            node.decompose()
    return Truth(words, _read(containers))


def count_words(text: str) -> Counter[str]:
    """The words of a text, without regard to case, how often each."""
    return Counter(word.lower() for word in _WORD.findall(text))


def _find_containers(parser: LexborHTMLParser, manual: Manual) -> list[LexborNode]:
    found = next((nodes for selector in manual.content if (nodes := parser.css(selector))), [])
    ids = {node.mem_id for node in found}
    return [node for node in found if not _is_within(node, ids)]


def _is_within(node: LexborNode, ids: set[int]) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.mem_id in ids:
            return True
        parent = parent.parent
    return False


def _read(nodes: list[LexborNode]) -> str:
    return " ".join(node.text() for node in nodes)
