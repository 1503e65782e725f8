"""What to do with a redirect (C6). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import quote

from searchcrawl import urls
from searchcrawl.codes import PERMANENT_REDIRECTS, TEMPORARY_REDIRECTS, Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.items import Hop, Link
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import ALLOWED, Decision
from searchcrawl.rules.rewriting import NormalisedUrl, Rewriting
from searchcrawl.rules.targets import list_exclusions

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
    return _build_refusal(target, taken, exclusions[0]) if exclusions else _build_follow(target, taken)


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


def _build_follow(target: str, hops: tuple[Hop, ...]) -> Redirect:
    return Redirect(kind=RedirectKind.FOLLOW, hops=hops, url=target)


def _build_refusal(target: str, hops: tuple[Hop, ...], rule: Decision) -> Redirect:
    return Redirect(kind=RedirectKind.REFUSE, hops=hops, url=target, code=Code.OUTSIDE_BOUNDARY, decision=rule)


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
