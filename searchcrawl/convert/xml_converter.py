"""XML: its texts, a line for each piece; of a feed (RSS, Atom) its entries, whose links are followed (X-R14)."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final
from xml.parsers import expat  # entities are not expanded, and nothing else is loaded

from searchcrawl.bodies import Body, LargeBody, read_whole
from searchcrawl.codes import Code
from searchcrawl.convert.converter import MAX_FILE_MEMORY_BYTES, Converter, build_page, run_in_process
from searchcrawl.convert.html_converter import read_html_text
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.context import ConversionContext
from searchcrawl.html.encoding import decode, open_text
from searchcrawl.html.links import Resolver, extract_links
from searchcrawl.html.page_text import remove_illegal
from searchcrawl.items import Page

_FEEDS: Final = frozenset({"rss", "feed", "rdf"})
_ENTRIES: Final = frozenset({"item", "entry"})
#: Lists of URLs, which are no text.
_LISTS: Final = frozenset({"urlset", "sitemapindex"})
_MARKUP: Final = frozenset({"description", "content", "encoded", "summary", "subtitle"})
_TITLES: Final = frozenset({"title"})
_AUTHORS: Final = frozenset({"name", "creator", "managingeditor"})
_DATES: Final = frozenset({"updated", "pubdate", "published", "lastbuilddate", "date"})
#: What the text of a title element of any document is.
_MAX_TITLE_CHARS: Final = 1_000
_RECOGNISED_BYTES: Final = 256
#: Where nothing names another one.
_CHARSET: Final = "utf-8"
#: So much is given to the parser at once, and the longest tag or comment.
_PIECE_CHARS: Final = 1 << 20
_MOST_TOKEN_BYTES: Final = 4 << 20


def convert_xml(body: bytes, context: ConversionContext) -> Page:
    """The page of an XML document; raises ConversionFailed (903) where it is not well-formed.

    No entity is expanded or loaded, but for those of HTML, which feeds use without declaring them.
    """
    text, charset = decode(body, content_type=context.content_type, default_charset=_CHARSET)
    pieces = (text[at : at + _PIECE_CHARS] for at in range(0, len(text), _PIECE_CHARS))
    return _convert(pieces, charset, context)


def convert_large_xml(body: LargeBody, context: ConversionContext) -> Page:
    """As ``convert_xml``, with one piece after the other in memory, and the texts."""
    found = open_text(body, content_type=context.content_type, default_charset=_CHARSET)
    if found is None:
        return convert_xml(read_whole(body), context)
    file, charset = found
    return _convert(iter(partial(file.read, _PIECE_CHARS), ""), charset, context)


def _convert(pieces: Iterable[str], charset: str, context: ConversionContext) -> Page:
    reader = _Reader()
    _parse(pieces, reader)
    if reader.root in _LISTS:
        return build_page(context, text="", charset=charset)
    links = extract_links(((link, None) for link in reader.links), Resolver(context.url))
    return build_page(
        context,
        text="\n".join(reader.texts),
        title=reader.title,
        author=reader.author,
        description=reader.description,
        language=reader.language,
        charset=charset,
        links=links.links,
        malformed=links.malformed,
        values={"modified": reader.modified},
    )


class _Reader:
    """Takes the events of a parser."""

    def __init__(self) -> None:
        self.root = ""
        self.title = self.author = self.description = self.language = self.modified = ""
        self.texts: list[str] = []
        self.links: list[str] = []
        self._names: list[str] = []
        self._entries = 0
        #: the text since the last tag
        self._pieces: list[str] = []

    @property
    def _is_feed(self) -> bool:
        return self.root in _FEEDS

    def start(self, qualified: str, attributes: Mapping[str, str]) -> None:
        name = qualified.rpartition(":")[2].lower()
        self._end_piece(self._names[-1] if self._names else "")
        if not self._names:
            self.root = name
            self.language = attributes.get("xml:lang", "")
        self._names.append(name)
        if name in _ENTRIES:
            self._entries += 1
        if name == "outline":
            self.texts += filter(None, [attributes.get("text", "").strip()])
        if self._is_feed and name == "link" and attributes.get("rel", "alternate") == "alternate":
            self.links += filter(None, [attributes.get("href", "").strip()])

    def end(self, qualified: str) -> None:
        name = self._names[-1]
        self._end_piece(name)
        self._names.pop()
        if name in _ENTRIES:
            self._entries -= 1

    def take(self, text: str) -> None:
        self._pieces.append(text)

    def take_other(self, text: str) -> None:
        """Comments and declarations, which are no text, and entities, which are if HTML has them."""
        if text.startswith("&") and text.endswith(";"):
            found = html.unescape(text)
            self._pieces += [found] if found != text else []

    def _end_piece(self, name: str) -> None:
        text = "".join(self._pieces).strip()
        self._pieces.clear()
        if not text:
            return
        if not self._is_feed:
            if name in _TITLES and not self.title:
                self.title = text[:_MAX_TITLE_CHARS]
            self.texts.append(text)
        else:
            self._take_of_feed(name, text)

    def _take_of_feed(self, name: str, text: str) -> None:
        if "image" in self._names:
            return
        if name == "link":
            self.links.append(text)
        elif name in _TITLES and not self._entries and not self.title:
            self.title = _strip_markup(text)
        elif name in _TITLES or name in _MARKUP:
            plain = _strip_markup(text)
            self.texts.append(plain)
            if name in _MARKUP and not self._entries and not self.description:
                self.description = plain
        elif name in _AUTHORS:
            self.author = self.author or text
        elif name == "language":
            self.language = self.language or text
        elif name in _DATES:
            self.modified = self.modified or text
        elif name == "category" or any(each in _MARKUP for each in self._names[-3:]):
            self.texts.append(text)


def _parse(pieces: Iterable[str], reader: _Reader) -> None:
    # Names keep their prefixes: with those of namespaces a short document can have names of any length.
    parser: Any = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    # With it an entity that nobody declares is no error.
    parser.UseForeignDTD(True)
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.CharacterDataHandler = reader.take
    # With a handler for all else no entity of a document is expanded in its text.
    parser.DefaultHandler = reader.take_other
    try:
        _feed(parser, pieces)
    except expat.ExpatError as error:
        over = error.code == expat.errors.codes[expat.errors.XML_ERROR_AMPLIFICATION_LIMIT_BREACH]
        code = Code.CONVERSION_LIMIT if over else Code.CONVERSION_FAILED
        raise ConversionFailed(f"XML: {error}", code=code) from error


def _feed(parser: Any, pieces: Iterable[str]) -> None:
    """Has the parser read a document piece by piece; raises ConversionFailed where one tag or comment is too long.

    Before release 2.6 expat reads a tag or comment that is not complete from its beginning again with each piece.
    """
    given = 0
    for text in pieces:
        # A declaration is to be at the very beginning.
        piece = remove_illegal(text if given else text.lstrip()).encode()
        parser.Parse(piece, False)
        given += len(piece)
        if 0 <= parser.CurrentByteIndex < given - _MOST_TOKEN_BYTES:
            raise ConversionFailed("XML: a tag or comment is too long", code=Code.CONVERSION_LIMIT)
    parser.Parse(b"", True)


def _strip_markup(text: str) -> str:
    if "<" not in text:
        return html.unescape(text)
    return read_html_text(text.encode("utf-8", "replace"), "text/html; charset=utf-8")


def _recognise(body: Body) -> bool:
    head = body[:_RECOGNISED_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return head.startswith((b"<?xml", b"<rss", b"<feed", b"<rdf:rdf"))


XML: Final = Converter(
    name="xml",
    is_kept=True,
    mime_types=(
        *("application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "text/x-opml"),
        *(f"application/vnd.oasis.opendocument.{kind}-flat-xml" for kind in ("text", "spreadsheet", "presentation")),
    ),
    convert=convert_xml,
    convert_large=convert_large_xml,
    choose_place=run_in_process,
    recognise=_recognise,
    is_text=True,
    has_links=True,
    max_memory_bytes=MAX_FILE_MEMORY_BYTES,
)
