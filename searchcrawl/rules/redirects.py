"""What to do with a redirect, what its target may be besides what robots.txt says, and what is sent there (C6, L7, X-N7). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import quote

from searchcrawl import urls
from searchcrawl.codes import PERMANENT_REDIRECTS, TEMPORARY_REDIRECTS, Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.items import Hop, Link
from searchcrawl.kind import WEB
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import ALLOWED, Decision
from searchcrawl.rules.forgotten import KEY
from searchcrawl.rules.rewriting import NormalisedUrl, Rewriting

_LEADS_TO: Final = "leads to "
_MAX_NOTED_CHARACTERS: Final = 8192
_NO_REWRITING: Final = Rewriting()
_BLANK: Final = b" \t\r\n\x0b\x0c"


class RedirectKind(Enum):
    """What to do with an answer."""

    #: the answer is no redirect, or one that is not followed: the answer itself counts
    NONE = "none"
    #: request ``url`` next, for the same row, on whatever host it is
    FOLLOW = "follow"
    #: the row gets ``code`` 954; where ``decision`` allows it, ``url`` gets a row of its own, by ``link``
    MOVE = "move"
    #: ``url`` is not requested: the row gets ``code`` 955, and ``decision`` is the exclude rule
    REFUSE = "refuse"
    #: the row gets ``code`` 963 or 1003, and ``error`` as its reason
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """The decision on an answer; ``hops`` are the redirects that were followed, with this one where it is to be."""

    kind: RedirectKind
    hops: tuple[Hop, ...]
    url: str | None = None
    link: Link | None = None
    code: int | None = None
    decision: Decision = ALLOWED
    error: str | None = None


def decide(
    status: int,
    locations: Sequence[bytes],
    *,
    base_url: str,
    boundary: Boundary,
    hops: tuple[Hop, ...] = (),
    max_redirects: int = 10,
    depth: int | None = None,
    rewriting: Rewriting = _NO_REWRITING,
    own_url: str | None = None,
    keeps_cookies: bool = False,
) -> Redirect:
    """Decides on the answer ``status`` of ``base_url``; ``locations`` are all its Location headers.

    302, 303 and 307 are followed up to ``max_redirects`` times, also to hosts that no rule includes, but not to what an
    exclude rule names, as it is requested or as ``rewriting`` would call its row. The target of 301 and 308 is checked
    against the boundary, at the row's own ``depth``. A URL that comes a second time is a loop, whatever the statuses; with
    ``keeps_cookies`` a third time: a server that set a cookie leads back, and now gets it. Other statuses are no redirects.
    ``own_url`` is that of the row (default: ``base_url``): a page that moved for good to itself, with parameters
    that are no part of its identity, is requested with them.
    """
    if status not in TEMPORARY_REDIRECTS and status not in PERMANENT_REDIRECTS:
        return Redirect(kind=RedirectKind.NONE, hops=hops)
    try:
        target = _resolve_target(locations, base_url, routes=rewriting.identity.routes)
    except InvalidUrl as error:
        return Redirect(kind=RedirectKind.FAIL, hops=hops, code=Code.NO_LOCATION, error=str(error))
    if [base_url, *(hop.url for hop in hops)].count(target) > int(keeps_cookies):
        return _build_loop(target, hops)
    taken = (*hops, Hop(base_url, status))
    own_url = own_url or base_url
    if status in PERMANENT_REDIRECTS and rewriting.identity.strip(target) != own_url:
        return _build_move(rewriting.normalise(target, own_url), own_url, taken, boundary, depth)
    if len(taken) > max_redirects:
        return _build_loop(target, hops, error=f"more than {max_redirects} redirects")
    # A permanent one leads to the row's own URL, which is inside.
    is_own = status in PERMANENT_REDIRECTS
    exclusions = [] if is_own else list_exclusions(target, boundary, rewriting, own_url)
    if not exclusions:
        return Redirect(kind=RedirectKind.FOLLOW, hops=taken, url=target)
    rule = exclusions[0]
    return Redirect(kind=RedirectKind.REFUSE, hops=taken, url=target, code=Code.OUTSIDE_BOUNDARY, decision=rule)


def write_target(target: str) -> str | None:
    """The error of a row whose redirect or refresh (953, 954) leads to ``target``; None if that is too long."""
    return f"{_LEADS_TO}{target}" if len(target) <= _MAX_NOTED_CHARACTERS else None


def read_target(error: str | None) -> str | None:
    """The target in an error that ``write_target`` made; None for other errors."""
    return error.removeprefix(_LEADS_TO) if error is not None and error.startswith(_LEADS_TO) else None


def _build_move(
    found: NormalisedUrl, own_url: str, hops: tuple[Hop, ...], boundary: Boundary, depth: int | None
) -> Redirect:
    if found.url == own_url:
        return _build_loop(found.url, hops[:-1])
    decision = found.decision if found.code else boundary.decide(found.url, depth)
    link = found.link if decision.allowed else None
    return Redirect(kind=RedirectKind.MOVE, hops=hops, url=found.url, link=link, code=Code.MOVED, decision=decision)


def _build_loop(target: str, hops: tuple[Hop, ...], *, error: str = "") -> Redirect:
    error = error or f"redirect loop at {target}"
    return Redirect(kind=RedirectKind.FAIL, hops=hops, url=target, code=Code.REDIRECT_LOOP, error=error)


def _resolve_target(locations: Sequence[bytes], base_url: str, *, routes: bool) -> str:
    """The identity on which all Location headers agree; raises InvalidUrl.

    With ``routes`` a Location without a fragment keeps that of the URL that was asked for (RFC 9110 §10.2.2).
    """
    texts = [_decode_location(location) for location in locations if location.strip(_BLANK)]
    if not texts:
        raise InvalidUrl("redirect without a Location" if not locations else "redirect with a blank Location")
    route = urls.split_route(base_url)[1] if routes else ""
    targets = {urls.resolve(text if "#" in text else f"{text}{route}", base_url, routes=routes) for text in texts}
    if len(targets) > 1:
        raise InvalidUrl(f"redirect with {len(targets)} different Locations")
    return targets.pop()


def _decode_location(location: bytes) -> str:
    """The header as text; bytes that are not UTF-8 are escaped, so that the server gets the same bytes again."""
    stripped = location.strip(_BLANK)
    try:
        return stripped.decode("utf-8")
    except UnicodeDecodeError:
        return quote(stripped, safe="!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ \t")


class OwnOrigins:
    """Which ``origins`` get ``fetch.headers`` and the client certificate: those of ``starts`` and of ``fetch.headers_to``.

    If all start URLs are https, an origin of ``headers_to`` that is not gets nothing: it is in ``refused``.
    """

    def __init__(self, starts: Iterable[str], headers_to: Iterable[str] = ()) -> None:
        at_start = {urls.parse(url).origin for url in starts}
        further = {urls.parse(url).origin for url in headers_to} - at_start
        any_plain = any(origin.startswith("http:") for origin in at_start)
        self.refused = frozenset() if any_plain else frozenset(one for one in further if one.startswith("http:"))
        self.origins = at_start | (further - self.refused)

    def has(self, url: str, *, from_https: bool = False) -> bool:
        """Whether a request for ``url`` gets them; ``from_https`` if a redirect of an https URL has led there."""
        return urls.parse(url).origin in self.origins and not (from_https and url.startswith("http:"))


_USUAL_PORTS: Final = frozenset(WEB.ports.values())


def list_exclusions(url: str, boundary: Boundary, rewriting: Rewriting, referrer: str | None = None) -> list[Decision]:
    """Lists the exclude rules that name ``url``, as it is requested, or as its row would be called.

    A tracking parameter is no way past a rule: the page behind it is the same.
    """
    found = boundary.list_exclusions(url)
    identity = rewriting.normalise(url, referrer).url
    if identity == url:
        return found
    return [*found, *(rule for rule in boundary.list_exclusions(identity) if rule not in found)]


class TargetRules:
    """The rules about targets of one source; pure.

    A redirect may lead to hosts that no rule includes, but not to what an exclude rule names. There, addresses of
    ``fetch.private_networks`` are reached on ports 80 and 443, and on those of ``starts``, only. ``named`` are URLs
    of the source file, such as ``login.url``: side requests to their origins are as good as inside. ``rewriting`` makes
    the URLs of rows.
    """

    def __init__(
        self,
        boundary: Boundary,
        *,
        starts: Iterable[str] = (),
        named: Iterable[str] = (),
        rewriting: Rewriting = _NO_REWRITING,
    ) -> None:
        self._boundary = boundary
        self._rewriting = rewriting
        self._ports = _USUAL_PORTS | {urls.parse(url).port for url in starts}
        self._named = frozenset(urls.origin_of(url) for url in named)

    def list_exclusions(self, url: str) -> list[Decision]:
        """Lists the exclude rules that name ``url``, as it is requested, or as its row would be called."""
        return list_exclusions(url, self._boundary, self._rewriting)

    def find_forgotten(self, url: str) -> Decision | None:
        """The line of ``forgotten.txt`` that names ``url``, as it is requested, or as its row would be called."""
        return next((rule for rule in self.list_exclusions(url) if rule.key == KEY), None)

    def refuse(self, url: str, first_url: str) -> Decision | None:
        """The exclude rule that forbids a redirect from ``first_url`` to ``url``; None if none does.

        A rule that names ``first_url`` as well does not count: the source asks for that one in spite of it, as for the
        page of a login, or a robots.txt.
        """
        exclusions = self.list_exclusions(url)
        if not exclusions:
            return None
        exempt = self.list_exclusions(first_url)
        return next((rule for rule in exclusions if rule not in exempt), None)

    def is_public_only(self, url: str) -> bool:
        """Whether the target of a page's redirect must have a public address."""
        return self._has_other_port(url) and not self._boundary.decide(url).allowed

    def is_side_public_only(self, url: str) -> bool:
        """Whether a side request, or the target of its redirect, must have a public address."""
        return (
            self._has_other_port(url)
            and urls.origin_of(url) not in self._named
            and not self._boundary.includes_origin(url)
        )

    def _has_other_port(self, url: str) -> bool:
        return urls.parse(url).port not in self._ports
