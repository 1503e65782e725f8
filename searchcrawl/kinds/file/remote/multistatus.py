"""Reads what a WebDAV server answers to PROPFIND: a ``multistatus`` (RFC 4918 §13), piece by piece, as it comes.

Memory does not grow with it. A document type, and with it each entity, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

#: The properties that are asked for, and read.
PROPERTIES: Final = ("resourcetype", "getcontentlength", "getlastmodified", "getetag")

#: Elements may be so deep in each other. What is asked for is six deep.
_DEEPEST: Final = 100
#: A text that is longer is no href, and no property that is asked for.
_MOST_CHARACTERS: Final = 65_536
#: So many bytes may be read until a resource is at its end: what is said of it is in memory until then.
_MOST_RESOURCE_BYTES: Final = 1 << 20
#: The name of a namespace is part of that of each element in it.
_MOST_OF_NAMESPACE: Final = 1_000
#: The parser keeps each name of an element, an attribute or a prefix until the end: so many characters in all.
_MOST_OF_NAMES: Final = 1 << 20
_DAV: Final = "DAV: "
_STATUS: Final = re.compile(r"(?:HTTP/[0-9.]{1,5} )?([1-5][0-9][0-9])\b")


class BrokenMultistatus(Exception):
    """The answer is no multistatus, or one that cannot be read to its end."""


@dataclass(slots=True)
class Resource:
    """What is said of one resource; ``status``: why nothing else is said of it, or None."""

    href: str
    status: int | None = None
    is_collection: bool = False
    #: texts of properties, by name
    properties: Mapping[str, str] = field(default_factory=dict)
    #: the status of each property that the server has, and does not tell
    withheld: Mapping[str, int] = field(default_factory=dict)


class _PropertyGroup:
    """One ``propstat``: properties that have a status together."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.is_collection = False
        self.texts = dict[str, str]()


class MultistatusReader:
    """Reads one answer.

    ``feed`` returns the resources that were read to their ends, and ``end`` says that there is nothing more. Both raise
    BrokenMultistatus.
    """

    def __init__(self) -> None:
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.StartNamespaceDeclHandler = self._check_namespace
        #: all names that were seen, and how many characters they have
        self._names = set[str]()
        self._name_characters = 0
        #: the names of open elements
        self._path: list[str] = []
        #: what the open element has for a text, where that is wanted
        self._text: list[str] | None = None
        self._text_depth = 0
        self._characters = 0
        self._fed = 0
        #: how much was fed when the last resource ended
        self._read = 0
        self._found: list[Resource] = []
        self._hrefs: list[str] = []
        self._status: int | None = None
        self._groups: list[_PropertyGroup] = []

    def feed(self, piece: bytes) -> Sequence[Resource]:
        """The resources that end in the next piece of the answer."""
        self._fed += len(piece)
        self._parse(piece, is_last=False)
        if self._fed - self._read > _MOST_RESOURCE_BYTES + len(piece):
            raise BrokenMultistatus(f"one resource in it has more than {_MOST_RESOURCE_BYTES} bytes")
        found, self._found = self._found, []
        return found

    def end(self) -> None:
        """Raises BrokenMultistatus where the answer is not at its end."""
        self._parse(b"", is_last=True)

    def _parse(self, piece: bytes, *, is_last: bool) -> None:
        try:
            self._parser.Parse(piece, is_last)
        except expat.ExpatError as error:
            raise BrokenMultistatus(f"is no XML, or ends in its middle: {error}") from error
        except (LookupError, ValueError) as error:
            # An encoding that its first line names.
            raise BrokenMultistatus(f"cannot be decoded: {error}") from error

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        path = self._path
        self._note_name(name)
        for each in attributes:
            self._note_name(each)
        path.append(name.removeprefix(_DAV) if name.startswith(_DAV) else "")
        depth = len(path)
        if depth == 1:
            if path[0] != "multistatus":
                raise BrokenMultistatus(f"begins with {name[:100]!r}, and not with DAV:multistatus")
        elif depth == 2:
            self._hrefs, self._status, self._groups = [], None, []
        elif depth == 3:
            self._start_part(path)
        elif depth == 4:
            if path[1:] == ["response", "propstat", "status"]:
                self._want_text()
        elif depth == 5:
            if path[1:4] == ["response", "propstat", "prop"] and path[4] in PROPERTIES:
                self._want_text()
        elif depth == 6:
            if path[1:] == ["response", "propstat", "prop", "resourcetype", "collection"]:
                self._groups[-1].is_collection = True
        elif depth > _DEEPEST:
            raise BrokenMultistatus(f"its elements are more than {_DEEPEST} deep")

    def _start_part(self, path: Sequence[str]) -> None:
        if path[1] != "response":
            return
        if path[2] == "propstat":
            self._groups.append(_PropertyGroup())
        elif path[2] in {"href", "status"}:
            self._want_text()

    def _end(self, _name: str) -> None:
        path = self._path
        depth, name = len(path), path.pop()
        if self._text is not None and depth == self._text_depth:
            text, self._text = "".join(self._text).strip(), None
            self._take(depth, name, text)
        elif depth == 2:
            self._read = self._fed
            if name == "response":
                self._found.extend(self._build())

    def _take(self, depth: int, name: str, text: str) -> None:
        if depth == 5:
            self._groups[-1].texts[name] = text
        elif depth == 4:
            self._groups[-1].status = _read_status(text)
        elif name == "href":
            self._hrefs.append(text)
        else:
            self._status = _read_status(text)

    def _build(self) -> list[Resource]:
        if self._status is not None and not 200 <= self._status < 300:
            return [Resource(href, status=self._status) for href in self._hrefs]
        is_collection, texts, withheld = False, dict[str, str](), dict[str, int]()
        for group in self._groups:
            status = 200 if group.status is None else group.status
            if 200 <= status < 300:
                is_collection = is_collection or group.is_collection
                texts |= group.texts
            elif status != 404:
                withheld |= dict.fromkeys(group.texts, status)
        return [Resource(href, None, is_collection, texts, withheld) for href in self._hrefs[:1]]

    def _want_text(self) -> None:
        self._text, self._text_depth, self._characters = [], len(self._path), 0

    def _add_text(self, text: str) -> None:
        if self._text is None:
            return
        self._characters += len(text)
        if self._characters > _MOST_CHARACTERS:
            raise BrokenMultistatus(f"a text in it has more than {_MOST_CHARACTERS} characters")
        self._text.append(text)

    def _note_name(self, name: str) -> None:
        if name in self._names:
            return
        self._names.add(name)
        self._name_characters += len(name)
        if self._name_characters > _MOST_OF_NAMES:
            raise BrokenMultistatus(f"the different names in it have more than {_MOST_OF_NAMES} characters")

    def _check_namespace(self, prefix: str | None, name: str | None) -> None:
        self._note_name(prefix or "")
        if len(name or "") > _MOST_OF_NAMESPACE:
            raise BrokenMultistatus(f"the name of a namespace has more than {_MOST_OF_NAMESPACE} characters")

    def _refuse_doctype(self, *_: object) -> None:
        raise BrokenMultistatus("has a document type, which is not read")


def _read_status(text: str) -> int:
    """The number of a status line; 500 for what is none."""
    match = _STATUS.match(text)
    return int(match[1]) if match else 500
