"""Whether a fetched page is indexed (interface.md §1, ``[keep]``; B8–B10, C6). Pure, compiled once."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import re2

from searchcrawl import clock, urls
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError, InvalidUrl
from searchcrawl.items import Link, Page
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import ALLOWED, Decision, RuleList
from searchcrawl.rules.rewriting import Rewriting
from searchcrawl.rules.url_rules import UrlRules

_INDEXED: Final = 200
_AS_IT_IS: Final = Rewriting()
_DAY_MS: Final = 86_400_000
_WILDCARDS: Final = re.compile(r"([*?])")
#: The rule of a page that its author wants to be left out.
NOINDEX: Final = "meta robots noindex"
NO_METAS: Final = "keep.meta_robots"


class Fetched(NamedTuple):
    """What the rules ask of an answer, beside what its author asks of robots.

    ``url`` is the identity asked for, ``name`` that of the file (empty: it has none), ``size_bytes`` that of the
    decoded body, ``modified_ms`` the Last-Modified (None: not said).
    """

    url: str
    name: str
    mimetype: str
    size_bytes: int
    modified_ms: int | None
    fetched_ms: int


class KeepRules:
    """The filters of ``[keep]``; each that fails refuses, and exclude wins. Limits of 0 are none.

    MIME types and names may have the wildcards ``*`` and ``?``, without regard to case; URL rules are those of
    the boundary. The constructor raises ConfigurationError. False where nothing is filtered.
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
    ) -> None:
        self.meta_robots = meta_robots
        self._mime_types = _Wildcards(mime_types, exclude_mime_types, file, "mime_types", "exclude_mime_types")
        self._names = _Wildcards(include_names, exclude_names, file, "include_names", "exclude_names")
        self._urls = UrlRules(include=include_urls, exclude=exclude_urls, file=file, table="keep")
        self._min_bytes, self._max_bytes = min_bytes, max_bytes
        self._max_age_ms = max_age_days * _DAY_MS
        self._too_small = Decision(False, f"min_bytes = {min_bytes}", file, "keep.min_bytes")
        self._too_large = Decision(False, f"max_bytes = {max_bytes}", file, "keep.max_bytes")
        self._too_old = Decision(False, f"max_age_days = {max_age_days:g}", file, "keep.max_age_days")
        self._noindex = Decision(False, NOINDEX, file, NO_METAS)

    def __bool__(self) -> bool:
        limits = self._min_bytes or self._max_bytes or self._max_age_ms
        return bool(limits or self._mime_types or self._names or self._urls)

    @property
    def asks_for_age(self) -> bool:
        """Whether a page that does not change may be refused one day."""
        return bool(self._max_age_ms)

    @property
    def asks_for_names(self) -> bool:
        """Whether a rule is about names of files."""
        return bool(self._names)

    def refusal(self, fetched: Fetched) -> Decision | None:
        """The first filter that refuses; None where all let it pass."""
        return next(self._refusing(fetched), None)

    def refusals(self, fetched: Fetched, *, noindex: bool = False) -> list[Decision]:
        """Every rule that alone would refuse, in the order in which they are asked; ``noindex``: its author does."""
        ours = list(self._refusing(fetched))
        return [self._noindex, *ours] if noindex and self.meta_robots else ours

    def age_refusal(self, modified_ms: int | None, now_ms: int) -> Decision | None:
        """Whether a page is too old by now; one that says no Last-Modified never is."""
        if not self._max_age_ms or modified_ms is None or now_ms - modified_ms <= self._max_age_ms:
            return None
        return self._too_old

    def _refusing(self, fetched: Fetched) -> Iterator[Decision]:
        yield from _refusals(self._mime_types.find(fetched.mimetype))
        if fetched.size_bytes < self._min_bytes:
            yield self._too_small
        if 0 < self._max_bytes < fetched.size_bytes:
            yield self._too_large
        too_old = self.age_refusal(fetched.modified_ms, fetched.fetched_ms)
        if too_old is not None:
            yield too_old
        yield from _refusals(self._urls.find(urls.unescape_unreserved(fetched.url)))
        yield from _refusals(self._names.find(fetched.name))


def _refusals(found: Sequence[Decision]) -> Iterator[Decision]:
    return (decision for decision in found if not decision.allowed)


class _Wildcards(RuleList):
    """Two lists of texts with ``*`` and ``?``: what must match, and what must not."""

    __slots__ = ("_expressions",)

    def __init__(self, include: Sequence[str], exclude: Sequence[str], file: str, key: str, exclude_key: str) -> None:
        lists = (include, True, f"keep.{key}"), (exclude, False, f"keep.{exclude_key}")
        decisions = [Decision(allowed, text, file, where) for texts, allowed, where in lists for text in texts]
        super().__init__(decisions, f"keep.{key}", file)
        self._expressions = [_expression(decision.rule, file, decision.key) for decision in self.decisions]

    def find(self, text: str) -> list[Decision]:
        """All that the rules say about a MIME type or a name."""
        rules = zip(self._expressions, self.decisions, strict=True)
        return self.require_include([decision for expression, decision in rules if expression.fullmatch(text)])


def _expression(text: str, file: str, key: str) -> Any:
    """In RE2, whose time is linear whatever the number of stars."""
    if not text.strip():
        raise ConfigurationError(file, key, f"must not be empty (got {text!r})")
    pieces = _WILDCARDS.split(text.strip())
    signs = {"*": ".*", "?": "."}
    return re2.compile("(?is)" + "".join(signs.get(piece) or re2.escape(piece) for piece in pieces))


def modified_ms(last_modified: str | None) -> int | None:
    """The moment of a Last-Modified header, in ms since 1970; None without one that can be read."""
    moment = None if last_modified is None else clock.from_http_date(last_modified)
    return None if moment is None else clock.to_ms(moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """``code`` is 200 for a page that is indexed, else 953, 952 or 911; ``decision`` says why.

    With 953 ``decision`` is the boundary's (or a rewriter's) about the target of the refresh, which is
    a URL of its own where that allows it; ``target`` is the link to it.
    """

    code: int
    decision: Decision = ALLOWED
    target: Link | None = None

    @property
    def indexed(self) -> bool:
        """Whether the page goes into the index."""
        return self.code == _INDEXED


def decide(
    page: Page,
    *,
    own_urls: Collection[str],
    boundary: Boundary,
    depth: int | None = None,
    meta_robots: bool = True,
    filtered: Decision | None = None,
    file: str = "",
    rewriting: Rewriting = _AS_IT_IS,
) -> Keeping:
    """The verdict on a page that was fetched well.

    ``own_urls`` are the identities of the page itself (asked for, redirected to): a refresh to
    one of them only reloads it. ``filtered`` is the refusal of KeepRules. A refresh weighs more than noindex,
    noindex more than a filter, both more than emptiness.
    """
    target = _refresh_target(page)
    if target is not None and target not in own_urls:
        found = rewriting.named(target, next(iter(own_urls), None))
        if found.url not in own_urls:
            decision = found.decision if found.code else boundary.decide(found.url, depth)
            return Keeping(code=Code.META_REFRESH, decision=decision, target=found.link)
    if page.noindex and meta_robots:
        return Keeping(code=Code.NOT_INDEXED, decision=Decision(False, NOINDEX, file, NO_METAS))
    if filtered is not None:
        return Keeping(code=Code.NOT_INDEXED, decision=filtered)
    if not (page.text.strip() or page.title.strip() or page.description.strip()):
        return Keeping(code=Code.EMPTY, decision=Decision(False, "empty document", file))
    return Keeping(code=_INDEXED)


def _refresh_target(page: Page) -> str | None:
    """The identity a refresh leads to; what is no http(s) URL leads nowhere, and the page is content."""
    if page.refresh is None:
        return None
    try:
        return urls.resolve(page.refresh)
    except InvalidUrl:
        return None
