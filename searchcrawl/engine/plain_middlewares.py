"""Calls our downloader middlewares one after the other, and waits only for those that answer later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

from scrapy import Request
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.http import Response

from searchcrawl.own_code import is_ours

_Send = Callable[[Request], Awaitable[Response]]


class PlainMiddlewares:
    """Does what Scrapy's manager does, which waits after each method: that costs as much as many of them."""

    def __init__(
        self, requests: Sequence[Callable[..., Any]], responses: Sequence[Any], failures: Sequence[Any]
    ) -> None:
        self._requests = requests
        self._responses = responses
        self._failures = failures

    @classmethod
    def of(cls, manager: DownloaderMiddlewareManager) -> Self | None:
        """The middlewares of a manager; None if one of them is a user's own."""
        methods: Any = manager.methods
        kinds = [tuple(methods[name]) for name in ("process_request", "process_response", "process_exception")]
        ours = all(is_ours(getattr(method, "__module__", "")) for kind in kinds for method in kind)
        return cls(*kinds) if ours else None

    async def download(self, send: _Send, request: Request) -> Response | Request:
        """The answer of ``send`` or of a middleware in its place, or the request that one of them wants instead."""
        result: Any
        try:
            result = await self._ask(request)
            if result is None:
                result = await send(request)
        except Exception as error:  # noqa: BLE001  # a middleware or the handler: they are asked what it means
            result = await self._answer_failure(error, request)
        for process in self._responses:
            if isinstance(result, Request):
                break
            result = process(request=request, response=result)
            if not isinstance(result, Response | Request):
                result = await result
        answer: Response | Request = result
        return answer

    async def _ask(self, request: Request) -> Any:
        for process in self._requests:
            result = process(request=request)
            if result is not None and not isinstance(result, Response | Request):
                result = await result
            if result is not None:
                return result
        return None

    async def _answer_failure(self, error: Exception, request: Request) -> Any:
        for process in self._failures:
            result = process(request=request, exception=error)
            if result is not None and not isinstance(result, Response | Request):
                result = await result
            if result is not None:
                return result
        raise error
