"""The cookies of one login, which stay within the origins of its source (RFC 6265; C10, X-N7, X-N10).

No list of public suffixes is needed: cookies are sent only to origins that the source names.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from searchcrawl import clock, urls
from searchcrawl.urls import DEFAULT_PORTS, Url

MAX_COOKIE_BYTES: Final = 4096
MAX_COOKIES: Final = 100
MAX_HEADER_BYTES: Final = 8192
#: The most cookies of one answer that are read.
_MAX_SET_AT_ONCE: Final = 50
_FOR_EVER: Final = datetime.max.replace(tzinfo=UTC)
_MAX_AGE_SECONDS: Final = 400 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """A cookie; ``domain`` is a host, or with ``below`` also all hosts below it.

    A cookie that came over https is sent over https only, whatever its attributes say.
    """

    name: str
    value: str = field(repr=False)
    domain: str
    below: bool
    path: str
    port: int
    https: bool
    expires: datetime = _FOR_EVER

    def goes_to(self, url: Url) -> bool:
        """Whether a request for ``url`` gets the cookie."""
        if self.https and url.scheme != "https":
            return False
        if not (_is_below(url.host, self.domain) if self.below else url.host == self.domain):
            return False
        # Stricter than browsers: another port of a host may be another server (X-N7).
        plain = {self.port, url.port} <= set(DEFAULT_PORTS.values())
        return (plain or self.port == url.port) and _covers(self.path, url.path)


class CookieJar:
    """Stores cookies for ``origins`` (``scheme://host[:port]``); other origins get none and set none.

    ``generation`` counts how often it was emptied: an answer to a request from before must not be stored.
    """

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origins)
        self._cookies: dict[tuple[str, str, str], Cookie] = {}
        self.generation = 0

    def clear(self) -> None:
        """Forgets all cookies."""
        self._cookies.clear()
        self.generation += 1

    def set(self, url: str, name: str, value: str) -> None:
        """Sets a cookie for the origin of ``url``, as if it had set it for all its paths."""
        self._store(_parse_cookie(urls.parse(url), f"{name}={value}; Path=/"))

    def store(self, url: str, headers: Iterable[str]) -> None:
        """Stores the Set-Cookie ``headers`` of the answer of ``url``; invalid cookies are ignored."""
        parsed = urls.parse(url)
        if parsed.origin not in self._origins:
            return
        for number, header in enumerate(headers):
            if number < _MAX_SET_AT_ONCE:
                self._store(_parse_cookie(parsed, header))

    def header(self, url: str) -> str:
        """The value of the Cookie header for a request of ``url``; empty if there is no cookie to send."""
        parsed = urls.parse(url)
        if not self._cookies or parsed.origin not in self._origins:
            return ""
        now = clock.now()
        due = [cookie for cookie in self._cookies.values() if cookie.expires > now and cookie.goes_to(parsed)]
        # The longest path first; sorting keeps the order in which they were set (RFC 6265 §5.4).
        texts = [f"{cookie.name}={cookie.value}" for cookie in sorted(due, key=lambda one: -len(one.path))]
        return "; ".join(_take_within(texts, MAX_HEADER_BYTES))

    def _store(self, cookie: Cookie | None) -> None:
        if cookie is None:
            return
        key = cookie.domain, cookie.path, cookie.name
        if cookie.expires <= clock.now():
            self._cookies.pop(key, None)
            return
        self._cookies[key] = cookie
        while len(self._cookies) > MAX_COOKIES:
            del self._cookies[next(iter(self._cookies))]


def _parse_cookie(url: Url, header: str) -> Cookie | None:
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
        domain=domain or url.host,
        below=bool(domain) and not _is_address(url.host),
        path=path if path.startswith("/") else _folder(url.path),
        port=url.port,
        https=https,
        expires=_parse_expiry(given),
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


def _folder(path: str) -> str:
    """The default path of a cookie (RFC 6265 §5.1.4)."""
    return path[: path.rfind("/")] or "/"


def _covers(path: str, asked: str) -> bool:
    return asked == path or asked.startswith(path if path.endswith("/") else f"{path}/")


def _take_within(texts: Sequence[str], limit: int) -> list[str]:
    """The first of ``texts`` whose total length is within ``limit``."""
    kept, size = [], 0
    for text in texts:
        size += len(text) + 2
        if size <= limit:
            kept.append(text)
    return kept
