"""Ends visits whose answer is no page, with the status or the code of the failure (C7, L6)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from scrapy import Request
from scrapy.http import Response

from searchcrawl.codes import Code, is_retried
from searchcrawl.http.visit_end import VisitEnded, build_visit_end, find_claim, find_failure
from searchcrawl.politeness.backoff import parse_retry_after

PAGES: Final = frozenset({200, 203})
#: ConditionalMiddleware decides about a 304.
_PASSED_ON: Final = PAGES | {304}


class OutcomeMiddleware:
    """Lets 200, 203 and 304 pass; ends every other visit with its status, or with the code of the failure.

    Answers and failures of requests without a row, as those for robots.txt, pass unchanged.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        status = response.status
        if status in _PASSED_ON:
            return response
        claim = find_claim(request)
        if claim is None:
            return response
        raise build_visit_end(
            request,
            claim,
            status,
            error=describe_status(status),
            transient=is_retried(status),
            retry_after_seconds=parse_retry_after(response.headers.get(b"Retry-After")),
        )

    def process_exception(self, request: Request, exception: Exception) -> None:
        claim = find_claim(request)
        if claim is None or isinstance(exception, VisitEnded):
            return
        failure = find_failure(exception)
        if failure is not None:
            error = describe_failure(failure.code, exception)
            raise build_visit_end(request, claim, failure.code, error=error, transient=failure.transient) from exception


def describe_status(status: int) -> str:
    """A status in words: ``404 Not Found``."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"status {status}"


def describe_failure(code: Code, exception: Exception) -> str:
    """A failure in words: ``connection refused: …``."""
    name = code.name.lower().replace("_", " ")
    return f"{name}: {exception}" if str(exception) else name
