"""``search``: queries the index, and gives hits and facets the form in which the command prints them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from searchcrawl.comparison.look import Finding, IndexLook
from searchcrawl.exceptions import ConfigurationError, InvalidFile, StoreError, UnknownAttribute, UnsupportedByIndex
from searchcrawl.index.opening import use_index
from searchcrawl.index.query import find_other_prefixes
from searchcrawl.index.receiver import HIT_END, HIT_START, Hit, Receiver, SearchIndex, SearchQuery
from searchcrawl.index_fields import FIELDS, attribute_type, split_attribute_field
from searchcrawl.queries.near_hits import Collapses, SourceOptions, search_grouped
from searchcrawl.queries.registered_sources import read_registered, require_source
from searchcrawl.queries.search_notes import EMPTY_INDEX, Explanation, explain_nothing
from searchcrawl.sources.attribute_table import NamedAttributes, choose_shown_names, map_index_fields
from searchcrawl.sources.checking import guess
from searchcrawl.sources.loading import load_sources
from searchcrawl.sources.project import Project
from searchcrawl.store.documents.comparison_table import WINDOWS
from searchcrawl.store.opening import use_store
from searchcrawl.store.runs import run_table

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
    for field, value in fields.items():
        known = split_attribute_field(field)
        if known is not None:
            found[known[0]] = value
    return found
