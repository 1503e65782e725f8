"""``search``: queries the index, and gives hits and facets the form in which the command prints them.

Near copies of a better hit are listed with it, and are no hits of their own (F6). Sources that have no file here, or none
that can be read, are known by what their crawls registered in the store (A7).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from searchcrawl.comparison.look import Finding, IndexLook
from searchcrawl.exceptions import (
    ConfigurationError,
    InvalidFile,
    StoreError,
    UnknownAttribute,
    UnknownSource,
    UnsupportedByIndex,
)
from searchcrawl.index.opening import use_index
from searchcrawl.index.query import find_other_prefixes
from searchcrawl.index.receiver import HIT_END, HIT_START, Hit, Receiver, SearchAnswer, SearchIndex, SearchQuery
from searchcrawl.index_fields import FIELDS, attribute_type, split_attribute_field
from searchcrawl.queries.search_notes import EMPTY_INDEX, Explanation, explain_nothing
from searchcrawl.rules.near_copies import NearGroups
from searchcrawl.sources.attribute_table import NamedAttributes, choose_shown_names, map_index_fields
from searchcrawl.sources.checking import guess
from searchcrawl.sources.effective import Registered, load_registered
from searchcrawl.sources.loading import list_source_names, load_source, load_sources
from searchcrawl.sources.project import Project
from searchcrawl.store.documents.comparison_table import WINDOWS
from searchcrawl.store.opening import use_store
from searchcrawl.store.runs import run_table


def read_registered(project: Project, *, without: Collection[str]) -> dict[str, Registered]:
    """What is registered of all sources but those ``without``, by name; nothing where the store is away."""
    try:
        with use_store(project) as database:
            found = database.read(run_table.find_registered)
    except (StoreError, ConfigurationError) as error:
        logger.debug("what is registered of sources cannot be read: %s", error)
        return {}
    return {name: load_registered(text) for name, text in sorted(found.items()) if name not in without}


def require_source(project: Project, name: str) -> str:
    """``name``, if a source of this name has a file, or was crawled; raises UnknownSource."""
    if name not in list_source_names(project) and name not in read_registered(project, without=()):
        raise UnknownSource(f"unknown source: {name}")
    return name


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


logger = logging.getLogger(__name__)

MOST_ROWS: Final = 1000
MOST_OFFSET: Final = 1_000_000
#: The most sources that are looked at.
_MOST_SOURCES: Final = 20
_LEAST_WINDOWS: Final = 2
_UNMARKED: Final = str.maketrans(dict.fromkeys((HIT_START, HIT_END)))
_BY_SCORE: Final = frozenset({"score", "-score"})
#: Attributes that every document may have, and that no other part of a hit shows.
_FIXED: Final = tuple(
    field.name for field in FIELDS if field.is_fixed and field.name not in {"title", "description", "last_modified"}
)


def check_page(rows: int, offset: int) -> None:
    """Raises ValueError for a number of hits, or a number of hits before them, that no index is asked for."""
    for name, number in (("rows", rows), ("offset", offset)):
        if type(number) is not int:
            raise ValueError(f"{name}: must be a whole number (got {number!r})")
    if not 0 <= rows <= MOST_ROWS:
        raise ValueError(f"rows: must be 0 to {MOST_ROWS} (got {rows})")
    if not 0 <= offset <= MOST_OFFSET:
        raise ValueError(f"offset: must be 0 to {MOST_OFFSET} (got {offset})")


def ask(project: Project, query: SearchQuery, *, language: str = "") -> dict[str, Any]:
    """The answer of a project to a query, as ``search`` gives it, with what its groups and its index explain.

    ``language`` is that of the texts for values. Raises UnknownSource besides what ``search`` raises.
    """
    if query.source is not None:
        query = replace(query, source=require_source(project, query.source))
    fields = read_known_fields(project, query)
    shown = read_shown_names(project, query, language)
    with use_index(project) as index:
        found = search(index, query, fields=fields, shown=shown, collapses=SourceOptions(project).collapses)
        of_groups = check_groups(project, query.groups)
        of_index = explain_index(project, index, query.source)
    return {**found, "notes": join_notes(found["notes"], of_groups, of_index)}


def search(
    receiver: Receiver,
    query: SearchQuery,
    *,
    fields: Mapping[str, str] | None = None,
    shown: Mapping[str, Mapping[str, str]] | None = None,
    collapses: Collapses | None = None,
) -> dict[str, Any]:
    """The answer to a query; words that were found are between HIT_START and HIT_END in the snippets.

    Of a query that finds nothing, ``notes`` say why, and ``suggestion`` is one that finds something. ``shown`` are the
    texts for values of attributes (``read_shown_names``): ``facet_names`` has those of the facets.

    ``fields`` are those of the index by the lower-case names that filters, order and facets may have
    (``map_index_fields``); without it the query has the names of the index. ``collapses`` tells of which
    sources near copies are brought together; without it of none. Raises UnknownAttribute, UnsupportedByIndex,
    IndexUnavailable, IndexMisconfigured.
    """
    if not isinstance(receiver, SearchIndex):
        raise UnsupportedByIndex(f"{type(receiver).__name__} cannot be searched")
    query = replace(query, sort=None) if query.sort in _BY_SCORE else query
    asked = query if fields is None else _translate_names(query, fields)
    answer = receiver.search(asked) if collapses is None else search_grouped(receiver, asked, collapses)
    facets = {name: dict(answer.facets.get(field, {})) for name, field in zip(query.facets, asked.facets, strict=True)}
    explanation = Explanation([])
    if answer.total == 0:
        names = {field: name for (name, _), (field, _) in zip(query.filters, asked.filters, strict=True)}
        explanation = explain_nothing(receiver, asked, names)
    return {
        "total": answer.total,
        "hits": [_shape_hit(hit) for hit in answer.hits],
        "facets": facets,
        "facet_names": {
            name: _choose_shown(counts, (shown or {}).get(name.lower(), {})) for name, counts in facets.items()
        },
        "suggestion": explanation.suggestion,
        "notes": explanation.notes,
    }


def _choose_shown(counts: Mapping[str, int], names: Mapping[str, str]) -> dict[str, str]:
    return {value: names[value] for value in counts if value in names}


def explain_index(project: Project, receiver: Receiver, source: str | None) -> list[str]:
    """Why documents may be missing in what a search finds: the index has lost them. It makes nothing fail.

    It looks at the documents of ``source``, or of all sources.
    """
    found = list[Finding | None]()
    try:
        with use_store(project) as database:
            names = [source] if source is not None else sorted(database.read(run_table.find_source_names).values())
            # All samples together cost about as much as that of one source, and a query waits for them.
            look = IndexLook(receiver, windows=max(_LEAST_WINDOWS, WINDOWS // max(len(names), 1)))
            found = [look.find(database, name) for name in names[:_MOST_SOURCES]]
    except (StoreError, ConfigurationError) as error:
        logger.debug("the index cannot be compared with the store: %s", error)
    return [finding.message for finding in found if finding is not None]


def join_notes(of_query: Sequence[str], of_groups: Sequence[str], of_index: Sequence[str]) -> list[str]:
    """All notes on an answer; that an index was lost explains that it is empty."""
    return [*(note for note in of_query if note != EMPTY_INDEX or not of_index), *of_groups, *of_index]


def _list_names(query: SearchQuery) -> list[str]:
    """The names that the filters, the order and the facets of a query have."""
    sort = [] if query.sort is None or query.sort in _BY_SCORE else [query.sort.removeprefix("-")]
    return [*(name for name, _ in query.filters), *sort, *query.facets]


def read_known_fields(project: Project, query: SearchQuery) -> dict[str, str]:
    """The index fields of the attributes that a query names; those of all sources where the query needs them.

    Raises UnknownAttribute, or the error of a source file because of which an attribute cannot be known.
    """
    names = _list_names(query)
    known = map_index_fields(())
    if all(name.lower() in known for name in names) and not find_other_prefixes(query.words):
        return known
    sources, errors = load_sources(project)
    files = [source.attributes for source in sources.values()]
    known = map_index_fields(files)
    all_known = map_index_fields([*files, *read_registered(project, without=sources).values()])
    for name in names:
        if name.lower() in known:
            continue
        of_name = [error for error in errors if error.key.lower() == f"attributes.types.{name.lower()}"]
        if of_name:
            raise InvalidFile(of_name)
        if name.lower() in all_known:
            continue
        broken = sorted({error.file for error in errors})
        unread = f" (not read, for errors in it: {', '.join(broken)})" if broken else ""
        raise UnknownAttribute(f"unknown attribute: {name}{guess(name, all_known)}{unread}")
    return all_known


def read_shown_names(project: Project, query: SearchQuery, language: str) -> dict[str, dict[str, str]]:
    """What is shown for values of the attributes whose facets a query asks for, in a language (A7)."""
    if not query.facets:
        return {}
    sources, _ = load_sources(project)
    tables: dict[str, NamedAttributes] = {
        **read_registered(project, without=sources),
        **{name: source.attributes for name, source in sources.items()},
    }
    wanted = [table for name, table in sorted(tables.items()) if query.source in {None, name}]
    return choose_shown_names(wanted, language.lower())


def check_groups(project: Project, groups: Sequence[str]) -> list[str]:
    """Notes on groups to which no source belongs."""
    if not groups:
        return []
    sources, _ = load_sources(project)
    known = {group for source in sources.values() for group in source.groups}
    if not known.issuperset(groups):
        known.update(*(each.groups for each in read_registered(project, without=sources).values()))
    return [f"no source belongs to the group {each}{guess(each, known)}" for each in groups if each not in known]


def _translate_names(query: SearchQuery, fields: Mapping[str, str]) -> SearchQuery:
    """The query with the names of index fields in place of those of attributes."""

    def find_field(name: str) -> str:
        try:
            return fields[name.lower()]
        except KeyError:
            raise UnknownAttribute(f"unknown attribute: {name}{guess(name, fields)}") from None

    sort = query.sort
    if sort is not None:
        sort = f"{'-' if sort.startswith('-') else ''}{find_field(sort.removeprefix('-'))}"
    return replace(
        query,
        attributes={name: field for name, field in fields.items() if attribute_type(field) is not None},
        filters=[(find_field(name), value) for name, value in query.filters],
        sort=sort,
        facets=[find_field(name) for name in query.facets],
    )


def remove_marks(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer with plain text in its snippets."""
    hits = [{**hit, "snippet": hit["snippet"].translate(_UNMARKED)} for hit in answer["hits"]]
    return {**answer, "hits": hits}


def _shape_hit(hit: Hit) -> dict[str, Any]:
    fields = hit.fields
    return {
        "url": fields.get("url", ""),
        "title": fields.get("title", ""),
        "snippet": hit.snippet,
        "source": fields.get("source", ""),
        "score": hit.score,
        "last_modified": fields.get("last_modified"),
        "description": fields.get("description", ""),
        "duplicates": list(fields.get("duplicates", ())),
        "attributes": _read_attributes(fields),
    }


def _read_attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a hit by their names in the source file."""
    found = {name: fields[name] for name in _FIXED if fields.get(name)}
    for name, value in fields.items():
        known = split_attribute_field(name)
        if known is not None:
            found[known[0]] = value
    return found
