"""The only way out of the browser of a spider in Python with SEARCHCRAWL_GUARD: the client of its plain requests (L7)."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from searchcrawl.codes import REDIRECT_STATUSES
from searchcrawl.http.visit_end import ForbiddenAddress
from searchcrawl.render.browser_request import BrowserRequest
from searchcrawl.render.proxy.authority import Authority
from searchcrawl.render.proxy.page_port import PagePort
from searchcrawl.render.wall import Answer, resolve

logger = logging.getLogger(__name__)

#: An answer of the client: its status, its headers and its body without codings.
Sending = Callable[
    [str, str, Sequence[tuple[str, str]], bytes], Awaitable[tuple[int, Sequence[tuple[str, str]], bytes]]
]
#: Headers about one connection.
_OF_CONNECTION: Final = frozenset({
    "connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
#: They go on for longer than an answer does, and each answer is whole before the browser gets it.
_ENDLESS: Final = frozenset({"websocket", "eventsource"})
_MAX_ENDS: Final = 2000
_MAX_REDIRECTS: Final = 25
#: So many refused hosts are named in the log.
_MAX_NAMED: Final = 50


class SpiderProxy:
    """Listens on loopback for one browser, and has ``send`` answer what its pages ask for. For the event loop.

    ``send`` may raise anything: the page gets a network error, and ``find_failure`` has the reason. ``count_refused`` is
    called for each request that the address guard refused.
    """

    def __init__(self, send: Sending, count_refused: Callable[[], None]) -> None:
        self._send = send
        self._count_refused = count_refused
        self._authority = Authority()
        self._ports: dict[frozenset[int], tuple[PagePort, int]] = {}
        #: by identity of a URL: why there was no answer, or where it redirects to
        self._ends: OrderedDict[str, Exception | str] = OrderedDict()
        self._named: set[str] = set()

    @property
    def key_digest(self) -> str:
        """What names the authority to Chromium whose certificates the proxy has."""
        return self._authority.key_digest

    async def open(self, users: Collection[int]) -> int:
        """The port that it listens on for a browser of one of ``users``."""
        known = self._ports.get(frozenset(users))
        if known is None:
            port = PagePort(self._authority, self._answer, users=users, note_refused=self._note_tunnel)
            known = self._ports[frozenset(users)] = port, await port.open()
        return known[1]

    async def close(self) -> None:
        """Ends all connections."""
        for port, _ in self._ports.values():
            await port.close()
        self._ports.clear()

    def find_failure(self, url: str) -> Exception | None:
        """Why there was no answer of a URL, or of that where its redirects led to; None if nothing is known."""
        end: Exception | str | None = url
        for _ in range(_MAX_REDIRECTS):
            if not isinstance(end, str):
                return end
            end = self._ends.get(resolve(end) or end)
        return None

    async def _answer(self, request: BrowserRequest) -> Answer | None:
        url = resolve(request.url)
        if url is None or request.kind in _ENDLESS:
            return None
        headers = [(name, value) for name, value in request.headers if _is_sent(name)]
        try:
            status, received, body = await self._send(request.method, request.url, headers, request.body)
        except Exception as error:  # noqa: BLE001  # whatever it is, the spider gets it
            logger.debug("the browser of a spider gets no answer of %s: %s", url, error)
            self._note(url, _strip(error))
            return None
        location = next((value for name, value in received if name.lower() == "location"), None)
        target = resolve(location, url) if location is not None and status in REDIRECT_STATUSES else None
        if target is None:
            self._ends.pop(url, None)
        else:
            self._note(url, target)
        return Answer(url, status, received, body)

    def _note(self, url: str, end: Exception | str) -> None:
        self._ends[url] = end
        self._ends.move_to_end(url)
        if len(self._ends) > _MAX_ENDS:
            self._ends.popitem(last=False)
        if isinstance(end, Exception) and isinstance(end.__cause__, ForbiddenAddress):
            self._count_refused()
            reason = str(end)
            if reason not in self._named and len(self._named) < _MAX_NAMED:
                self._named.add(reason)
                logger.warning("the browser of a spider was refused an address: %s", reason)

    def _note_tunnel(self, reason: str) -> None:
        logger.debug("the browser of a spider was refused a tunnel: %s", reason)


def _strip(error: Exception) -> Exception:
    """An error without the frames that it went through, which hold bodies."""
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each = each.__cause__ or each.__context__
    return error


def _is_sent(name: str) -> bool:
    return name not in _OF_CONNECTION and not name.startswith("proxy-")
