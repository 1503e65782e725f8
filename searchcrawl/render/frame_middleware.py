"""The frame that the routes of an application share is requested once, as a browser does that goes from one to the next."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from scrapy import Request
from scrapy.http import Response

from searchcrawl import clock, urls
from searchcrawl.http.large_response import find_body
from searchcrawl.http.visit_end import find_claim

_SECONDS: Final = 600.0
_MOST_KEPT: Final = 20
_MAX_BYTES: Final = 1 << 20
_VALIDATORS: Final = (b"If-None-Match", b"If-Modified-Since")


class FrameMiddleware:
    """Answers the request for a route with what its URL without the route was answered with, for ten minutes.

    It keeps few frames, and of 1 MB at most, as they came; only those with status 200. A source with a login does without:
    its frames may be those of nobody.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, Response]] = OrderedDict()

    def process_request(self, request: Request) -> Response | None:
        if find_claim(request) is None or not urls.has_route(request.url):
            return None
        # The browser needs the body, and would have to ask for it after a 304.
        for name in _VALIDATORS:
            request.headers.pop(name, None)
        bare = urls.without_route(request.url)
        until, response = self._kept.get(bare, (0.0, None))
        if response is None or until <= clock.monotonic():
            return None
        self._kept.move_to_end(bare)
        return response.replace(url=request.url, request=request)

    def process_response(self, request: Request, response: Response) -> Response:
        if response.status == 200 and len(find_body(response)) <= _MAX_BYTES and find_claim(request) is not None:
            self._keep(urls.without_route(request.url), response)
        return response

    def _keep(self, bare: str, response: Response) -> None:
        if bare in self._kept and self._kept[bare][0] > clock.monotonic():
            # It may be that answer itself, which must not last for ever.
            return
        self._kept.pop(bare, None)
        self._kept[bare] = clock.monotonic() + _SECONDS, response.copy()
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
