"""Which parameters are no part of a URL's identity (interface.md §1, ``scope.strip_parameters``; X-T2). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from searchcrawl.urls import unescape_unreserved

#: Session and tracking names: the default of ``scope.strip_parameters``.
DEFAULT_NAMES: Final = ("jsessionid", "phpsessid", "aspsessionid*", "cfid", "cftoken", "utm_*", "gclid", "fbclid")
_ANY: Final = "[^=&;/?]*"
_SEPARATED: Final = re.compile("([&;])")


class Identity:
    """Takes parameters out of URLs, from the query and from path segments (``;jsessionid=…``).

    ``names`` are compared whole and without regard to case; ``*`` stands for any characters.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = tuple(names)
        alternatives = "|".join(_expression(name) for name in names)
        ends = r"(?=[=&;/?]|$)"
        self._name = re.compile(alternatives, re.IGNORECASE)
        # An escape may hide a name.
        self._suspect = re.compile(f"[?&;](?:(?:{alternatives}){ends}|[^=&;/?]*%)", re.IGNORECASE) if names else None
        self._in_path = re.compile(f";(?:{alternatives})(?:=[^;/]*)?(?=[;/]|$)", re.IGNORECASE)

    def of(self, url: str) -> str:
        """The identity of a URL (one of ``urls.resolve``); itself where nothing is stripped.

        The order of what stays is kept; a query that becomes empty loses its ``?``.
        """
        if ("?" in url or ";" in url) and self._suspect is not None and self._suspect.search(url) is not None:
            return self._stripped(url)
        return url

    def rule(self, url: str) -> str:
        """The first of the names that ``of`` strips from a URL; empty where it strips none."""
        return next((name for name in self._names if Identity([name]).of(url) != url), "")

    def _stripped(self, url: str) -> str:
        start = url.find("/", 8)
        before, mark, query = url.partition("?")
        path = before[start:]
        if ";" in path:
            path = self._in_path.sub("", unescape_unreserved(path) if self._hides_in(path) else path)
        kept = self._kept(query) if mark else ""
        return before[:start] + path + (mark + kept if kept or not query else "")

    def _hides_in(self, path: str) -> bool:
        return "%" in path and self._in_path.search(unescape_unreserved(path)) is not None

    def _kept(self, query: str) -> str:
        """The query without what is stripped; each parameter that stays keeps the separator before it."""
        pieces = _SEPARATED.split(query)
        kept = [
            separator + parameter
            for separator, parameter in zip(["", *pieces[1::2]], pieces[::2], strict=True)
            if not self._is_stripped(parameter)
        ]
        text = "".join(kept)
        # What comes first has no separator.
        return text[1:] if text[:1] in {"&", ";"} and kept[0] else text

    def _is_stripped(self, parameter: str) -> bool:
        name = parameter.partition("=")[0]
        return bool(name) and self._name.fullmatch(unescape_unreserved(name)) is not None


def _expression(name: str) -> str:
    return _ANY.join(re.escape(piece) for piece in name.split("*"))
