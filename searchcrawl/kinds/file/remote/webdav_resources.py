"""What is said of one thing on a WebDAV server: where it is, its version and its dates. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple, Protocol
from urllib.parse import unquote_to_bytes

from searchcrawl.bodies import Body
from searchcrawl.codes import Code
from searchcrawl.kinds.file.dates import list_dates
from searchcrawl.kinds.file.remote.model import RemoteFailure, Thing
from searchcrawl.kinds.file.remote.multistatus import Resource
from searchcrawl.kinds.file.remote.tokens import is_young

_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://[^/]*+")
_MOST_DATE_CHARACTERS: Final = 64
_MOST_DIGITS: Final = 18
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: What no name may have, as it stands in a name that is shown.
_BARRED: Final = {b"/": "a slash", b"\0": "a NUL"}


class _Answer(Protocol):
    def header(self, name: str) -> str: ...


class Facts(NamedTuple):
    """A thing that was looked at, with what is said of it besides; ``length`` is None where the server does not say it."""

    thing: Thing
    etag: str
    length: int | None

    def build_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """What it says of a document, as headers of its answer."""
        modified_ms = self.thing.modified_ms
        return list_dates(None if modified_ms is None else modified_ms / 1000)

    def describes(self, answer: _Answer, body: Body) -> bool:
        """Whether a body that was got with these headers is this version."""
        is_long = self.length is None or self.length == len(body)
        etag = answer.header("ETag")
        if etag and self.etag:
            return _strip_etag(etag) == _strip_etag(self.etag)
        dates = {parse_date(answer.header("Last-Modified")), self.thing.modified_ms} - {None}
        return is_long and len(dates) < 2


def locate(href: str, asked: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The names on the way from the top of the server to what an href names; raises RemoteFailure for one that leads upwards.

    A relative one starts at ``asked``. Only its path counts: behind a proxy servers name themselves by other schemes and hosts.
    Nothing in it is a query or a fragment: those are no part of an href, and some servers do not escape ``?`` and ``#``.
    """
    path = _ABSOLUTE.sub("", href, count=1) if _ABSOLUTE.match(href) else href
    begin = () if path.startswith("/") or path != href else asked
    found = (*begin, *(unquote_to_bytes(name) for name in path.split("/") if name))
    if not {b".", b".."}.isdisjoint(found):
        raise RemoteFailure(f"the answer names {href[:200]!r}, which leads upwards", code=Code.READ_ERROR)
    return found


def build_thing(resource: Resource, name: bytes, now_ms: int) -> Facts:
    """What is said of a thing with this name, at a moment by the clock of the server."""
    texts = resource.properties
    etag, written = texts.get("getetag", ""), texts.get("getlastmodified", "")
    length, modified_ms = _parse_length(texts.get("getcontentlength", "")), parse_date(written)
    if resource.is_collection:
        return Facts(Thing(name, is_folder=True), etag, length)
    is_known = modified_ms is None or not is_young(now_ms, modified_ms)
    token = _build_token(etag, length, written) if is_known else b""
    return Facts(_bar(Thing(name, False, length or 0, modified_ms, token)), etag, length)


def _bar(thing: Thing) -> Thing:
    for byte, what in _BARRED.items():
        if byte in thing.name:
            return thing._replace(name=thing.name.replace(byte, b"%%%02X" % byte[0]), barred=f"{what} in its name")
    return thing


def _build_token(etag: str, length: int | None, written: str) -> bytes:
    """The token of a version: a strong ETag, or all that the server says."""
    if etag and not etag.startswith("W/"):
        return etag.encode("utf-8")
    return " ".join([etag, "" if length is None else str(length), written]).strip().encode("utf-8")


def _strip_etag(etag: str) -> str:
    return etag.strip().removeprefix("W/").strip('"')


def _parse_length(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def parse_date(text: str) -> int | None:
    """A date as HTTP has it, in milliseconds since 1970; None for what is none."""
    try:
        moment = parsedate_to_datetime(text[:_MOST_DATE_CHARACTERS])
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (moment - _EPOCH) // timedelta(milliseconds=1)
