"""Finds the entries of sitemaps and feeds in text that comes in pieces.

Only the start tags of entries are looked at; all between them is skipped. Each piece is searched once, and at
most _MAX_KEPT characters are kept for the next piece.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_MAX_KEPT: Final = 64 * 1024
#: Between two tags: text, CDATA and comments.
_VALUE: Final = re.compile(r"(?:[^<]+|<!\[CDATA\[.*?\]\]>|<!--.*?-->)*", re.DOTALL)
_MARKED: Final = re.compile(r"<!\[CDATA\[(.*?)\]\]>|<!--.*?-->", re.DOTALL)
_DOCTYPE_END: Final = re.compile(r"[^\[>]*([\[>])")
#: The attributes of a tag, as far as its end: that may be in a quoted value, too. No value has a "<".
_ATTRIBUTES: Final = r"""(?>[^<>=]++|=\s*+(?>"[^"<]*+"|'[^'<]*+')?+)*+"""
_CUT_TAG: Final = re.compile(r"""<(?>[^<>=]++|=\s*+(?>"[^"<]*+(?:"|\Z)|'[^'<]*+(?:'|\Z))?+)*+\Z""")
_ATTRIBUTE: Final = re.compile(r"""([^\s=<>"'/]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'<>]++))""")
#: A longer base is none: it would be resolved for each entry.
_MOST_OF_BASE: Final = 2_000
_IANA: Final = "http://www.iana.org/assignments/relation/"
_NAMESPACE: Final = re.compile(r"\sxmlns(?::([\w.-]+))?\s*=\s*[\"']([^\"']*)", re.IGNORECASE)
#: What is skipped as a whole, with its end.
_ENDS: Final = {
    "!--": re.compile("-->"),
    "![CDATA[": re.compile(r"\]\]>"),
    "?": re.compile(">"),
    "[": re.compile(r"\]\s*>"),
}


class SitemapEntry(NamedTuple):
    """One entry as written, with references and blanks; ``other`` is used if ``url`` is no URL.

    ``bases`` are those that the elements around it give, the outermost first; None where it has to be absolute.
    """

    url: str
    date: str = ""
    other: str = ""
    bases: Sequence[str] | None = None


class LineScanner:
    """Finds one URL a line, as the other scanners find entries; ``ended``: the end of the list was seen."""

    def __init__(self) -> None:
        self._rest = ""
        self.ended = False

    def feed(self, text: str) -> Sequence[SitemapEntry]:
        """The entries that this piece completes."""
        *lines, self._rest = (self._rest + text).splitlines(keepends=True) or [""]
        if self._rest.endswith(("\n", "\r")):
            lines.append(self._rest)
            self._rest = ""
        self._rest = self._rest[:_MAX_KEPT]
        return [SitemapEntry(line) for line in lines if line.strip()]

    def finish(self) -> Sequence[SitemapEntry]:
        """The entries that are left at the end of the text, without one that was cut."""
        self.ended = True
        return [SitemapEntry(self._rest)] if self._rest.strip() else []


class _TagScanner:
    """Finds start tags by name, and the text after them."""

    def __init__(self, names: str, root: str, prefixes: set[str | None], *, closing: str = "") -> None:
        # The lookahead keeps <location> from being <loc>; one expression for names with and without prefix is faster.
        self._token = re.compile(
            rf"<(?:(!--|!\[CDATA\[|\?|!)|({closing})({names})(?=[\s/>])({_ATTRIBUTES})>"
            rf"|({closing})([\w.-]+):({names})(?=[\s/>])({_ATTRIBUTES})>)",
            re.IGNORECASE,
        )
        self._prefixes = prefixes
        self._end = re.compile(rf"</(?:[\w.-]+:)?{root}\s*>", re.IGNORECASE)
        self._kept = ""
        self._until: re.Pattern[str] | None = None
        self._found: list[SitemapEntry] = []
        self.ended = False

    def feed(self, text: str) -> Sequence[SitemapEntry]:
        self._found = []
        self._scan(self._kept + text, final=False)
        return self._found

    def finish(self) -> Sequence[SitemapEntry]:
        self._found = []
        self._scan(self._kept, final=True)
        self._flush()
        return self._found

    def _flush(self) -> None:
        """Adds the current entry to those that were found, and begins the next."""
        raise NotImplementedError

    def _tag(self, name: str, attributes: str, value: str) -> None:
        """Takes a tag and the text after it."""
        raise NotImplementedError

    def _scan(self, text: str, *, final: bool) -> None:
        self._kept = ""
        if not self.ended and self._end.search(text):
            self.ended = True
        position = 0
        search = self._token.search
        while True:
            if self._until is not None:
                position = self._skip(text, position)
                if position < 0:
                    return
            match = search(text, position)
            if match is None:
                break
            special, slash, name, attributes, *prefixed = match.groups()
            position = match.end()
            if special is not None:
                position = self._begin_special(special, text, position)
                continue
            prefix = None
            if name is None:
                slash, prefix, name, attributes = prefixed
            if prefix not in self._prefixes:
                continue
            value = self._value(text, position, final=final)
            if value is None:
                if len(text) - match.start() <= _MAX_KEPT and not final:
                    self._kept = text[match.start() :]
                    return
                value = ""
            self._tag(slash + name.lower(), attributes, value)
        self._kept = _find_incomplete(text, position)

    def _value(self, text: str, position: int, *, final: bool) -> str | None:
        """The text after a tag; None if its end is not there yet."""
        end = _VALUE.match(text, position).end()  # type: ignore[union-attr]  # it matches nothing, too
        if end == len(text) or (not final and text[end : end + 2] in ("<", "<!")) or text[end : end + 2] == "<!":
            return None
        value = text[position:end]
        return _MARKED.sub(lambda match: match[1] or "", value) if "<" in value else value

    def _begin_special(self, special: str, text: str, position: int) -> int:
        """Begins to skip a comment, a CDATA section, an instruction or a DOCTYPE; returns where to go on."""
        if special != "!":
            self._until = _ENDS[special.upper()]
            return position
        match = _DOCTYPE_END.match(text, position)
        if match is None:
            self._until = _ENDS["?"]
            return position
        self._until = _ENDS["["] if match[1] == "[" else None
        return match.end()

    def _skip(self, text: str, position: int) -> int:
        """Where the skipped part ends; -1 if its end is in a later piece."""
        match = self._until.search(text, position) if self._until else None
        if match is None:
            # The end mark may be cut in two by the end of a piece.
            self._kept = text[max(position, len(text) - 2) :]
            return -1
        self._until = None
        return match.end()


class SitemapScanner(_TagScanner):
    """Finds the entries of a urlset or an index, and none of other namespaces (images, alternates).

    An entry ends where the next begins, whether its own element is closed or not.
    """

    def __init__(self, root: str, prefix: str | None, attributes: str) -> None:
        # The prefix of the root is used, even if its namespace is wrong or unknown.
        prefixes = {prefix}
        prefixes.update(p or None for p, uri in _NAMESPACE.findall(f" {attributes}") if "sitemaps.org" in uri)
        super().__init__("url|sitemap|loc|lastmod", root, prefixes)
        self._begin()

    def _begin(self) -> None:
        self._url = self._date = self._stray = ""
        self._has_loc = False

    def _tag(self, name: str, attributes: str, value: str) -> None:
        if name == "loc":
            if self._has_loc:
                self._flush()
            self._url, self._has_loc = value, True
        elif name == "lastmod":
            self._date = value
        elif name in {"url", "sitemap"}:
            if self._has_loc and not self._url.strip():
                # <loc><url>…: what was meant is inside.
                self._url = value
            else:
                self._flush()
                # Some forget the <loc>.
                self._stray = value

    def _flush(self) -> None:
        if self._has_loc or self._stray.strip():
            self._found.append(SitemapEntry(self._url, self._date, self._stray))
        self._begin()


class FeedScanner(_TagScanner):
    """Finds the links of the items of RSS (0.9 to 2.0, with RDF or without) and of the entries of Atom."""

    def __init__(self, root: str, prefix: str | None, attributes: str) -> None:
        self._atom = root == "feed"
        names = "entry|link|updated|published" if self._atom else "item|link|guid|pubDate|date"
        super().__init__(names, root, {prefix} if self._atom else {None, "dc"}, closing="/?")
        self._open = False
        self._root_base = _read_base(_read_attributes(attributes))
        self._begin()

    def _begin(self) -> None:
        self._url = self._date = self._other = self._base = self._link_base = ""

    def _tag(self, name: str, attributes: str, value: str) -> None:
        if name.strip("/") in {"item", "entry"}:
            self._flush()
            self._open = not name.startswith("/")
            self._base = _read_base(_read_attributes(attributes)) if "=" in attributes else ""
        elif not self._open or name.startswith("/"):
            return
        elif name == "link":
            found = _read_attributes(attributes)
            url = _read_alternate(found) if self._atom else value
            if url and not self._url:
                self._url, self._link_base = url, _read_base(found)
        elif name == "guid":
            self._other = value
        elif name == "updated" or not self._date:
            self._date = value

    def _flush(self) -> None:
        if self._open and (self._url or self._other):
            bases = tuple(filter(None, (self._root_base, self._base, self._link_base)))
            self._found.append(SitemapEntry(self._url, self._date, self._other, bases))
        self._begin()


def _read_attributes(attributes: str) -> dict[str, str]:
    """Attributes by their names in lower case."""
    return {name.lower(): double or single or plain for name, double, single, plain in _ATTRIBUTE.findall(attributes)}


def _read_base(attributes: dict[str, str]) -> str:
    base = attributes.get("xml:base", "")
    return base if len(base) <= _MOST_OF_BASE else ""


def _read_alternate(attributes: dict[str, str]) -> str:
    """The target of a link of Atom to the page of the entry, empty for other links."""
    relations = attributes.get("rel", "alternate").lower().replace(_IANA, "").split()
    return attributes.get("href", "") if "alternate" in relations else ""


def _find_incomplete(text: str, position: int) -> str:
    """The tag in which the text ends, empty where it ends in none."""
    start = text.rfind("<", position)
    if start < 0 or len(text) - start > _MAX_KEPT or not _CUT_TAG.match(text, start):
        return ""
    return text[start:]
