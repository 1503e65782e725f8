"""The URLs that a project has forgotten: no source requests or indexes them any more (``forgotten.txt``). Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from searchcrawl import urls
from searchcrawl.rules.archives import MARK, list_archives
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.rewriting import DisplayMap, Identity
from searchcrawl.rules.url_rules import UrlRules

FILE: Final = "forgotten.txt"
#: The key of the decisions, and how the rule of a row begins.
KEY: Final = "forget"
#: How a line begins that is a URL rule, as in ``scope.exclude_urls``, and not one URL.
PATTERN: Final = "pattern:"
_DIGEST_BYTES: Final = 8
_NO_IDENTITY: Final = Identity()


def read_pattern(line: str) -> str | None:
    """The URL rule of a line; None where the line is one URL."""
    return line.removeprefix(PATTERN).strip() if line.startswith(PATTERN) else None


def digest(lines: Sequence[str]) -> str | None:
    """What a source remembers of the list that was applied to its rows; None for an empty list."""
    if not lines:
        return None
    text = "\n".join(sorted(set(lines)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


class Forgotten:
    """The lines of the list, as one source sees URLs: each is a URL, or ``pattern:`` and a URL rule.

    ``identity`` removes the parameters that are no part of the source's URLs, of lines and of what is asked for. With
    ``display`` a URL is forgotten with the URL that is shown for it. The constructor raises ConfigurationError for a rule that cannot be understood.
    """

    def __init__(
        self, lines: Sequence[str], *, identity: Identity = _NO_IDENTITY, display: DisplayMap | None = None
    ) -> None:
        self._named: dict[str, Decision] = {}
        patterns = []
        for line in lines:
            pattern = read_pattern(line)
            if pattern is not None:
                patterns.append(pattern)
                continue
            decision = Decision(False, line, FILE, KEY)
            # A source without routes has the page itself under that URL.
            own = line if identity.routes else urls.without_route(line)
            for form in (own, identity.strip(own)):
                self._named.setdefault(urls.unescape_unreserved(form), decision)
        self._patterns = (
            UrlRules(include=(), exclude=patterns, file=FILE, table=KEY, routes=identity.routes) if patterns else None
        )
        self._identity = identity
        self._display = display

    def list_named(self) -> list[str]:
        """All forms of the lines that are URLs: as they stand there, and as the source sees them."""
        return [*self._named, *(decision.rule for decision in self._named.values())]

    def find(self, url: str, *, in_archive: bool = False) -> Decision | None:
        """The line that names ``url``, or the URL that is shown for it, or an archive around it; None if none does.

        ``in_archive`` is as for ``list_archives``.
        """
        found = self._find_line(url)
        if found is not None or MARK not in url:
            return found
        archives = list_archives(urls.unescape_unreserved(url), in_archive=in_archive)
        lines = (self._find_line(archive) for archive in archives)
        return next((line for line in lines if line is not None), None)

    def _find_line(self, url: str) -> Decision | None:
        found = self.find_named(url) or self._find_pattern(url)
        if found is not None:
            return found
        # What is requested may have parameters that the URL of a row has not.
        identity = self._identity.strip(url)
        return self._find_pattern(identity) if identity != url else None

    def find_named(self, url: str) -> Decision | None:
        """The same among the lines that are URLs, and that name ``url`` itself."""
        url = self._identity.strip(url)
        found = self._named.get(urls.unescape_unreserved(url))
        if found is None and self._display is not None:
            found = self._named.get(urls.unescape_unreserved(self._display.show(url)))
        return found

    def _find_pattern(self, url: str) -> Decision | None:
        if self._patterns is None:
            return None
        found = self._patterns.find(urls.unescape_unreserved(url))
        if not found and self._display is not None:
            found = self._patterns.find(urls.unescape_unreserved(self._display.show(url)))
        return replace(found[0], key=KEY) if found else None
