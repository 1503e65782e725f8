"""One request as Chromium sends it to its proxy, what it is for (Fetch standard, RFC 9112), and what comes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl

_LINE: Final = re.compile(r"([A-Z-]{1,20}) (\S{1,65536}) HTTP/1\.[01]")
#: The kind of each destination of the Fetch standard; ``empty`` is what scripts fetch.
_KIND_OF_DESTINATION: Final = {
    "document": "document",
    **dict.fromkeys(("iframe", "frame", "embed", "object", "fencedframe"), "frame"),
    **dict.fromkeys(
        ("script", "worker", "sharedworker", "serviceworker", "audioworklet", "paintworklet", "json"), "script"
    ),
    **dict.fromkeys(("style", "xslt"), "stylesheet"),
    **dict.fromkeys(("audio", "video"), "media"),
    "track": "texttrack",
    "image": "image",
    "font": "font",
    "manifest": "manifest",
    "empty": "data",
}


class BadRequest(Exception):
    """What the browser sent is no request that this proxy reads."""


@dataclass(frozen=True, slots=False)
class BrowserRequest:
    """A request; ``url`` is absolute, ``headers`` have names in lower case, in the order in which they came."""

    method: str
    url: str
    headers: Sequence[tuple[str, str]]
    body: bytes = field(default=b"", repr=False)

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """The headers by name; of several of one name, the last."""
        return dict(self.headers)

    @cached_property
    def kind(self) -> str:
        """What the answer is for: ``document``, ``frame``, ``script``, ``stylesheet``, ``data`` or one of Playwright's words.

        Chromium says it to https and to loopback alone. To other hosts ``document`` may be a frame, and ``unknown`` is a script
        or data.
        """
        fields = self.fields
        if "websocket" in fields.get("upgrade", "").lower():
            return "websocket"
        if "prefetch" in fields.get("sec-purpose", fields.get("purpose", "")):
            return "prefetch"
        if fields.get("accept", "") == "text/event-stream":
            return "eventsource"
        destination = fields.get("sec-fetch-dest")
        if destination is not None:
            return _KIND_OF_DESTINATION.get(destination, "other")
        return self._guess_kind()

    def _guess_kind(self) -> str:
        accept = self.fields.get("accept", "")
        if "upgrade-insecure-requests" in self.fields:
            return "document"
        if accept.startswith("text/css"):
            return "stylesheet"
        if accept.startswith("image/"):
            return "image"
        if self.fields.get("range", "") == "bytes=0-" and "identity" in self.fields.get("accept-encoding", ""):
            return "media"
        return "unknown"

    @property
    def is_navigation(self) -> bool:
        """Whether a page or a frame goes there."""
        return self.kind in {"document", "frame"}

    @property
    def tells_kind(self) -> bool:
        """Whether Chromium says itself what the answer is for."""
        return "sec-fetch-dest" in self.fields

    @property
    def is_preflight(self) -> bool:
        """Whether it asks, for CORS, if another request may be sent."""
        return self.method == "OPTIONS" and "access-control-request-method" in self.fields


def parse_head(head: bytes, origin: str | None) -> tuple[str, str, list[tuple[str, str]]]:
    """The method, the absolute URL and the headers of a request; raises BadRequest.

    ``origin`` is where a tunnel leads; without one the request names its URL itself.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    found = _LINE.fullmatch(first)
    if found is None:
        raise BadRequest("no request line")
    target = found[2]
    if origin is not None:
        if not target.startswith("/"):
            raise BadRequest("no path in a tunnel")
        target = origin + target
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if line and colon:
            headers.append((name.strip().lower(), value.strip()))
    return found[1], target, headers


class RequestRefused(Exception):
    """A URL may not be requested; the message is the rule that forbids it.

    ``code``, as for a page, says what keeps its robots.txt from being read now: later it may be allowed.
    """

    def __init__(self, message: str, *, code: int | None = None) -> None:
        self.code = code
        super().__init__(message)


class FetchFailed(Exception):
    """A URL could not be fetched; ``code`` is as for a page."""

    def __init__(self, message: str, *, code: int) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class DecodedAnswer:
    """An answer without content codings."""

    url: str
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes = field(repr=False)
    #: nobody was logged in
    lost_login: bool = False


def resolve(text: str, base: str | None = None, *, routes: bool = False) -> str | None:
    """The identity of a URL; None where it is none of http or https."""
    try:
        return urls.resolve(text, base, routes=routes)
    except InvalidUrl:
        return None
