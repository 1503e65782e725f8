"""HTTP Basic and Digest, for origins that may have the password (C10, X-N7, 959).

The headers are those of RFC 7617 and RFC 7616. Their text has a character for each byte, as Latin-1 has: a realm goes back
as it came, in whatever encoding. What ``requests`` has for Digest is for its own requests, and knows neither the hash of a
name nor a next nonce.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from scrapy import Request
from scrapy.http import Response
from w3lib.http import basic_auth_header

from searchcrawl import urls
from searchcrawl.codes import Code
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


#: The best come first.
_HASHES: Final = {"SHA-256": hashlib.sha256, "MD5": hashlib.md5}
_MAX_HEADER: Final = 8192
# A name is read from its beginning to its end: of thousands of letters each would be tried as a beginning, or an end.
_NAME: Final = r"(?<![A-Za-z0-9!#$%&'*+.^_`|~-])([A-Za-z0-9!#$%&'*+.^_`|~-]++)"
_PARAMETER: Final = re.compile(rf"{_NAME}\s*+=\s*+(?:\"((?>[^\"\\]|\\.)*+)\"|([^\s,\"]++))")
_SCHEME: Final = re.compile(rf"\s*+(?>,\s*+)?+{_NAME}(?=\s|,|$)(?!\s*+=)")
_SEPARATOR: Final = re.compile(r"[\s,]*+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """The question of a server in ``WWW-Authenticate: Digest``; ``stale``: only the nonce was too old."""

    realm: str
    nonce: str
    opaque: str | None = None
    algorithm: str | None = None
    qop: bool = True
    stale: bool = False
    userhash: bool = False


def find_challenge(headers: Iterable[str]) -> Challenge | None:
    """The best Digest challenge of WWW-Authenticate ``headers`` that can be answered; None where there is none.

    These are MD5 and SHA-256, also their -sess forms, with qop ``auth`` or none.
    """
    found = [
        one for header in headers for scheme, values in _split(header[:_MAX_HEADER]) for one in _read(scheme, values)
    ]
    names = list(_HASHES)
    return min(found, key=lambda one: names.index(_hash_name(one.algorithm)), default=None)


def list_schemes(headers: Iterable[str]) -> list[str]:
    """The names of the schemes that a server offers, for messages."""
    return [scheme[:40] for header in headers for scheme, _ in _split(header[:_MAX_HEADER])]


def build_digest_header(
    challenge: Challenge, *, method: str, target: str, user: tuple[str, str], cnonce: str, count: int
) -> str:
    """The value of the header that answers ``challenge`` for a request of ``target`` (path and query).

    ``user`` is name and password, ``count`` how often the nonce was used, this time included.
    """
    hashed = _HASHES[_hash_name(challenge.algorithm)]

    def h(text: str) -> str:
        return hashed(text.encode("latin-1")).hexdigest()

    # In UTF-8, as browsers send them whatever the charset of the realm is.
    name, password = (text.encode().decode("latin-1") for text in user)
    secret = h(f"{name}:{challenge.realm}:{password}")
    if (challenge.algorithm or "").upper().endswith("-SESS"):
        secret = h(f"{secret}:{challenge.nonce}:{cnonce}")
    asked = h(f"{method}:{target}")
    times = f"{count:08x}"
    middle = f"{challenge.nonce}:{times}:{cnonce}:auth" if challenge.qop else challenge.nonce
    shown = h(f"{name}:{challenge.realm}") if challenge.userhash else name
    quoted = {"username": shown, "realm": challenge.realm, "nonce": challenge.nonce, "uri": target}
    quoted["response"] = h(f"{secret}:{middle}:{asked}")
    plain = {}
    if challenge.algorithm is not None:
        plain["algorithm"] = challenge.algorithm
    if challenge.opaque is not None:
        quoted["opaque"] = challenge.opaque
    if challenge.qop:
        plain |= {"qop": "auth", "nc": times}
        quoted["cnonce"] = cnonce
    if challenge.userhash:
        plain["userhash"] = "true"
    parts = [f'{key}="{_escaped(text)}"' for key, text in quoted.items()] + [
        f"{key}={text}" for key, text in plain.items()
    ]
    return "Digest " + ", ".join(parts)


def find_next_nonce(header: str) -> str | None:
    """The nonce that an ``Authentication-Info`` header asks to use from now on."""
    nonce = _parameters(header[:_MAX_HEADER]).get("nextnonce")
    return None if nonce is None or _CONTROL.search(nonce) else nonce


def _split(header: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The schemes of one header with their parameters; ``Negotiate`` and the like have none."""
    position = 0
    while match := _SCHEME.match(header, position):
        begin = position = match.end()
        while parameter := _SEPARATOR.match(header, position):
            found = _PARAMETER.match(header, parameter.end())
            if found is None:
                break
            position = found.end()
        yield match[1], _parameters(header[begin:position])


def _parameters(text: str) -> dict[str, str]:
    return {
        match[1].lower(): re.sub(r"\\(.)", r"\1", match[2]) if match[2] is not None else match[3]
        for match in _PARAMETER.finditer(text)
    }


def _read(scheme: str, values: Mapping[str, str]) -> Iterator[Challenge]:
    algorithm, nonce, realm = values.get("algorithm"), values.get("nonce"), values.get("realm")
    if scheme.lower() != "digest" or nonce is None or realm is None or _hash_name(algorithm) not in _HASHES:
        return
    offered = {one.strip().lower() for one in values.get("qop", "").split(",")} - {""}
    if offered and "auth" not in offered:
        return
    if any(_CONTROL.search(text) for text in values.values()):
        return
    yield Challenge(
        realm=realm,
        nonce=nonce,
        opaque=values.get("opaque"),
        algorithm=algorithm,
        qop=bool(offered),
        stale=values.get("stale", "").lower() == "true",
        userhash=values.get("userhash", "").lower() == "true",
    )


def _hash_name(algorithm: str | None) -> str:
    return (algorithm or "MD5").upper().removesuffix("-SESS")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
