"""How a visit ends without a page: the errors of downloads, their codes, and the Outcome that settles the row (C7, L6)."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import responses
from typing import Final, NamedTuple

from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Response

from searchcrawl.codes import Code, is_retried
from searchcrawl.exceptions import SpoolFailed
from searchcrawl.items import Claim, Hop, Outcome
from searchcrawl.politeness.backoff import parse_retry_after
from searchcrawl.sources.secrets import redact

PAGES: Final = frozenset({200, 203})
#: ConditionalMiddleware handles 304.
_PASSED_ON: Final = PAGES | {304}
#: So much of a text is looked through for secrets.
_READ_CHARACTERS: Final = 10_000
#: The key of ``Request.meta`` for requests that may reach public addresses only (``rules.redirects``).
PUBLIC_ONLY: Final = "public_only"


class VisitEnded(IgnoreRequest):
    """Raised by a middleware that settles a claimed row; the spider's errback yields ``outcome``."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.error or f"{outcome.code}: {outcome.claim.url}")


class ForbiddenAddress(CannotResolveHostError):
    """The host has only addresses that may not be reached (907; L7)."""


class CertificateRefused(DownloadFailedError):
    """The server's certificate is not trusted, not valid, or another host's (962)."""


class HostGivenUp(DownloadFailedError):
    """The host never answered in the run, nothing else is left, and no more is sent; ``code`` is that of its last failure."""

    def __init__(self, message: str, *, code: int) -> None:
        self.code = Code(code)  # type: ignore[arg-type]  # it has that value
        super().__init__(message)


class BrokenHeader(DownloadFailedError):
    """The status line or a header of the answer is not valid HTTP, or exceeds a limit (1006)."""


class BodyTooLarge(DownloadCancelledError):
    """The body is larger than ``fetch.max_bytes`` (960)."""


class NetworkFailure(NamedTuple):
    """What an exception of a download handler means for the row."""

    code: Code
    transient: bool


#: Subclasses come before their base classes.
_CODES: Final[Mapping[type[Exception], Code]] = {
    CertificateRefused: Code.CERTIFICATE,
    BrokenHeader: Code.HEADER_ERROR,
    CannotResolveHostError: Code.ADDRESS_NOT_FOUND,
    DownloadTimeoutError: Code.TIMEOUT,
    DownloadConnectionRefusedError: Code.CONNECTION_REFUSED,
    ResponseDataLossError: Code.READ_ERROR,
    DownloadCancelledError: Code.TOO_LARGE,
    UnsupportedURLSchemeError: Code.MALFORMED_URL,
    DownloadFailedError: Code.IO_ERROR,
    # It says nothing of the host.
    SpoolFailed: Code.READ_ERROR,
    OSError: Code.IO_ERROR,
}


def find_failure(exception: Exception) -> NetworkFailure | None:
    """The code of an exception of the handler; None if it is no failure of the network."""
    if isinstance(exception, HostGivenUp):
        return NetworkFailure(exception.code, False)
    code = next((code for kind, code in _CODES.items() if isinstance(exception, kind)), None)
    # Another try would find the same address that is forbidden.
    retried = code is not None and code.facts.retried and not isinstance(exception, ForbiddenAddress)
    return None if code is None else NetworkFailure(code, retried)


def join_lines(text: object) -> str:
    """``text`` without secrets, line breaks and other controls, at most 300 characters, for rows and logs."""
    known = redact(str(text)[:_READ_CHARACTERS])
    line = "".join(character if character.isprintable() else " " for character in known[:600])
    return " ".join(line.split())[:300]


def find_claim(request: Request) -> Claim | None:
    """The row that a request visits; None for side requests and those of users' own code."""
    claim: Claim | None = request.meta.get("claim")
    return claim


def find_redirects(request: Request) -> tuple[Hop, ...]:
    """The redirects followed so far."""
    trail: tuple[Hop, ...] = request.meta.get("redirects", ())
    return trail


def build_visit_end(
    request: Request,
    claim: Claim,
    code: int,
    *,
    error: str | None = None,
    rule: str | None = None,
    transient: bool = False,
    retry_after_seconds: float | None = None,
) -> VisitEnded:
    """The exception that settles ``claim`` with ``code``; ``error`` gets the URL appended."""
    return VisitEnded(
        Outcome(
            claim=claim,
            code=int(code),
            rule=rule,
            error=f"{join_lines(error)}: {join_lines(request.url)}" if error else None,
            transient=transient,
            retry_after_seconds=retry_after_seconds,
            redirects=find_redirects(request),
        )
    )


class OutcomeMiddleware:
    """Ends every visit whose status is not 200, 203 or 304, with this status or the code of the failure.

    Answers and failures of requests without a row, as for robots.txt, pass unchanged.
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
    return f"{status} {responses[status]}" if status in responses else f"status {status}"


def describe_failure(code: Code, exception: Exception) -> str:
    """A failure in words: ``connection refused: …``."""
    if isinstance(exception, ForbiddenAddress):
        return f"address refused: {exception}"
    if isinstance(exception, HostGivenUp):
        return str(exception)
    name = code.name.lower().replace("_", " ")
    return f"{name}: {exception}" if str(exception) else name
