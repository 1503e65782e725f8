"""HTTP Basic and Digest, for origins that may have the password (C10, X-N7, 959)."""

from __future__ import annotations

import logging
import secrets
from dataclasses import replace
from typing import Final

from scrapy import Request
from scrapy.http import Response
from w3lib.http import basic_auth_header

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.http.digest import Challenge, build_digest_header, find_challenge, find_next_nonce, list_schemes
from searchcrawl.http.redirect_middleware import repeat_request
from searchcrawl.http.side_requests import ANONYMOUS
from searchcrawl.http.visit_end import build_visit_end, describe_status, find_claim, join_lines
from searchcrawl.sources.fetch_tables import Login

logger = logging.getLogger(__name__)

#: How many challenges one request answers: a first one, and one for a nonce that became stale meanwhile.
_MAX_ANSWERS: Final = 2


class HttpLogin:
    """The common part of Basic and Digest: an origin that refuses the password gets no more requests.

    So a wrong password is sent once, and by the requests that were under way then. More tries might lock the user out.
    """

    def __init__(self, origins: frozenset[str], login: Login) -> None:
        self._origins = origins
        self._user = login.username or "", login.password or ""
        self._accepted: set[str] = set()
        self._refused: dict[str, str] = {}

    def process_request(self, request: Request) -> None:
        if not _is_for(request, self._origins):
            return
        origin, claim = urls.origin_of(request.url), find_claim(request)
        if origin in self._refused and claim is not None:
            raise build_visit_end(request, claim, Code.LOGIN_FAILED, error=self._refused[origin])
        value = self._authorization(request, origin)
        if value is not None:
            request.headers[b"Authorization"] = value.encode("latin-1")

    def process_response(self, request: Request, response: Response) -> Response | Request:
        origin = urls.origin_of(request.url)
        if not _is_for(request, self._origins):
            return response
        if response.status != 401:
            self._accepted.add(origin)
            self._note_success(request, response, origin)
            return response
        repeated = self._answer_challenge(request, response, origin)
        if repeated is not None:
            return repeated
        offered = ", ".join(list_schemes(_texts(response, b"WWW-Authenticate"))) or "nothing"
        error = f"login failed: {describe_status(response.status)}, the server offers {join_lines(offered)}"
        if origin not in self._accepted and origin not in self._refused:
            self._refused[origin] = error
            logger.warning("%s: %s; nothing more is requested there", origin, error)
        claim = find_claim(request)
        if claim is None:
            return response
        raise build_visit_end(request, claim, Code.LOGIN_FAILED, error=error)

    def _authorization(self, request: Request, origin: str) -> str | None:
        raise NotImplementedError

    def _answer_challenge(self, request: Request, response: Response, origin: str) -> Request | None:
        """The request that gives the credentials which a 401 asks for; None if the 401 is final."""
        return None

    def _note_success(self, request: Request, response: Response, origin: str) -> None:
        """Is called with each answer that is not 401."""


class BasicLogin(HttpLogin):
    """Sends name and password with each request to ``origins``."""

    def _authorization(self, request: Request, origin: str) -> str | None:
        return basic_auth_header(*self._user, encoding="utf-8").decode()


class DigestLogin(HttpLogin):
    """Answers the challenges of ``origins``; after the first challenge each request gets an answer at once."""

    def __init__(self, origins: frozenset[str], login: Login) -> None:
        super().__init__(origins, login)
        self._challenges: dict[str, Challenge] = {}
        self._counts: dict[str, int] = {}

    def _authorization(self, request: Request, origin: str) -> str | None:
        challenge = self._challenges.get(origin)
        if challenge is None:
            return None
        self._counts[origin] += 1
        request.meta["digest_nonce"] = challenge.nonce
        return build_digest_header(
            challenge,
            method=request.method,
            target=request.url[len(origin) :] or "/",
            user=self._user,
            cnonce=secrets.token_hex(8),
            count=self._counts[origin],
        )

    def _answer_challenge(self, request: Request, response: Response, origin: str) -> Request | None:
        challenge = find_challenge(_texts(response, b"WWW-Authenticate"))
        answered = request.meta.get("digest_answers", 0)
        if challenge is None or answered >= _MAX_ANSWERS:
            return None
        # A server may refuse an old nonce without a word about it: a password that was accepted is not wrong then.
        old = challenge.stale or (origin in self._accepted and not self._is_current(request, origin))
        if b"Authorization" in request.headers and not old:
            return None
        self._remember(origin, challenge)
        return repeat_request(request, request.url, digest_answers=answered + 1)

    def _note_success(self, request: Request, response: Response, origin: str) -> None:
        later = find_next_nonce((response.headers.get(b"Authentication-Info") or b"").decode("latin-1"))
        if later and self._is_current(request, origin):
            self._remember(origin, replace(self._challenges[origin], nonce=later))

    def _is_current(self, request: Request, origin: str) -> bool:
        """Whether a request was sent with the last nonce: what its answer says of nonces is not out of date."""
        known = self._challenges.get(origin)
        return known is not None and request.meta.get("digest_nonce") == known.nonce

    def _remember(self, origin: str, challenge: Challenge) -> None:
        known = self._challenges.get(origin)
        if known is None or known.nonce != challenge.nonce:
            self._counts[origin] = 0
        self._challenges[origin] = challenge


def _is_for(request: Request, origins: frozenset[str]) -> bool:
    """Whether a request goes to one of ``origins``, and was not redirected there from another one."""
    origin = urls.origin_of(request.url)
    if origin not in origins or request.meta.get(ANONYMOUS, False):
        return False
    claim = find_claim(request)
    asked_for = claim.url if claim is not None else request.meta.get("asked_for", request.url)
    return urls.origin_of(asked_for) == origin


def _texts(response: Response, name: bytes) -> list[str]:
    return [value.decode("latin-1") for value in response.headers.getlist(name)]
