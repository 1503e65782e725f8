"""The cookies of one login, which stay within the origins of its source (RFC 6265; C10, X-N7, X-N10).

No list of public suffixes is needed: cookies are sent only to origins that the source names. Each origin has its own: what
one sets neither replaces nor deletes those of another, and none of them those that the login brought. ``http.cookiejar``
keeps one for all origins of a host, without limits on how many and how large they are, and knows no prefixes of names.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Final

from searchcrawl import clock, urls
from searchcrawl.render.login_steps import BrowserCookie
from searchcrawl.urls import ParsedUrl

MAX_COOKIE_BYTES: Final = 4096
#: Of one origin, and in one request.
MAX_COOKIES: Final = 100
#: Of all origins together, without those of the login.
MAX_COOKIES_IN_ALL: Final = 3000
#: Servers take lines of up to 8 KB, with the name of the header.
MAX_HEADER_BYTES: Final = 8000
#: The most new cookies that are taken of one answer, but for those of the login.
_MAX_ADDED_AT_ONCE: Final = 50
_FOR_EVER: Final = datetime.max.replace(tzinfo=UTC)
_SAME_SITE: Final = {"strict": "Strict", "lax": "Lax", "none": "None"}
_MAX_AGE_SECONDS: Final = 400 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """A cookie; ``domain`` is a host, or with ``below`` also all hosts below it.

    A cookie that came over https is sent over https only, whatever its attributes say. ``number`` says when its origin
    first set it, ``of_login`` whether an answer of the login did.
    """

    name: str
    value: str = field(repr=False)
    origin: str
    domain: str
    below: bool
    path: str
    port: int
    https: bool
    expires: datetime = _FOR_EVER
    http_only: bool = False
    same_site: str = ""
    of_login: bool = False
    number: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells the cookie from the others of its origin."""
        return self.domain, self.path, self.name

    def goes_to(self, url: ParsedUrl) -> bool:
        """Whether a request for ``url`` gets the cookie."""
        if self.https and url.scheme != "https":
            return False
        if not self.names_host(url.host):
            return False
        return self.is_for_port(url.port) and _covers(self.path, url.path)

    def names_host(self, host: str) -> bool:
        return _is_below(host, self.domain) if self.below else host == self.domain

    def is_for_port(self, port: int) -> bool:
        """Whether it goes to a port. Stricter than browsers: another port of a host may be another server (X-N7)."""
        return urls.is_same_port(self.port, port)


class CookieJar:
    """Stores cookies for ``origins`` (``scheme://host[:port]``); other origins get none and set none.

    ``generation`` counts how often it was emptied: an answer to a request from before must not be stored.
    """

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origins)
        #: in the order in which they were first set
        self._of_origin: dict[str, dict[tuple[str, str, str], Cookie]] = {}
        #: the same, so that a request looks only at those of its host
        self._of_domain: dict[str, dict[tuple[str, str, str, str], Cookie]] = {}
        self._not_of_login = 0
        self._numbers = count()
        self.generation = 0

    def clear(self) -> None:
        self._of_origin.clear()
        self._of_domain.clear()
        self._not_of_login = 0
        self.generation += 1

    def set(self, url: str, name: str, value: str) -> None:
        """Sets a cookie of the login for the origin of ``url``, as if it had set it for all its paths."""
        self._store(_parse_cookie(urls.parse(url), f"{name}={value}; Path=/"), of_login=True)

    def store(self, url: str, headers: Iterable[str], *, of_login: bool = False) -> None:
        """Stores the Set-Cookie ``headers`` of the answer of ``url``; invalid cookies are ignored."""
        parsed = urls.parse(url)
        if parsed.origin not in self._origins:
            return
        added = 0
        for header in headers:
            cookie = _parse_cookie(parsed, header)
            is_known = cookie is not None and cookie.key in self._of_origin.get(parsed.origin, ())
            if is_known or of_login or added < _MAX_ADDED_AT_ONCE:
                self._store(cookie, of_login=of_login)
                added += not is_known

    def take(self, cookies: Iterable[BrowserCookie]) -> None:
        """Stores what a login in a browser has set; a host that may have a cookie has it for each of its origins here."""
        for cookie in cookies:
            header = _write_cookie(cookie)
            for origin in sorted(self._origins):
                host = urls.parse(origin).host
                if _is_for(cookie, host):
                    self._store(_parse_cookie(urls.parse(f"{origin}/"), header), of_login=True)

    def header(self, url: str) -> str:
        """The value of the Cookie header for a request of ``url``; empty if there is no cookie to send."""
        parsed = urls.parse(url)
        if not self._of_domain or parsed.origin not in self._origins:
            return ""
        now = clock.now()
        due = [
            cookie
            for domain in _domains(parsed.host)
            for cookie in self._of_domain.get(domain, {}).values()
            if cookie.expires > now and cookie.goes_to(parsed)
        ]
        sent = _take_within_limits(_without_shadows(due, parsed.origin), parsed.origin)
        # RFC 6265 §5.4
        sent.sort(key=lambda one: (-len(one.path), one.number))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in sent)

    def list_for_page(self, page_url: str) -> list[BrowserCookie]:
        """The cookies for a browser that opens a page: it decides itself which of its requests get one.

        Browsers know no ports of a cookie, so a page at another port of a host has none of it.
        """
        page = urls.parse(page_url)
        now = clock.now()
        # The last one that a browser would take for the same stays.
        found = {
            cookie.key: cookie
            for of_origin in self._of_origin.values()
            for cookie in sorted(of_origin.values(), key=lambda one: (one.of_login, one.number))
            if cookie.expires > now and (cookie.is_for_port(page.port) or not cookie.names_host(page.host))
        }
        return [_build_browser_cookie(cookie) for cookie in found.values()]

    def take_of_page(self, page_url: str, cookies: Iterable[BrowserCookie]) -> None:
        """Stores what a browser has after a page of an origin of the login: cookies of its host that are new or others.

        Pages of other origins change nothing, whatever the browser has taken from their requests; none takes a cookie away.
        """
        page = urls.parse(page_url)
        if page.origin not in self._origins:
            return
        added = 0
        for cookie in cookies:
            taken = _parse_cookie(page, _write_cookie(cookie)) if _is_for(cookie, page.host) else None
            if taken is None or taken.expires <= clock.now():
                continue
            known = self._of_origin.get(page.origin, {}).get(taken.key)
            if known is not None and known.value == taken.value:
                continue
            shared = self._of_domain.get(taken.domain, {}).values()
            if known is None and any(one.key == taken.key and one.value == taken.value for one in shared):
                # It came from another origin, and went into the browser as it is.
                continue
            if known is not None or added < _MAX_ADDED_AT_ONCE:
                self._store(taken, of_login=False)
                added += known is None

    def list_pairs(self, url: str, *, of_port: bool) -> frozenset[str]:
        """The cookies of the host of ``url``, as ``name=value``: those of its port, or those of another port.

        A browser would send both.
        """
        asked = urls.parse(url)
        return frozenset(
            f"{cookie.name}={cookie.value}"
            for of_origin in self._of_origin.values()
            for cookie in of_origin.values()
            if cookie.names_host(asked.host) and cookie.is_for_port(asked.port) is of_port
        )

    def _store(self, cookie: Cookie | None, *, of_login: bool) -> None:
        if cookie is None:
            return
        known = self._of_origin.get(cookie.origin, {}).get(cookie.key)
        if cookie.expires <= clock.now():
            if known is not None:
                self._drop(known)
        elif known is not None:
            self._put(replace(cookie, of_login=of_login or known.of_login, number=known.number))
        elif self._make_room(cookie.origin, of_login=of_login):
            self._put(replace(cookie, of_login=of_login, number=next(self._numbers)))

    def _make_room(self, origin: str, *, of_login: bool) -> bool:
        """Whether an origin may set one more cookie, for which its newest one may have to go.

        The session is among those that it set first. None of another origin goes, and none of the login for a page's.
        """

        def is_full() -> bool:
            too_many = not of_login and self._not_of_login >= MAX_COOKIES_IN_ALL
            return too_many or len(self._of_origin.get(origin, ())) >= MAX_COOKIES

        if not is_full():
            return True
        now = clock.now()
        own = list(self._of_origin.get(origin, {}).values())
        for cookie in own:
            if cookie.expires <= now:
                self._drop(cookie)
        left = [cookie for cookie in own if cookie.expires > now]
        given_up = [cookie for cookie in left if not cookie.of_login] or (left if of_login else [])
        # Sessions are hidden from scripts, hardly anything else is.
        given_up.sort(key=lambda one: not one.http_only)
        while is_full() and given_up:
            self._drop(given_up.pop())
        return not is_full()

    def _put(self, cookie: Cookie) -> None:
        known = self._of_origin.setdefault(cookie.origin, {}).get(cookie.key)
        self._not_of_login += (not cookie.of_login) - (known is not None and not known.of_login)
        self._of_origin[cookie.origin][cookie.key] = cookie
        self._of_domain.setdefault(cookie.domain, {})[cookie.origin, *cookie.key] = cookie

    def _drop(self, cookie: Cookie) -> None:
        del self._of_origin[cookie.origin][cookie.key]
        del self._of_domain[cookie.domain][cookie.origin, *cookie.key]
        self._not_of_login -= not cookie.of_login


def _is_for(cookie: BrowserCookie, host: str) -> bool:
    """Whether a browser sends a cookie to a host."""
    return host == cookie.domain or (cookie.domain.startswith(".") and _is_below(host, cookie.domain[1:]))


def _write_cookie(cookie: BrowserCookie) -> str:
    """A cookie of a browser as the header that would set it."""
    parts = [f"{cookie.name}={cookie.value}", f"Path={cookie.path}"]
    if cookie.domain.startswith("."):
        parts.append(f"Domain={cookie.domain[1:]}")
    if cookie.expires is not None:
        parts.append(f"Max-Age={round(cookie.expires - clock.now().timestamp())}")
    if cookie.same_site:
        parts.append(f"SameSite={cookie.same_site}")
    return "; ".join([*parts, *["Secure"] * cookie.https, *["HttpOnly"] * cookie.http_only])


def _build_browser_cookie(cookie: Cookie) -> BrowserCookie:
    return BrowserCookie(
        name=cookie.name,
        value=cookie.value,
        domain=f".{cookie.domain}" if cookie.below else cookie.domain,
        path=cookie.path,
        expires=None if cookie.expires == _FOR_EVER else cookie.expires.timestamp(),
        https=cookie.https,
        http_only=cookie.http_only,
        same_site=cookie.same_site,
    )


def _parse_cookie(url: ParsedUrl, header: str) -> Cookie | None:
    """The cookie in a header of ``url``; None if this URL must not set it, or if it is too large."""
    pair, *attributes = header.split(";")
    name, equals, value = (part.strip() for part in pair.partition("="))
    if not equals or not name or len(pair) > MAX_COOKIE_BYTES or not pair.isprintable() or not pair.isascii():
        return None
    given = {key.strip().lower(): text.strip() for key, _, text in (one.partition("=") for one in attributes)}
    https = url.scheme == "https"
    domain = given.get("domain", "").lower().removeprefix(".")
    path = given.get("path", "")
    if ("secure" in given or name.startswith(("__Secure-", "__Host-"))) and not https:
        return None
    if name.startswith("__Host-") and (domain or path != "/"):
        return None
    if domain and not _may_set(url.host, domain):
        return None
    return Cookie(
        name=name,
        value=value,
        origin=url.origin,
        domain=domain or url.host,
        below=bool(domain) and not _is_address(url.host),
        # Its default is the folder (RFC 6265 §5.1.4).
        path=path if path.startswith("/") else url.path[: url.path.rfind("/")] or "/",
        port=url.port,
        https=https,
        expires=_parse_expiry(given),
        http_only="httponly" in given,
        same_site=_SAME_SITE.get(given.get("samesite", "").lower(), ""),
    )


def _parse_expiry(given: dict[str, str]) -> datetime:
    age = given.get("max-age", "")
    if age.removeprefix("-").isdigit() and age.isascii():
        seconds = -1 if age.startswith("-") else min(int(age[:12]), _MAX_AGE_SECONDS)
        return clock.now() + timedelta(seconds=seconds or -1)
    try:
        moment = parsedate_to_datetime(given["expires"])
    except (KeyError, ValueError, OverflowError):
        return _FOR_EVER
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _may_set(host: str, domain: str) -> bool:
    """Whether ``host`` may set cookies for all hosts of ``domain``; never for a whole top-level domain."""
    return host == domain or ("." in domain and _is_below(host, domain) and not _is_address(host))


def _is_below(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _covers(path: str, asked: str) -> bool:
    return asked == path or asked.startswith(path if path.endswith("/") else f"{path}/")


def _domains(host: str) -> Iterator[str]:
    """A host and all domains that it is below."""
    while host:
        yield host
        host = host.partition(".")[2]


def _without_shadows(due: Collection[Cookie], origin: str) -> Collection[Cookie]:
    """The cookies ``due`` at ``origin``, without others' where the login or the origin itself has one of that name."""

    def is_own(cookie: Cookie) -> bool:
        return cookie.of_login or cookie.origin == origin

    own = {cookie.name for cookie in due if is_own(cookie)}
    # The last of those that are one and the same for a browser stays.
    ranked = sorted(due, key=lambda one: (one.origin == origin, one.of_login, one.number))
    return {cookie.key: cookie for cookie in ranked if is_own(cookie) or cookie.name not in own}.values()


def _take_within_limits(cookies: Iterable[Cookie], origin: str) -> list[Cookie]:
    """Those of ``cookies`` that one request can have: first of the login, then of ``origin``, of scripts last."""
    kept: list[Cookie] = []
    size = 0
    for cookie in sorted(
        cookies, key=lambda one: (not one.of_login, one.origin != origin, not one.http_only, one.number)
    ):
        length = len(cookie.name) + len(cookie.value) + 3
        if size + length <= MAX_HEADER_BYTES and len(kept) < MAX_COOKIES:
            size += length
            kept.append(cookie)
    return kept
