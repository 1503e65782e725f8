"""What the targets of redirects may be, of pages and of side requests, besides what robots.txt says (C6, L7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from searchcrawl import urls
from searchcrawl.kinds.web import WEB
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.forgotten import KEY
from searchcrawl.rules.rewriting import Rewriting

_USUAL_PORTS: Final = frozenset(WEB.ports.values())
_NO_REWRITING: Final = Rewriting()


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
