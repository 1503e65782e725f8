"""The URLs at which a source asks for the login, told from pages that differ in the query alone (C10). Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import unquote_plus

from searchcrawl import urls

#: ``/index.php`` and the like are the front page of a folder, whatever their ending.
_FRONT_NAME: Final = re.compile(r"/(?:index|default)(?:\.[A-Za-z0-9]+)?\Z", re.IGNORECASE)
#: A value of this length that has a digit is a token, which another visit would not have.
_TOKEN_CHARACTERS: Final = 20
#: The most parameters of a query that are looked at.
_MAX_PARAMETERS: Final = 100


@dataclass(frozen=True, slots=True)
class _Address:
    """A URL: without its query, and the parameters that tell its page from others there."""

    base: str
    told: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, url: str) -> Self:
        parsed = urls.parse(url)
        return cls(f"{parsed.origin}{parsed.path}", frozenset(_find_telling(parsed.query)))


class LoginPages:
    """The pages of one login: that of ``[login]``, and where its form was found at the last login, and is sent to.

    ``url in pages`` says whether a redirect to it means that nobody is logged in. One to the front page, to one of
    ``fronts`` (URLs without a query), or to where other pages were opened, does so only if the query is that of the
    login: for all others the page that answers will show.
    """

    def __init__(self, url: str | None, fronts: Collection[str] = ()) -> None:
        self._given = frozenset() if url is None else frozenset([_Address.of(url)])
        self._fronts = set(fronts)
        self._pages = self._given
        self._all = self._given

    def note(self, page_url: str, action_url: str) -> None:
        """Notes the page of the form, and where it is sent to; what was noted before is forgotten."""
        self._pages = self._given | {_Address.of(page_url)}
        self._all = self._pages | {_Address.of(action_url)}

    def note_opened(self, url: str) -> None:
        """Notes that a page was opened that is not the form."""
        if not any(url.startswith(address.base) for address in self._all):
            return
        opened = _Address.of(url)
        # A login's own page may greet those who are logged in.
        is_login = any(
            page.base == opened.base and page.told <= opened.told and (page.told or not opened.told)
            for page in self._pages
        )
        if not is_login and any(address.base == opened.base for address in self._all):
            self._fronts.add(opened.base)

    def __contains__(self, url: str) -> bool:
        asked = _Address.of(url)
        return any(self._is_at(address, asked) for address in self._all)

    def _is_at(self, address: _Address, asked: _Address) -> bool:
        if address.base != asked.base:
            return False
        if address.told and address.told <= asked.told:
            return True
        return (not address.told or not asked.told) and not self._is_front(address.base)

    def _is_front(self, base: str) -> bool:
        return base in self._fronts or (base.count("/") == 3 and base.endswith("/")) or bool(_FRONT_NAME.search(base))


def _find_telling(query: str) -> Iterator[tuple[str, str]]:
    """The parameters that may tell pages apart: no addresses to return to, and no tokens."""
    for number, part in enumerate(query.replace(";", "&").split("&", _MAX_PARAMETERS)):
        name, _, value = part.partition("=")
        value = unquote_plus(value)
        is_address = value.startswith("/") or "://" in value
        is_token = len(value) >= _TOKEN_CHARACTERS and any(character.isdigit() for character in value)
        if part and number < _MAX_PARAMETERS and not is_address and not is_token:
            yield unquote_plus(name), value
