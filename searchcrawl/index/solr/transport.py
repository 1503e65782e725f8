"""One exchange with Solr: bounded in time and size, no redirect followed, each answer classified (X-D13, X-I1–X-I7).

answer                                             raises
─────────────────────────────────────────────────  ─────────────────────────────────────
no connection, reset, cut, too slow, 408, 429, 5xx  IndexUnavailable: it may have been done
not JSON, not Solr, too long, 3xx, 401, 403, 404 …  IndexMisconfigured
400, 409, 413, 422, 5xx for too many clauses        SolrRefusal: something in the request is at fault
200 whose responseHeader.status is not 0            as the HTTP status of that number

The time counts from the connection to the last byte of the answer.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import orjson
import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from searchcrawl import clock
from searchcrawl.deadline import POOLS, Deadline
from searchcrawl.exceptions import DeliveryError, IndexMisconfigured, IndexUnavailable

_MAX_CONNECT_SECONDS: Final = 10.0
_MAX_RETRY_AFTER_SECONDS: Final = 3600.0
_REFUSALS: Final = frozenset({400, 409, 413, 422})
#: In Solr's reason for a query of more clauses than it takes, which comes as HTTP 500.
_TOO_MANY_CLAUSES: Final = "maxClauseCount"
_HINTS: Final = {
    401: "it asks for a login: user and password may stand in the URL",
    403: "access is forbidden",
    404: "there is no such core or collection",
    405: "there is no such core or collection",
}

# The message of OpenSSL for an answer that is plain HTTP, in old and new releases.
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")


class SolrRefusal(DeliveryError):
    """Solr refuses the request; ``status`` is that of its answer, ``reason`` its message."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(f"HTTP {status}: {reason}")


class SolrSession(requests.Session):
    """A keep-alive session for one Solr; a ``request`` returns an answer with 200 and JSON of Solr, or raises.

    ``timeout_seconds`` is the total for one exchange, from the connection to the last byte of the answer.
    ``max_answer_bytes`` bounds the decoded answer. Proxies and .netrc of the environment are not used.
    """

    def __init__(self, *, timeout_seconds: float, max_answer_bytes: int) -> None:
        super().__init__()
        self.timeout_seconds = timeout_seconds
        self.max_answer_bytes = max_answer_bytes
        self.trust_env = False
        for scheme in ("http://", "https://"):
            self.mount(scheme, _WatchedAdapter(max_retries=0, pool_connections=1, pool_maxsize=1))

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """None: a redirect is taken as the answer; mostly it leads to a login page (X-I6)."""
        return None

    def request(self, method: str, url: str | bytes, *args: Any, **kwargs: Any) -> requests.Response:
        """Answers 200 with JSON that has a responseHeader of status 0; raises what the module's table says."""
        address = url if isinstance(url, str) else url.decode()
        shown = hide_secrets(address)
        limit = self.timeout_seconds
        kwargs |= {"stream": True, "timeout": (min(limit, _MAX_CONNECT_SECONDS), limit)}
        with Deadline(limit) as deadline:
            try:
                response = super().request(method, address, *args, **kwargs)
                body = self._read_body(response, shown)
            except (requests.RequestException, HTTPError, OSError) as error:
                if deadline.is_over:
                    raise _build_timeout_error(shown, limit) from error
                raise _explain_failure(shown, error) from error
            if deadline.expired:
                # An answer whose connection is shut in the headers looks like one without a body.
                raise _build_timeout_error(shown, limit)
        check_answer(shown, response.status_code, response.headers.get("Retry-After"), body)
        # The body was read above, within its limits; requests reads it again from memory.
        response.raw = io.BytesIO(body)
        return response

    def _read_body(self, response: requests.Response, shown: str) -> bytes:
        body = bytearray()
        for piece in response.raw.stream(65_536, decode_content=True):
            body += piece
            if len(body) > self.max_answer_bytes:
                response.close()
                raise misconfigured(shown, f"the answer is longer than {self.max_answer_bytes} bytes")
        return bytes(body)


def check_answer(shown: str, status: int, retry_after: str | None, body: bytes) -> None:
    """Returns if the answer is Solr's and good; raises what the module's table says."""
    answer = _parse_object(body)
    header = None if answer is None else answer.get("responseHeader")
    if status == 200 and isinstance(header, dict):
        inner = header.get("status", 0)
        if inner == 0:
            errors = header.get("errors")
            # What ``read_errors`` reads.
            if errors is not None and not (isinstance(errors, list) and all(isinstance(each, dict) for each in errors)):
                raise misconfigured(shown, f"the answer is not Solr's: {_cut_excerpt(body)}")
            return
        status = inner if isinstance(inner, int) and 400 <= inner < 600 else 500
    elif status == 200 and (not body.strip() or (answer is None and body.lstrip()[:1] == b"{")):
        raise IndexUnavailable(f"{shown}: the answer ends in its middle")
    elif status == 200:
        raise misconfigured(shown, f"the answer is not Solr's: {_cut_excerpt(body)}")
    reason = _read_reason(answer) or _cut_excerpt(body)
    if status in _REFUSALS or _TOO_MANY_CLAUSES in reason:
        raise SolrRefusal(status, reason)
    if status in {408, 429} or status >= 500:
        seconds = None if retry_after is None else clock.parse_pause(retry_after, most_seconds=_MAX_RETRY_AFTER_SECONDS)
        raise IndexUnavailable(f"{shown}: HTTP {status}: {reason}", retry_after_seconds=seconds)
    hint = "it redirects, and redirects are not followed" if 300 <= status < 400 else _HINTS.get(status, reason)
    raise misconfigured(shown, f"HTTP {status}: {hint}")


def misconfigured(shown: str, reason: str) -> IndexMisconfigured:
    """The error that only an edit of the project or of the server can repair; names both (X-I6)."""
    return IndexMisconfigured(f"searchcrawl.toml: index.url: {shown}: {reason}")


def hide_secrets(url: str) -> str:
    """The URL without user, password and parameters, as messages may show it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def _explain_failure(shown: str, error: Exception) -> DeliveryError:
    if isinstance(error, (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema)):
        return misconfigured(shown, str(error))
    if isinstance(error, requests.exceptions.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return misconfigured(shown, f"its certificate is refused: {error}")
    if isinstance(error, requests.exceptions.SSLError) and any(sign in str(error) for sign in _NO_TLS):
        return misconfigured(shown, "it does not speak HTTPS")
    return IndexUnavailable(f"{shown}: {_find_cause(error)}")


def _build_timeout_error(shown: str, seconds: float) -> IndexUnavailable:
    return IndexUnavailable(f"{shown}: no complete answer within {seconds:g} s")


def _find_cause(error: BaseException) -> str:
    """The message of the operating system; the HTTP libraries wrap its error several times."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) and found.strerror:
            return found.strerror
        found = found.__cause__ or found.__context__
    return str(error) or type(error).__name__


def _parse_object(body: bytes) -> dict[str, Any] | None:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return answer if isinstance(answer, dict) else None


def _read_reason(answer: dict[str, Any] | None) -> str:
    error = {} if answer is None else answer.get("error")
    return str(error.get("msg") or "") if isinstance(error, dict) else ""


def _cut_excerpt(body: bytes) -> str:
    return " ".join(body[:200].decode("utf-8", "replace").split()) or "(empty)"


class _WatchedAdapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = POOLS


def read_errors(answer: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The (id, message) pairs of documents and removals that a tolerant update refused with HTTP 200."""
    for error in answer["responseHeader"].get("errors") or ():
        yield str(error.get("id", "")), str(error.get("message", ""))
