"""How a visit ends early: with an Outcome instead of a response."""

from __future__ import annotations

from typing import NamedTuple

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

from searchcrawl.codes import Code
from searchcrawl.items import Claim, Hop, Outcome


class VisitEnded(IgnoreRequest):
    """Raised by a middleware that settles a claimed row; the spider's errback yields ``outcome``."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.error or f"{outcome.code}: {outcome.claim.url}")


class ForbiddenAddress(CannotResolveHostError):
    """The host has only addresses that may not be reached (907; L7)."""


class CertificateRefused(DownloadFailedError):
    """The server's certificate is not trusted, not valid, or another host's (962)."""


class BrokenHeader(DownloadFailedError):
    """The answer's status line or header is no HTTP, or passes a limit (1006)."""


class BodyTooLarge(DownloadCancelledError):
    """The body is larger than ``fetch.max_bytes`` (960)."""


class Failing(NamedTuple):
    """What an exception of a download handler means for the row."""

    code: Code
    transient: bool


#: The narrowest class first.
_FAILINGS: tuple[tuple[type[Exception], Failing], ...] = (
    (ForbiddenAddress, Failing(Code.ADDRESS_NOT_FOUND, False)),
    (CertificateRefused, Failing(Code.CERTIFICATE, True)),
    (BrokenHeader, Failing(Code.HEADER_ERROR, True)),
    (CannotResolveHostError, Failing(Code.ADDRESS_NOT_FOUND, True)),
    (DownloadTimeoutError, Failing(Code.TIMEOUT, True)),
    (DownloadConnectionRefusedError, Failing(Code.CONNECTION_REFUSED, True)),
    (ResponseDataLossError, Failing(Code.READ_ERROR, True)),
    (DownloadCancelledError, Failing(Code.TOO_LARGE, False)),
    (UnsupportedURLSchemeError, Failing(Code.MALFORMED_URL, False)),
    (DownloadFailedError, Failing(Code.IO_ERROR, True)),
    (OSError, Failing(Code.IO_ERROR, True)),
)


def failing_of(exception: Exception) -> Failing | None:
    """The code of a handler's exception; None for one that is no failure of the network."""
    for kind, failing in _FAILINGS:
        if isinstance(exception, kind):
            return failing
    return None


def one_line(text: object) -> str:
    """``text`` without line breaks and other controls, at most 300 characters, for rows and logs."""
    line = "".join(character if character.isprintable() else " " for character in str(text)[:600])
    return " ".join(line.split())[:300]


def claim_of(request: Request) -> Claim | None:
    """The row that a request visits; None for side requests and those of users' own code."""
    claim: Claim | None = request.meta.get("claim")
    return claim


def trail_of(request: Request) -> tuple[Hop, ...]:
    """The redirects followed so far."""
    trail: tuple[Hop, ...] = request.meta.get("redirects", ())
    return trail


def ended(
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
            error=f"{one_line(error)}: {one_line(request.url)}" if error else None,
            transient=transient,
            retry_after_seconds=retry_after_seconds,
            redirects=trail_of(request),
        )
    )
