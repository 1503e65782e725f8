"""Near copies among the hits of a query: those of a better hit are listed with it, and are no hits of their own (F6)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from searchcrawl.exceptions import ConfigurationError, UnknownSource
from searchcrawl.index.receiver import Hit, SearchAnswer, SearchIndex, SearchQuery
from searchcrawl.rules.near_copies import NearGroups
from searchcrawl.sources.loading import load_source
from searchcrawl.sources.project import Project

logger = logging.getLogger(__name__)

#: Among so many hits near copies are brought together; each hit after them is one.
_MOST_HITS: Final = 1_000
#: So many more hits than are to be shown are asked for at first, and this share of them.
_SPARE: Final = 5
_SPARE_SHARE: Final = 4

#: Whether near copies among the hits of a source are brought together.
Collapses = Callable[[str], bool]


@dataclass(slots=True)
class _Groups:
    """The hits of an answer in their groups: each shown one with its near copies."""

    collapses: Collapses
    hits: list[Hit] = field(default_factory=list)
    shown: list[Hit] = field(default_factory=list)
    near: dict[str, list[Hit]] = field(default_factory=dict)
    _by_source: dict[str, NearGroups] = field(default_factory=dict)

    def add(self, hits: Sequence[Hit]) -> None:
        """Takes the next hits, in the order of their rank."""
        for number, hit in enumerate(hits, len(self.hits)):
            self.hits.append(hit)
            source = _read(hit, "source")
            near = self._by_source.setdefault(source, NearGroups())
            first = near.add(number, _read(hit, "text_signature"))
            if first != number and self.collapses(source):
                self.near.setdefault(self.hits[first].id, []).append(hit)
            else:
                self.shown.append(hit)

    def may_have_near(self, hits: Sequence[Hit]) -> bool:
        """Whether later hits may be near copies of some of these."""
        return any(_read(hit, "text_signature") and self.collapses(_read(hit, "source")) for hit in hits)

    def list_later(self, hits: Sequence[Hit]) -> None:
        """Takes later hits of which only those count that are near copies of earlier ones."""
        for hit in hits:
            source = _read(hit, "source")
            groups = self._by_source.get(source)
            first = None if groups is None else groups.find(_read(hit, "text_signature"))
            if first is not None and self.collapses(source):
                self.near.setdefault(self.hits[first].id, []).append(hit)


class SourceOptions:
    """What the source files of a project say of near copies; each is read when one of its documents needs it."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[str, bool] = {}

    def collapses(self, source: str) -> bool:
        """Whether near copies of a source are brought together; so are those of a source whose file cannot be read."""
        if source not in self._known:
            try:
                self._known[source] = load_source(self._project, source).copies.near != "off"
            except (ConfigurationError, UnknownSource) as error:
                logger.debug("near copies of %s are brought together: %s", source, error)
                self._known[source] = True
        return self._known[source]


def search_grouped(index: SearchIndex, query: SearchQuery, collapses: Collapses) -> SearchAnswer:
    """The answer of the index to a query, with near copies listed among the ``duplicates`` of the best of them.

    What counts are the hits from the first one on, so that pages of an answer do not depend on each other. ``total`` and
    the facets count all documents. After the groups of the first _MOST_HITS hits come the others as they are: their
    places follow those of the groups, so that no hit is left out between two pages, and none is shown twice.
    """
    wanted = query.start + query.rows
    if query.rows < 1:
        return index.search(query)
    asked = min(wanted + max(_SPARE, wanted // _SPARE_SHARE), _MOST_HITS)
    while True:
        answer = index.search(replace(query, start=0, rows=asked))
        found = _Groups(collapses)
        found.add(answer.hits)
        if len(found.shown) >= wanted or len(answer.hits) < asked or asked == _MOST_HITS:
            break
        asked = min(2 * asked, _MOST_HITS)
    shown = found.shown[query.start : wanted]
    if answer.total > len(answer.hits) == asked < _MOST_HITS and found.may_have_near(shown):
        later = replace(query, start=asked, rows=_MOST_HITS - asked, facets=(), has_snippets=False)
        found.list_later(index.search(later).hits)
    hits = [_list_near(hit, found.near.get(hit.id, [])) for hit in shown]
    if len(hits) < query.rows and answer.total > _MOST_HITS:
        start = _MOST_HITS + max(query.start - len(found.shown), 0)
        hits += index.search(replace(query, start=start, rows=query.rows - len(hits), facets=())).hits
    return replace(answer, hits=hits)


def _read(hit: Hit, name: str) -> str:
    return str(hit.fields.get(name, ""))


def _list_near(hit: Hit, near: list[Hit]) -> Hit:
    """The hit with the URLs of its near copies, and of their copies, after those of its own."""
    if not near:
        return hit
    listed = [*hit.fields.get("duplicates", ())]
    for other in near:
        listed += [other.fields.get("url", ""), *other.fields.get("duplicates", ())]
    return replace(hit, fields={**hit.fields, "duplicates": list(dict.fromkeys(filter(None, listed)))})
