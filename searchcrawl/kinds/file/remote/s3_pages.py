"""Reads pages of the listing of a bucket (ListObjectsV2), and makes folders of keys. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes
from xml.parsers import expat  # entities are refused, and nothing else is loaded

from searchcrawl.kinds.file.remote.model import Thing


class BrokenPage(Exception):
    """An answer is no page of the listing that was asked for."""


class Object(NamedTuple):
    """An object of a bucket: its size in bytes, the milliseconds since 1970 when it was written, and its token."""

    key: bytes
    size: int
    modified_ms: int | None
    token: bytes


class Page(NamedTuple):
    """Objects, and beginnings of keys up to a slash that stand for all below; ``next`` asks for the page after it, if there is one."""

    objects: list[Object]
    folders: list[bytes]
    next: str


def read_page(body: bytes) -> Page:
    """A page of a listing; raises BrokenPage."""
    reader = _Reader()
    reader.read(body)
    if reader.name != "ListBucketResult":
        raise BrokenPage(f"it is a {reader.name[:80]!r}")
    said = reader.said
    is_encoded = said.get("EncodingType", "").strip() == "url"
    following, is_truncated = said.get("NextContinuationToken", ""), said.get("IsTruncated", "").strip()
    if is_truncated not in {"true", "false"} or (is_truncated == "true" and not following):
        # A server that knows the first version of listings alone says how far it came in another way.
        raise BrokenPage("it does not say whether more follows, or how to ask for that")
    objects = [_read_object(facts, is_encoded) for facts in reader.objects]
    folders = [_decode(prefix, is_encoded) for prefix in reader.folders]
    return Page(objects, folders, following if is_truncated == "true" else "")


class _Reader:
    """Reads the elements of a page, whatever their prefixes: the texts of those at the top, and of those in objects and folders."""

    def __init__(self) -> None:
        self.name = ""
        self.said = dict[str, str]()
        self.objects = list[dict[str, str]]()
        self.folders = list[str]()
        self._facts = dict[str, str]()
        self._texts = list[str]()
        self._depth = 0

    def read(self, body: bytes) -> None:
        """Reads all of a page; raises BrokenPage for what is no XML, or has entities of its own."""
        # Without namespaces: their names are as long as somebody wants, and would be built for each element.
        parser: Any = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._texts.append
        parser.StartDoctypeDeclHandler = _refuse_entities
        try:
            parser.Parse(body, True)
        except (expat.ExpatError, UnicodeError, LookupError) as error:
            raise BrokenPage(f"it is no XML: {error}") from error

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._depth += 1
        self._texts.clear()
        if self._depth == 1:
            self.name = _cut_prefix(name)
        elif self._depth == 2:
            self._facts = {}

    def _end(self, name: str) -> None:
        text, name = "".join(self._texts), _cut_prefix(name)
        self._texts.clear()
        self._depth -= 1
        if self._depth == 2:
            self._facts[name] = text
        elif self._depth == 1 and name == "Contents":
            self.objects.append(self._facts)
        elif self._depth == 1 and name == "CommonPrefixes":
            self.folders.append(self._facts.get("Prefix", ""))
        elif self._depth == 1:
            self.said[name] = text


def _refuse_entities(*_: Any) -> None:
    raise BrokenPage("it has a document type")


def group(objects: Iterable[Object], folders: Iterable[bytes], folder: bytes) -> list[Thing]:
    """What is in a folder, by the beginning of its keys: objects, and once each folder in it, also of what is deeper.

    An empty object that has the name of the folder itself, with its slash, is no thing in it: it says that there is the folder.
    Raises BrokenPage for what is not in the folder.
    """
    things, names = list[Thing](), dict.fromkeys(_cut(key, folder).partition(b"/")[0] for key in folders)
    for each in objects:
        name, slash, _ = _cut(each.key, folder).partition(b"/")
        if slash:
            names[name] = None
        elif name or each.size:
            things.append(Thing(name, False, each.size, each.modified_ms, each.token, find_barrier(name)))
    things += (Thing(name, True, barred=find_barrier(name), node=folder + name + b"/") for name in names)
    return things


class Ahead:
    """Objects of a bucket that one page named, from a key on and in the order of their keys: all that is in folders among them.

    Each folder is told once, one after the other: who asks again wants to know what there is now.
    """

    def __init__(self, objects: Sequence[Object], after: bytes, *, is_last: bool) -> None:
        self._objects = objects
        self._after = after
        self._is_last = is_last
        self._is_ordered = all(one.key < other.key for one, other in pairwise(objects))

    def take(self, folder: bytes) -> list[Thing] | None:
        """What is in a folder, by the beginning of its keys; None where that is not known. Raises BrokenPage."""
        if not self._is_ordered or folder <= self._after:
            return None
        last = self._objects[-1].key if self._objects else b""
        if not self._is_last and (last < folder or last.startswith(folder)):
            return None
        self._after = folder
        begin = bisect_left(self._objects, folder, key=attrgetter("key"))
        # No key has this byte: they are UTF-8.
        end = bisect_left(self._objects, folder + b"\xff", key=attrgetter("key"))
        return group(self._objects[begin:end], (), folder)


def build_token(etag: str, size: int, modified_ms: int | None) -> bytes:
    """What tells one version of an object from another; empty where the server says nothing but a size.

    The ETag alone may be that of a version of equal content, which has another type.
    """
    return f"{etag} {size} {modified_ms}".encode("utf-8", "replace") if etag or modified_ms is not None else b""


def find_barrier(name: bytes) -> str:
    """Why something of this name cannot be read: what SDKs cannot ask for, and no identity can name."""
    if b"\0" in name:
        return "its name has a NUL"
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return "its name is not UTF-8"
    return ""


def _read_object(facts: dict[str, str], is_encoded: bool) -> Object:
    try:
        size = int(facts.get("Size", ""))
    except ValueError as error:
        raise BrokenPage(f"the size of an object is {facts.get('Size', '')[:40]!r}") from error
    modified_ms = _read_time(facts.get("LastModified", ""))
    token = build_token(facts.get("ETag", ""), size, modified_ms)
    return Object(_decode(facts.get("Key", ""), is_encoded), size, modified_ms, token)


def _cut(key: bytes, folder: bytes) -> bytes:
    if not key.startswith(folder):
        raise BrokenPage("it names what is not in the folder asked for")
    return key[len(folder) :]


def _decode(text: str, is_encoded: bool) -> bytes:
    return unquote_to_bytes(text.replace("+", "%20")) if is_encoded else text.encode("utf-8")


def _read_time(text: str) -> int | None:
    try:
        found = datetime.fromisoformat(text.strip())
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _cut_prefix(name: str) -> str:
    return name.rpartition(":")[2]
