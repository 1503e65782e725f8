"""The cookies of a login on all hosts, and which of them a browser sends where (RFC 6265bis)."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.browser_laws.case import HOSTS, ORIGINS, Case, Cookie

_SAME_SITES: Final = {"unset": "", "lax": "Lax", "strict": "Strict", "none": "None"}
_LOGGED_IN: Final = ("a", "sub", "b")
#: A cookie of each kind for each host; ``None`` has to be Secure. The last is for all hosts below.
LOGIN: Final = (
    *(
        Cookie(f"{host}_{kind}", HOSTS[host], https=kind == "none", same_site=same_site)
        for host in _LOGGED_IN
        for kind, same_site in _SAME_SITES.items()
    ),
    Cookie("a_domain", ".a.test", same_site="Lax"),
)
#: Makes a case in which all of them are there.
logged_in: Final = partial(Case, cookies=LOGIN)
NOBODY: Final[tuple[str, ...]] = ()


def all_of(origin: str) -> tuple[str, ...]:
    """What a request of the same site sends to an origin."""
    scheme, host = ORIGINS[origin]
    found = [
        cookie.name
        for cookie in LOGIN
        if (cookie.domain == host or (cookie.domain.startswith(".") and host.endswith(cookie.domain.lstrip("."))))
        and (scheme == "https" or not cookie.https)
    ]
    return tuple(sorted(found))


def cross_of(origin: str) -> tuple[str, ...]:
    """What a request of another site sends to an origin, unless it is a visit of the page."""
    return tuple(name for name in all_of(origin) if name.endswith("_none"))


def who(cookies: tuple[str, ...]) -> str:
    """How an answer names those that it was asked with."""
    return "+".join(cookies) or "nobody"


def get(origin: str, path: str = "data", cookies: tuple[str, ...] = (), *, password: bool = False) -> str:
    """A request as a verdict writes it."""
    return " ".join([f"GET {origin}/{path}", *cookies, *(["+password"] if password else [])])


def ask(origin: str, path: str = "data") -> str:
    """A preflight as a verdict writes it; it has no cookies."""
    return f"OPTIONS {origin}/{path}"
