"""Folders of a WebDAV server (RFC 4918): ``dav://host/folder/`` over http, ``davs://`` over https.

A folder is listed with PROPFIND of depth 1, which has no pages: its answer is read as it comes. Only names, dates and numbers
are taken from it. What is asked for next is built from names below the root, so that no answer leads anywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes, urljoin, urlsplit

from searchcrawl import clock
from searchcrawl.bodies import Spool, hold
from searchcrawl.codes import Code, describe_code, is_retried
from searchcrawl.kinds.file.names import show
from searchcrawl.kinds.file.remote.credentials import Credentials
from searchcrawl.kinds.file.remote.model import RemoteFailure, RemoteFile, Thing, TooLarge, Way
from searchcrawl.kinds.file.remote.multistatus import PROPERTIES, BrokenMultistatus, MultistatusReader, Resource
from searchcrawl.kinds.file.remote.web_client import Answer, WebClient
from searchcrawl.kinds.file.remote.webdav_resources import Facts, build_thing, locate, parse_date
from searchcrawl.listing.model import MOST_ENTRIES
from searchcrawl.sources.config import Source

_SCHEMES: Final = {"dav": "http", "davs": "https"}
_MULTI_STATUS: Final = 207
_GONE: Final = frozenset({404, 410})
#: Of a server, or of a part of it, that knows no PROPFIND.
_NOT_ALLOWED: Final = 405
_NO_WEBDAV: Final = frozenset({_NOT_ALLOWED, 501})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
#: So often a file that changes while it is read is read.
_TRIES: Final = 3
#: An answer about one thing, and one about a folder: that of ten million names.
_MOST_OF_ONE: Final = 16 << 20
_MOST_OF_FOLDER: Final = 4 << 30
_BODY: Final = (
    '<?xml version="1.0" encoding="utf-8"?>\n<propfind xmlns="DAV:"><prop>'
    + "".join(f"<{name}/>" for name in PROPERTIES)
    + "</prop></propfind>"
).encode("ascii")


class DavConnection:
    """A root on a WebDAV server (``remote.model.Connection``)."""

    def __init__(self, source: Source, root: str, *, user_agent: str) -> None:
        parts = urlsplit(root)
        self._root = tuple(name for name in unquote_to_bytes(parts.path).split(b"/") if name)
        self._origin = f"{_SCHEMES[parts.scheme]}://{parts.netloc}"
        table = source.own
        login = None if table.username is None else Credentials(table.username, table.password or "")
        self._client = WebClient(source, self._origin, credentials=login, user_agent=user_agent)
        try:
            self.look(())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def list_folder(self, way: Way) -> Iterator[Sequence[Thing]]:
        """The files and folders in a folder, in the order of the server; raises RemoteFailure, also after some of them."""
        folder = _Folder((*self._root, *way))
        with self._ask(self._build_target(way, is_folder=True), "1") as answer:
            now_ms, found = _find_date(answer), list[Thing]()
            for resources in _read_resources(answer, _MOST_OF_FOLDER):
                found += [thing for each in resources if (thing := folder.take(each, now_ms)) is not None]
                while len(found) >= MOST_ENTRIES:
                    yield found[:MOST_ENTRIES]
                    del found[:MOST_ENTRIES]
        if found:
            yield found
        folder.end()

    def look(self, way: Way) -> Thing:
        """What is at the end of a way; raises RemoteFailure."""
        return self._look(way).thing

    def read(self, way: Way, most_bytes: int, new_spool: Callable[[], Spool] = hold) -> RemoteFile:
        """What a file holds; raises RemoteFailure and TooLarge.

        Only what is a file to WebDAV as well, before and after, is one: a page that stands for all there is for a while is not.
        """
        before: Facts | None = None
        for _ in range(_TRIES):
            target = self._build_target(way)
            with self._client.send("GET", target) as answer:
                body = answer.take_whole(most_bytes, new_spool()) if answer.status == 200 else b""
                if body is None:
                    raise TooLarge
            if answer.status not in {200, _NOT_ALLOWED} and not self._is_with_slash(answer, target):
                raise self._fail(answer)
            after = self._look(way)
            if after.thing.is_folder:
                raise _build_absence("is a folder")
            if answer.status != 200:
                raise self._fail(answer)
            is_whole = answer.has_end or after.length in {None, len(body)}
            if is_whole and (after == before or after.describes(answer, body)):
                return RemoteFile(body=body, headers=after.build_headers())
            # A server may say other things in the headers of a file than of it in a listing.
            before = after
        raise RemoteFailure("changed while it was read", code=Code.READ_ERROR, transient=True)

    def _look(self, way: Way) -> Facts:
        place = (*self._root, *way)
        target = self._build_target(way, is_folder=not way)
        with self._ask(target, "0") as answer:
            now_ms, found = _find_date(answer), None
            for resources in _read_resources(answer, _MOST_OF_ONE):
                found = found or next((each for each in resources if locate(each.href, place) == place), None)
        if found is None:
            raise RemoteFailure("the answer is about something else than was asked", code=Code.READ_ERROR)
        if found.status is not None:
            raise _build_failure(found.status)
        return build_thing(found, way[-1] if way else b"", now_ms)

    @contextmanager
    def _ask(self, target: str, depth: str) -> Iterator[Answer]:
        """The answer to PROPFIND, which is a multistatus; raises RemoteFailure."""
        headers = {
            "Depth": depth,
            "Content-Type": "application/xml; charset=utf-8",
            "Accept": "application/xml, text/xml",
        }
        with self._client.send("PROPFIND", target, body=_BODY, headers=headers) as answer:
            if answer.status == _MULTI_STATUS:
                yield answer
                return
            is_folder = self._is_with_slash(answer, target)
        if answer.status in _NO_WEBDAV:
            raise RemoteFailure(f"{describe_code(answer.status)}: there is no WebDAV", code=answer.status)
        if not is_folder:
            raise self._fail(answer)
        with self._client.send("PROPFIND", f"{target}/", body=_BODY, headers=headers) as answer:
            if answer.status != _MULTI_STATUS:
                raise self._fail(answer)
            yield answer

    def _is_with_slash(self, answer: Answer, target: str) -> bool:
        """Whether an answer is a redirect to the same with a slash behind it, as that of a folder."""
        if answer.status not in _REDIRECTS or target.endswith("/"):
            return False
        leads_to = urljoin(f"{self._origin}{target}", answer.header("Location"))
        return leads_to == f"{self._origin}{target}/"

    def _fail(self, answer: Answer) -> RemoteFailure:
        if answer.status in _REDIRECTS:
            leads_to = urljoin(self._origin, answer.header("Location")).partition("?")[0][:200]
            return RemoteFailure(f"redirects to {leads_to}, which is not followed", code=answer.status)
        return _build_failure(answer.status)

    def _build_target(self, way: Sequence[bytes], *, is_folder: bool = False) -> str:
        path = "/".join(quote_from_bytes(name, safe="-._~") for name in (*self._root, *way))
        return f"/{path}/" if is_folder and path else f"/{path}"


class _Folder:
    """Takes what an answer says of a folder and of what is in it; ``place`` are the names from the top of the server."""

    def __init__(self, place: Sequence[bytes]) -> None:
        self._place = tuple(place)
        self._has_itself = False
        self._failure: RemoteFailure | None = None

    def take(self, resource: Resource, now_ms: int) -> Thing | None:
        """What is directly in the folder; None for itself, for what is gone, and for what is deeper. Raises RemoteFailure."""
        place, depth = locate(resource.href, self._place), len(self._place)
        if place == self._place:
            self._take_itself(resource)
            return None
        if place[:depth] != self._place:
            shown = show(b"/".join(place))[:200]
            raise RemoteFailure(
                f"the answer names /{shown}, which is not in the folder: does a proxy change its paths?",
                code=Code.READ_ERROR,
            )
        if len(place) > depth + 1 or resource.status in _GONE:
            return None
        status = resource.status or resource.withheld.get("resourcetype")
        if status is not None:
            # Nothing is known of it, not even whether it is there: the listing is not whole.
            self._failure = self._failure or _build_failure(status, f"{show(place[-1])}: ")
            return None
        return build_thing(resource, place[-1], now_ms).thing

    def _take_itself(self, resource: Resource) -> None:
        self._has_itself = True
        if resource.status is not None:
            raise _build_failure(resource.status)
        if not resource.is_collection:
            raise _build_absence("is no folder")

    def end(self) -> None:
        """Raises RemoteFailure where not everything was said."""
        if not self._has_itself:
            raise RemoteFailure("the answer does not name the folder itself", code=Code.READ_ERROR)
        if self._failure is not None:
            raise self._failure


def _read_resources(answer: Answer, most_bytes: int) -> Iterator[Sequence[Resource]]:
    reader = MultistatusReader()
    try:
        for piece in answer.read_pieces(most_bytes):
            yield reader.feed(piece)
        reader.end()
    except BrokenMultistatus as error:
        raise RemoteFailure(f"the answer to PROPFIND: {error}", code=Code.READ_ERROR, transient=True) from error


def _find_date(answer: Answer) -> int:
    """The time by the clock of the server, which its files have."""
    date_ms = parse_date(answer.header("Date"))
    return clock.now_ms() if date_ms is None else date_ms


def _build_failure(status: int, what: str = "") -> RemoteFailure:
    """The failure of what is answered with a status; one that is none of HTTP means nothing."""
    if 400 <= status < 600:
        text = f"{what}the server says {describe_code(status)}"
        return RemoteFailure(text, code=status, is_absent=status in _GONE, transient=is_retried(status))
    return RemoteFailure(f"{what}the server answers with {status}, and not as WebDAV does", code=Code.READ_ERROR)


def _build_absence(reason: str) -> RemoteFailure:
    """The failure of what is of the other kind now: the file, or folder, that was here is not there."""
    return RemoteFailure(reason, code=Code.READ_ERROR, is_absent=True)
