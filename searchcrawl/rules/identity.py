"""Which parameters do not belong to the identity of a URL (``scope.strip_parameters``; X-T2). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from searchcrawl import urls
from searchcrawl.rules.archives import split_path
from searchcrawl.urls import unescape_unreserved

#: Session and tracking names: the default of ``scope.strip_parameters``.
DEFAULT_NAMES: Final = ("jsessionid", "phpsessid", "aspsessionid*", "cfid", "cftoken", "utm_*", "gclid", "fbclid")
_ANY: Final = "[^=&;/?]*"
_SEPARATED: Final = re.compile("([&;])")


class Identity:
    """Removes parameters from URLs, in the query and in path segments (``;jsessionid=…``).

    ``names`` match whole names, without regard to case; ``*`` matches any characters. With ``routes`` a fragment that is a
    route is part of a URL (``scope.hash_routes``).
    """

    def __init__(self, names: Sequence[str] = (), *, routes: bool = False) -> None:
        self._names = tuple(names)
        self.routes = routes
        alternatives = "|".join(_build_expression(name) for name in names)
        ends = r"(?=[=&;/?]|$)"
        self._name = re.compile(alternatives, re.IGNORECASE)
        # A name may be written with escapes.
        self._suspect = re.compile(f"[?&;](?:(?:{alternatives}){ends}|[^=&;/?]*%)", re.IGNORECASE) if names else None
        self._in_path = re.compile(f";(?:{alternatives})(?:=[^;/]*)?(?=[;/]|$)", re.IGNORECASE)

    def resolve(self, text: str, base: str | None = None) -> str:
        """As ``urls.resolve``, with the routes of the source; raises InvalidUrl."""
        return urls.resolve(text, base, routes=self.routes)

    def strip(self, url: str) -> str:
        """The URL (an identity of ``urls.resolve``) without those parameters; the same URL where it has none.

        The other parameters keep their order; an empty query loses its ``?``.
        """
        if self.routes and urls.has_route(url):
            bare, route = urls.split_route(url)
            return self.strip(bare) + route
        if ("?" in url or ";" in url) and self._suspect is not None and self._suspect.search(url) is not None:
            # The path of a file in an archive is a name: it has no parameters, whatever its characters.
            outermost, path = split_path(url)
            kept = self._strip(outermost)
            # The name of the archive may be part of what is stripped.
            is_kept = not path or len(split_path(kept + path)[0]) <= len(kept)
            return kept + path if is_kept else self._strip(url)
        return url

    def find_name(self, url: str) -> str:
        """The first of the names that ``strip`` removes from a URL; empty where it removes none."""
        return next((name for name in self._names if Identity([name]).strip(url) != url), "")

    def _strip(self, url: str) -> str:
        start = url.find("/", 8)
        before, mark, query = url.partition("?")
        path = before[start:]
        if ";" in path:
            path = self._in_path.sub("", unescape_unreserved(path) if self._is_hidden_in(path) else path)
        kept = self._filter_query(query) if mark else ""
        return before[:start] + path + (mark + kept if kept or not query else "")

    def _is_hidden_in(self, path: str) -> bool:
        return "%" in path and self._in_path.search(unescape_unreserved(path)) is not None

    def _filter_query(self, query: str) -> str:
        """The query without those parameters; each other parameter keeps the separator before it."""
        pieces = _SEPARATED.split(query)
        kept = [
            separator + parameter
            for separator, parameter in zip(["", *pieces[1::2]], pieces[::2], strict=True)
            if not self._is_stripped(parameter)
        ]
        text = "".join(kept)
        # The first parameter has no separator.
        return text[1:] if text[:1] in {"&", ";"} and kept[0] else text

    def _is_stripped(self, parameter: str) -> bool:
        name = parameter.partition("=")[0]
        return bool(name) and self._name.fullmatch(unescape_unreserved(name)) is not None


def _build_expression(name: str) -> str:
    """An expression for a name with stars, in linear time.

    What stands between two stars is taken where it comes first, and is never looked for again: any later place leaves
    less for the rest.
    """
    first, *others = map(re.escape, name.split("*"))
    if not others:
        return first
    return first + "".join(f"(?>{_ANY}?{piece})" for piece in others[:-1] if piece) + _ANY + others[-1]
