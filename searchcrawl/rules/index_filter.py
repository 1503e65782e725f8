"""Whether a fetched page is indexed: the table ``[keep]``, and what the page says of itself (B8–B10, C6). Pure.

A new filter needs a key of ``[keep]`` (``Keep`` in ``sources/config.py``), an argument of IndexFilter, and a line in
``_list``, or in ``decide`` if it looks into the page that was read. A filter may depend on the day: then it may refuse
a page that has not changed. Such a filter goes into ``_list_timed`` (which knows the dates of the page, and not its
URL) and into ``depends_on_time``. For pages that answer 304 it is asked by ``http/headers_middleware.py``: what it needs
besides the dates has to be passed there too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from searchcrawl import clock, urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.items import Link, Page
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.rewriting import Rewriting
from searchcrawl.rules.url_rules import NameRules, UrlRules

_INDEXED: Final = 200
_NO_REWRITING: Final = Rewriting()
_NOINDEX: Final = "meta robots noindex"
META_ROBOTS_KEY: Final = "keep.meta_robots"
#: The rule in the row of a page whose author does not want it to be indexed.
NOINDEX_RULE: Final = f"{META_ROBOTS_KEY}: {_NOINDEX}"
#: The same where only the header X-Robots-Tag says it.
HEADER_RULE: Final = f"{META_ROBOTS_KEY}: X-Robots-Tag noindex"
_EMPTY_RULE: Final = "empty document"


class FetchedFacts(NamedTuple):
    """What the filters know of an answer.

    ``url`` is the identity that was requested, ``name`` the name of the file (empty without one), ``size_bytes`` the
    size of the decoded body, ``modified_ms`` the Last-Modified (None without one).
    """

    url: str
    name: str
    mimetype: str
    size_bytes: int
    modified_ms: int | None
    fetched_ms: int


class IndexFilter:
    """The filters of ``[keep]``; each one that fails refuses, and exclude wins. A limit of 0 is no limit.

    MIME types and names may have the wildcards ``*`` and ``?``, without regard to case, or be ``re:`` and an RE2
    expression that is searched anywhere; URL rules are those of
    the boundary. The constructor raises ConfigurationError. An IndexFilter is false where nothing is filtered.
    """

    def __init__(
        self,
        *,
        mime_types: Sequence[str] = (),
        exclude_mime_types: Sequence[str] = (),
        min_bytes: int = 0,
        max_bytes: int = 0,
        max_age_days: float = 0.0,
        include_urls: Sequence[str] = (),
        exclude_urls: Sequence[str] = (),
        include_names: Sequence[str] = (),
        exclude_names: Sequence[str] = (),
        meta_robots: bool = True,
        file: str = "",
        hash_routes: bool = False,
    ) -> None:
        self.meta_robots = meta_robots
        self._mime_types = NameRules(mime_types, exclude_mime_types, file, "keep.mime_types", "keep.exclude_mime_types")
        self._names = NameRules(include_names, exclude_names, file, "keep.include_names", "keep.exclude_names")
        self._urls = UrlRules(include=include_urls, exclude=exclude_urls, file=file, table="keep", routes=hash_routes)
        self._min_bytes, self._max_bytes = min_bytes, max_bytes
        self._max_age_ms = max_age_days * clock.DAY_MS
        self._too_small = Decision(False, f"min_bytes = {min_bytes}", file, "keep.min_bytes")
        self._too_large = Decision(False, f"max_bytes = {max_bytes}", file, "keep.max_bytes")
        self._too_old = Decision(False, f"max_age_days = {max_age_days:g}", file, "keep.max_age_days")
        self._noindex = Decision(False, _NOINDEX, file, META_ROBOTS_KEY)

    def __bool__(self) -> bool:
        limits = self._min_bytes or self._max_bytes or self._max_age_ms
        return bool(limits or self._mime_types or self._names or self._urls)

    @property
    def depends_on_time(self) -> bool:
        """Whether a filter may refuse on another day a page that has not changed."""
        return bool(self._max_age_ms)

    @property
    def needs_name(self) -> bool:
        """Whether a filter looks at names of files."""
        return bool(self._names)

    def find_refusal(self, facts: FetchedFacts) -> Decision | None:
        """Returns the first filter that refuses the page; None if all accept it."""
        return next(self._list(facts), None)

    def list_refusals(self, facts: FetchedFacts, *, noindex: str = "") -> list[Decision]:
        """Lists every rule that refuses the page; ``noindex`` is what says that it may not be indexed, empty: nothing."""
        ours = list(self._list(facts))
        return [replace(self._noindex, rule=noindex), *ours] if noindex and self.meta_robots else ours

    def refuse_unchanged(self, modified_ms: int | None, now_ms: int) -> Decision | None:
        """Returns the filter that refuses, at ``now_ms``, a page that answered 304; None if all accept it."""
        return next(self._list_timed(modified_ms, now_ms), None)

    def _list(self, facts: FetchedFacts) -> Iterator[Decision]:
        yield from self._mime_types.list_refusals(facts.mimetype)
        if facts.size_bytes < self._min_bytes:
            yield self._too_small
        if 0 < self._max_bytes < facts.size_bytes:
            yield self._too_large
        yield from self._list_timed(facts.modified_ms, facts.fetched_ms)
        yield from self._urls.list_refusals(urls.unescape_unreserved(facts.url))
        yield from self._names.list_refusals(facts.name)

    def _list_timed(self, modified_ms: int | None, now_ms: int) -> Iterator[Decision]:
        # A page without a Last-Modified is never too old.
        if self._max_age_ms and modified_ms is not None and now_ms - modified_ms > self._max_age_ms:
            yield self._too_old


def read_last_modified(last_modified: str | None) -> int | None:
    """The time of a Last-Modified header, in ms since 1970; None where there is none that can be read."""
    moment = None if last_modified is None else clock.from_http_date(last_modified)
    return None if moment is None else clock.to_ms(moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDecision:
    """``code`` is 200 for a page that is indexed, else 953, 952 or 911; ``rule`` says why it is not.

    With 953 ``target`` is the link to the target of the refresh, and ``rule`` is what refuses that target (of the
    boundary or a rewriter); None where the target becomes a URL of its own.
    """

    code: int
    rule: str | None = None
    target: Link | None = None


def decide(
    page: Page,
    *,
    own_urls: Collection[str],
    boundary: Boundary,
    rules: IndexFilter,
    depth: int | None = None,
    refusal: str | None = None,
    rewriting: Rewriting = _NO_REWRITING,
) -> IndexDecision:
    """Decides on a page that was read.

    ``own_urls`` are the identities of the page itself (requested, redirected to): a refresh to
    one of them only reloads it. ``refusal`` is the rule of the IndexFilter that refused it before it was read. A refresh weighs more than
    noindex, noindex more than a filter, a filter more than emptiness.
    """
    target = _find_refresh_target(page, rewriting)
    if target is not None and target not in own_urls:
        found = rewriting.normalise(target, next(iter(own_urls), None))
        if found.url not in own_urls:
            decision = found.decision if found.code else boundary.decide(found.url, depth)
            rule = None if decision.allowed else decision.text
            return IndexDecision(code=Code.META_REFRESH, rule=rule, target=found.link)
    if page.noindex and rules.meta_robots:
        return IndexDecision(code=Code.NOT_INDEXED, rule=HEADER_RULE if page.noindex_by_header else NOINDEX_RULE)
    if refusal is not None:
        return IndexDecision(code=Code.NOT_INDEXED, rule=refusal)
    if not (page.text.strip() or page.title.strip() or page.description.strip()):
        return IndexDecision(code=Code.EMPTY, rule=_EMPTY_RULE)
    return IndexDecision(code=_INDEXED)


def _find_refresh_target(page: Page, rewriting: Rewriting) -> str | None:
    """The identity that a refresh leads to; None where it is no http(s) URL: the page is content then."""
    if page.refresh is None:
        return None
    try:
        return rewriting.identity.resolve(page.refresh)
    except InvalidUrl:
        return None


def find_canonical_link(
    *named: str | None, own_url: str, boundary: Boundary, rewriting: Rewriting = _NO_REWRITING
) -> Link | None:
    """The link to another URL that the page at ``own_url`` names as canonical: the first of ``named`` that is not None.

    It is rewritten as other links are (K1). None where it is the page itself, or outside the boundary. Whether the
    other page is good, or names this one in turn, is seen when that one was fetched (L5). Of a route only what has a route
    counts: the rest stands in the frame that all routes share.
    """
    of_route = urls.has_route(own_url)
    canonical = next((url for url in named if url is not None and (not of_route or urls.has_route(url))), None)
    if canonical is None or canonical == own_url:
        return None
    found = rewriting.normalise(canonical, own_url)
    if found.code or found.url == own_url or not boundary.decide(found.url).allowed:
        return None
    return found.link
