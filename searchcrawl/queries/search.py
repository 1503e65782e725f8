"""``search``: queries the index, and gives hits and facets the form in which the command prints them.

Near copies of a better hit are listed with it, and are no hits of their own (F6). Sources that have no file here, or none
that can be read, are known by what their crawls registered in the store (A7).
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
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
from searchcrawl.index.characters import CJK_RUN
from searchcrawl.index.forms import MAX_WORD_BYTES, is_in_no_index
from searchcrawl.index.opening import use_index
from searchcrawl.index.query import (
    PREFIXES,
    AllOf,
    AnyOf,
    Clause,
    Everything,
    Nothing,
    Query,
    Range,
    Term,
    find_other_prefixes,
    is_alias,
    parse,
    to_words,
)
from searchcrawl.index.receiver import (
    HIT_END,
    HIT_START,
    Receiver,
    SearchAnswer,
    SearchHit,
    SearchIndex,
    SearchQuery,
    SpellingIndex,
    hides_documents,
)
from searchcrawl.index_fields import FIELDS, attribute_type, split_attribute_field
from searchcrawl.rules.near_copies import NearGroups
from searchcrawl.sources.attribute_table import Attributes, Registered, choose_shown_names, map_index_fields
from searchcrawl.sources.checking import guess
from searchcrawl.sources.effective import load_registered
from searchcrawl.sources.loading import list_source_names, load_source, load_sources
from searchcrawl.sources.principals import SearchUser, find_principals
from searchcrawl.sources.project import FILE, Project
from searchcrawl.store.documents.comparison_table import WINDOWS
from searchcrawl.store.opening import use_store
from searchcrawl.store.runs import run_table

#: Among so many hits near copies are brought together; each hit after them is one.
_MOST_HITS: Final = 1_000
#: So many more hits than are to be shown are asked for at first, and this share of them.
_SPARE: Final = 5
_SPARE_SHARE: Final = 4
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
#: The note on an index without documents; that it was lost says more.
_EMPTY_INDEX: Final = "the index has no documents"
#: So many words are looked for alone.
_MOST_WORDS: Final = 10
_MOST_CHARS: Final = 300
_LEAST_SPELLED_CHARS: Final = 4
#: So many words are looked for among what a user may see.
_MOST_SPELLINGS: Final = 5
#: The least similarity of a word to the one that is suggested for it, as difflib counts it.
_LEAST_SIMILARITY: Final = 0.7

logger = logging.getLogger(__name__)

#: Whether near copies among the hits of a source are brought together.
Collapses = Callable[[str], bool]


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


@dataclass(slots=True)
class _Groups:
    """The hits of an answer in their groups: each shown one with its near copies."""

    collapses: Collapses
    hits: list[SearchHit] = field(default_factory=list)
    shown: list[SearchHit] = field(default_factory=list)
    near: dict[str, list[SearchHit]] = field(default_factory=dict)
    _by_source: dict[str, NearGroups] = field(default_factory=dict)

    def add(self, hits: Sequence[SearchHit]) -> None:
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

    def may_have_near(self, hits: Sequence[SearchHit]) -> bool:
        """Whether later hits may be near copies of some of these."""
        return any(_read(hit, "text_signature") and self.collapses(_read(hit, "source")) for hit in hits)

    def list_later(self, hits: Sequence[SearchHit]) -> None:
        """Takes later hits of which only those count that are near copies of earlier ones."""
        for hit in hits:
            source = _read(hit, "source")
            groups = self._by_source.get(source)
            first = None if groups is None else groups.find(_read(hit, "text_signature"))
            if first is not None and self.collapses(source):
                self.near.setdefault(self.hits[first].id, []).append(hit)


def read_collapses(project: Project) -> Collapses:
    """What the source files of a project say of near copies; each is read when one of its documents needs it."""

    @cache
    def collapses(source: str) -> bool:
        try:
            return load_source(project, source).copies.near != "off"
        except (ConfigurationError, UnknownSource) as error:
            # So are those of a source whose file cannot be read.
            logger.debug("near copies of %s are brought together: %s", source, error)
            return True

    return collapses


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


def _read(hit: SearchHit, name: str) -> str:
    return str(hit.fields.get(name, ""))


def _list_near(hit: SearchHit, near: list[SearchHit]) -> SearchHit:
    """The hit with the URLs of its near copies, and of their copies, after those of its own."""
    if not near:
        return hit
    listed = [*hit.fields.get("duplicates", ())]
    for other in near:
        listed += [other.fields.get("url", ""), *other.fields.get("duplicates", ())]
    return replace(hit, fields={**hit.fields, "duplicates": list(dict.fromkeys(filter(None, listed)))})


def check_page(rows: int, offset: int) -> None:
    """Raises ValueError for a number of hits, or a number of hits before them, that no index is asked for."""
    for name, number in (("rows", rows), ("offset", offset)):
        if type(number) is not int:
            raise ValueError(f"{name}: must be a whole number (got {number!r})")
    if not 0 <= rows <= MOST_ROWS:
        raise ValueError(f"rows: must be 0 to {MOST_ROWS} (got {rows})")
    if not 0 <= offset <= MOST_OFFSET:
        raise ValueError(f"offset: must be 0 to {MOST_OFFSET} (got {offset})")


def ask(project: Project, query: SearchQuery, *, language: str = "", user: SearchUser | None = None) -> dict[str, Any]:
    """The answer of a project to a query, as ``search`` gives it, with what its groups and its index explain.

    ``language`` is that of the texts for values. It has what ``user`` may see; None: all. Raises UnknownSource besides what
    ``search`` raises, and ConfigurationError where there must be a user, or nobody knows what groups he is in.
    """
    if user is not None:
        query = replace(query, principals=find_principals(project, user))
    elif project.require_user:
        raise ConfigurationError(
            FILE, "require_user", "a search must say as which user it is made: search --as-user NAME"
        )
    if query.source is not None:
        query = replace(query, source=require_source(project, query.source))
    fields = read_known_fields(project, query)
    shown = read_shown_names(project, query, language)
    with use_index(project) as index:
        found = search(index, query, fields=fields, shown=shown, collapses=read_collapses(project))
        of_groups = check_groups(project, query.groups)
        # It names sources, and counts documents that are not for everyone.
        of_index = explain_index(project, index, query.source) if user is None else []
    # That an index was lost explains that it is empty.
    of_query = [note for note in found["notes"] if note != _EMPTY_INDEX or not of_index]
    return {**found, "notes": [*of_query, *of_groups, *of_index]}


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
    if query.principals is not None and not hides_documents(receiver):
        raise UnsupportedByIndex(f"{type(receiver).__name__} cannot be searched as a user: it hides nothing")
    query = replace(query, sort=None) if query.sort in _BY_SCORE else query
    asked = query if fields is None else _translate_names(query, fields)
    answer = receiver.search(asked) if collapses is None else search_grouped(receiver, asked, collapses)
    facets = {name: dict(answer.facets.get(field, {})) for name, field in zip(query.facets, asked.facets, strict=True)}
    texts = {name: (shown or {}).get(name.lower(), {}) for name in facets}
    facet_names = {
        name: {value: texts[name][value] for value in counts if value in texts[name]} for name, counts in facets.items()
    }
    notes, suggestion = list[str](), None
    if answer.total == 0:
        names = {field: name for (name, _), (field, _) in zip(query.filters, asked.filters, strict=True)}
        notes, suggestion = _explain_nothing(receiver, asked, names)
    return {
        "total": answer.total,
        "hits": [_shape_hit(hit) for hit in answer.hits],
        "facets": facets,
        "facet_names": facet_names,
        "suggestion": suggestion,
        # A note on a very long query is cut.
        "notes": [f"{note[:_MOST_CHARS]}…" if len(note) > _MOST_CHARS else note for note in notes],
    }


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


def read_known_fields(project: Project, query: SearchQuery) -> dict[str, str]:
    """The index fields of the attributes that a query names; those of all sources where the query needs them.

    Raises UnknownAttribute, or the error of a source file because of which an attribute cannot be known.
    """
    sort = [] if query.sort is None or query.sort in _BY_SCORE else [query.sort.removeprefix("-")]
    names = [*(name for name, _ in query.filters), *sort, *query.facets]
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
    tables: dict[str, Attributes | Registered] = {
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


def _shape_hit(hit: SearchHit) -> dict[str, Any]:
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


def _explain_nothing(index: SearchIndex, query: SearchQuery, names: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Why a query in the names of the index found nothing, and a query that finds something; it asks the index a few times.

    ``names`` are those of the fields of filters, as they were typed.
    """
    asked = parse(query.words, query.attributes)
    notes = list(_read_faults(asked, query))
    # Whether there is anything in it that a document may have.
    has_words = any(not _is_stop_word(each) and not _is_faulty(each) for each in _read_leaves(asked))
    if isinstance(asked, Nothing) or (notes and not has_words):
        return notes or ["there is no word to look for"], None

    plain = replace(query, rows=0, start=0, facets=(), sort=None)
    everywhere = replace(plain, source=None, groups=(), filters=())

    def count(words: str) -> int:
        return index.search(replace(plain, words=words)).total

    limits = list(_show_limits(query, names))
    if count("*") == 0:
        reason = f"there is no document with {' and '.join(limits)}" if limits else _EMPTY_INDEX
        if query.principals is not None:
            reason = f"the user may see no document{' with ' if limits else ''}{' and '.join(limits)}"
        return [*notes, reason], None
    missing = [each for each in _required(asked) if count(to_words(each)) == 0]
    missing = [each for each in missing if not _is_faulty(each)]
    for each in missing:
        elsewhere = limits and index.search(replace(everywhere, words=to_words(each))).total
        where = f", with {' and '.join(limits)}" if elsewhere else ""
        notes.append(f"no document has {to_words(each)}{where}")
    if not missing and not notes:
        notes.append("no document has all of this, although each part alone is found")
    return notes, _suggest(index, query, asked, missing, count)


def _read_faults(asked: Query, query: SearchQuery) -> Iterator[str]:
    """What is wrong with a query itself."""
    leaves = list(dict.fromkeys(_read_leaves(asked)))
    words = [each for each in leaves if isinstance(each, Term)]
    parts = [part for each in words for part in re.findall(r"[^\W_]+", CJK_RUN.sub(" ", each.text))]
    long = [part for part in parts if len(part.encode()) > MAX_WORD_BYTES]
    if long:
        yield f"no index has words of more than {MAX_WORD_BYTES} bytes"
    if words and all(map(_is_stop_word, leaves)) and not long:
        yield f"only stop words, which are in no index: {', '.join(dict.fromkeys(each.text for each in words))}"
    for each in leaves:
        if isinstance(each, Range) and each.fault:
            yield f"{each.name or each.field}: {each.fault}"
    known = {*PREFIXES, *query.attributes}
    for prefix in sorted(find_other_prefixes(query.words) - query.attributes.keys()):
        typed = [
            each.text.lower().removeprefix(f"{prefix}:") for each in words if each.text.lower().startswith(f"{prefix}:")
        ]
        # What is before :// is no field, but the beginning of a URL.
        if not is_alias(prefix) and any(not each.startswith("//") for each in typed):
            yield f"unknown field: {prefix}{guess(prefix, sorted(known))}; it was looked for as text"


def _read_leaves(asked: Query) -> Iterator[Query]:
    """The words and ranges of a query that are not excluded, in their order, also those on both sides of an OR."""
    match asked:
        case AnyOf(clauses=clauses) | AllOf(required=clauses):
            for each in clauses:
                yield from _read_leaves(each)
        case _:
            yield asked


def _is_stop_word(clause: Query) -> bool:
    """Whether it is a word that is in no index; a beginning may be that of other words, the name of a source is one."""
    return isinstance(clause, Term) and not clause.prefix and clause.field != "source" and is_in_no_index(clause.text)


def _is_faulty(clause: Query) -> bool:
    return isinstance(clause, Range) and bool(clause.fault)


def _required(asked: Query) -> list[Clause]:
    """The parts of a query that a document must all have; at most _MOST_WORDS."""
    parts: Sequence[Clause] = (
        asked.required if isinstance(asked, AllOf) else () if isinstance(asked, Nothing) else (asked,)
    )
    found: list[Clause] = [each for each in parts if not isinstance(each, Everything)]
    return [each for each in found if not _is_stop_word(each)][:_MOST_WORDS]


def _show_limits(query: SearchQuery, names: Mapping[str, str]) -> Iterator[str]:
    """What a query is limited to besides its words."""
    if query.source is not None:
        yield f"source {query.source}"
    if query.groups:
        yield f"group {' or '.join(query.groups)}"
    yield from (f"{names.get(field, field)} {value}" for field, value in query.filters)


def _suggest(
    index: SearchIndex, query: SearchQuery, asked: Query, missing: list[Clause], count: Callable[[str], int]
) -> str | None:
    """The query with the words that no document has spelled as in the index, or without them; None if it finds nothing."""
    if not missing:
        return None
    required = _required(asked)
    spelled = [_spell(index, query, each, count) if each in missing else each for each in required]
    excluded = asked.excluded if isinstance(asked, AllOf) else ()
    for parts in (spelled, [each for each in required if each not in missing]):
        kept = tuple(each for each in parts if each is not None and not _is_faulty(each))
        words = to_words(AllOf(required=kept, excluded=excluded))
        if kept and count(words):
            return words
    return None


def _spell(index: SearchIndex, query: SearchQuery, clause: Clause, count: Callable[[str], int]) -> Term | None:
    """The word as it is spelled in the index, a URL as one of a document; None if there is none like it.

    A user gets no word of documents that he may not see.
    """
    if isinstance(clause, Term) and clause.field is None and "://" in clause.text:
        return replace(clause, field="url")
    if not isinstance(clause, Term) or clause.phrase or clause.prefix or not isinstance(index, SpellingIndex):
        return None
    if len(clause.text) < _LEAST_SPELLED_CHARS or not clause.text.isalnum():
        return None
    word = clause.text.lower()
    known, most = index.find_spellings(word, query.principals), 1 if query.principals is None else _MOST_SPELLINGS
    close = difflib.get_close_matches(word, known, n=most, cutoff=_LEAST_SIMILARITY)
    found = (replace(clause, text=text) for text in close)
    return next((term for term in found if query.principals is None or count(to_words(term))), None)
