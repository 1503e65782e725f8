"""The item pipelines of documents: what completes their fields, what decides which are indexed, and their digests.

Fields are mapped attributes, language and description (A5, A8, C9). What is indexed is decided before a body is read, and
after (B8–B10, C6, A4, L5). There is a digest of the body before it is read, and of the fields before they are stored (D2).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from searchcrawl import clock
from searchcrawl.access import find_access
from searchcrawl.answer_headers import find_display, list_permissions
from searchcrawl.codes import Code
from searchcrawl.documents.digests import (
    begin_body_digest,
    compute_body_digest,
    compute_copy_digest,
    compute_fields_digest,
    is_named_by_file,
)
from searchcrawl.documents.known_texts import describe_origin
from searchcrawl.documents.language import judge_languages
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.encoding import LANGUAGE_TAG, describe_reading, read_content_language
from searchcrawl.html.file_name import find_file_name
from searchcrawl.html.metas import list_robots_tags
from searchcrawl.index_fields import SUFFIXES
from searchcrawl.items import Document, Guess, Outcome, Page, copy_with
from searchcrawl.rules import index_filter
from searchcrawl.rules.attribute_values import AttributeMap, Value
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.copy_order import find_fit
from searchcrawl.rules.index_filter import FetchedFacts, IndexFilter
from searchcrawl.rules.redirects import write_target
from searchcrawl.rules.rewriting import DisplayMap, Rewriting
from searchcrawl.run import Run
from searchcrawl.sources.attribute_table import FIXED
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)


class FetchedFilterPipeline:
    """Notes the filter of ``[keep]`` that refuses a document by its type, size, age, URL or name.

    The document is not dropped: its links are followed, and it gets 952 once its page was read.
    """

    def __init__(self, rules: IndexFilter) -> None:
        self._rules = rules

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FetchedFilterPipeline:
        run = stages_of(crawler).get(Run)
        if not run.index_filter:
            raise NotConfigured
        return cls(run.index_filter)

    def process_document(self, item: Document) -> Document:
        refusal = self._rules.find_refusal(self._collect_facts(item))
        return item if refusal is None else copy_with(item, refusal=refusal.text)

    def _collect_facts(self, document: Document) -> FetchedFacts:
        """The facts for the filters; a fact that no filter of this source needs is left out."""
        rules = self._rules
        return FetchedFacts(
            url=document.claim.url,
            name=find_file_name(document.headers, document.base_url) if rules.needs_name else "",
            mimetype=document.mimetype,
            size_bytes=len(document.body),
            modified_ms=index_filter.read_last_modified(document.last_modified) if rules.depends_on_time else None,
            fetched_ms=clock.to_ms(document.fetched_at),
        )


class BodyDigestPipeline:
    """Gives each document the digest of its body, its headers and the rule that refuses it.

    With ``knows_bytes`` it has that of its body alone as well.
    """

    def __init__(
        self, attributes: AttributeMap | None, *, says_displays: bool = False, knows_bytes: bool = False
    ) -> None:
        self._attributes = attributes
        self._says_displays = says_displays
        self._knows_bytes = knows_bytes

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BodyDigestPipeline:
        run = stages_of(crawler).get(Run)
        return cls(run.attributes, says_displays=run.source.says_displays, knows_bytes=run.source.kind.is_listed)

    def process_document(self, item: Document) -> Document:
        # A page whose canonical link leads to itself is the same as one without a canonical link.
        canonical = item.canonical if item.canonical != item.claim.url else None
        begun = begin_body_digest(item.body)
        digest = compute_body_digest(
            begun,
            robots_tags=",".join(list_robots_tags(item.headers)),
            canonical=canonical or "",
            attributes=self._attributes.join_headers(item.headers) if self._attributes is not None else "",
            permissions=repr(found) if (found := list_permissions(item.headers)) else "",
            reading=describe_reading(item.body, item.headers, item.mimetype),
            display=(find_display(item.headers) or "") if self._says_displays else "",
            refusal=item.refusal,
        )
        return copy_with(item, body_digest=digest, content_digest=begun.digest() if self._knows_bytes else None)


#: Fields of a page that an attribute may fill, and what separates several values; None: only the first one is taken.
_SEPARATORS: Final[Mapping[str, str | None]] = {
    "title": None,
    "author": ", ",
    "description": None,
    "subject": ", ",
    "language": None,
}
_MAX_DESCRIPTION_CHARS: Final = 250
_MAX_SHOWN_CHARS: Final = 100


class Languages(NamedTuple):
    """What a source says about the language of a page: the one of all, that of what tells none."""

    forced: str = ""
    default: str = ""


#: Of a source that says nothing.
NO_LANGUAGES: Final = Languages()


class FieldsPipeline:
    """Completes the fields of each page from its headers and the settings of its source (``complete_page``)."""

    def __init__(
        self,
        attributes: AttributeMap | None,
        languages: Languages,
        *,
        groups: Sequence[str] = (),
        keeps_origins: bool = False,
    ) -> None:
        self._attributes = attributes
        self._languages = languages
        self._groups = tuple(sorted(groups))
        self._keeps_origins = keeps_origins

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FieldsPipeline:
        run = stages_of(crawler).get(Run)
        content, fetch = run.source.content, run.source.fetch
        languages = Languages(content.language.lower(), fetch.default_language.lower())
        # What users change of a page is no longer what its bytes say.
        keeps = run.source.kind.is_listed and not run.source.has_document_plugins
        return cls(run.attributes, languages, groups=run.source.groups, keeps_origins=keeps)

    def process_document(self, item: Document) -> Document:
        if item.page is None:
            return item
        page = complete_page(item.page, item, self._attributes, self._languages)
        if self._groups:
            # Beside the attributes, of which the digest of the document is made: after an edit it is sent again.
            page = copy_with(page, attributes=(*page.attributes, ("groups", self._groups)))
        if (access := find_access(item.headers)) is not None:
            # What it says of other documents is for those alone who may see it.
            links = tuple(link._replace(texts=()) for link in page.links)
            page = copy_with(page, access=access, links=links)
        if self._keeps_origins:
            return copy_with(item, page=page, origin=describe_origin(item, item.page, page))
        return item if page is item.page else copy_with(item, page=page)


def complete_page(
    page: Page, document: Document, attributes: AttributeMap | None, languages: Languages = NO_LANGUAGES
) -> Page:
    """The page with its mapped attributes, and with its languages if they can be found.

    The page's own language goes before that of Content-Language, and both before what its text tells, unless that is clearly
    in another one. What its host usually has is weighed against that when it is sent: it depends on other pages. The beginning
    of the text becomes the description, if the source asks for it.
    """
    if attributes is not None:
        page = _add_attributes(page, document, attributes)
    page = _add_language(page, read_content_language(document.headers), languages)
    if attributes is not None and attributes.desc_fallback and not page.description and page.text:
        page = copy_with(page, description=_cut_beginning(page.text))
    return page


def _add_language(page: Page, by_header: str, languages: Languages) -> Page:
    if languages.forced or page.is_language_given:
        return copy_with(page, language=languages.forced or page.language, parts=())
    told = judge_languages(page.text, (page.language, by_header), page.parts)
    if told.guess is None and told.languages == (page.language,) and not page.parts:
        return page
    others = told.languages[1:]
    if told.guess is None and told.languages:
        return copy_with(page, language=told.main, other_languages=others, parts=())
    guessed = (languages.default, Guess.DEFAULT) if told.guess is None else (told.main, told.guess)
    return copy_with(page, language=guessed[0], other_languages=others, guessed=guessed, parts=())


def _add_attributes(page: Page, document: Document, attributes: AttributeMap) -> Page:
    found: dict[str, Sequence[str]] = {**dict(page.found), **attributes.find_in_headers(document.headers)}
    if not found:
        return page
    values, unreadable = attributes.read(found)
    for attribute, text in unreadable:
        _report_unreadable(attributes, attribute, text, document.base_url)
    filled: dict[str, Any] = {}
    fields: dict[str, tuple[Value, ...]] = {}
    types = {each.attribute: each.type for each in attributes.mapped}
    for attribute, several in values.items():
        if attribute == "language":
            tag = str(several[0]).replace("_", "-").lower()
            if LANGUAGE_TAG.fullmatch(tag):
                filled["language"] = tag
            else:
                _report_unreadable(attributes, attribute, tag, document.base_url)
        elif attribute in _SEPARATORS:
            between = _SEPARATORS[attribute]
            filled[attribute] = str(several[0]) if between is None else between.join(map(str, several))
        elif attribute in FIXED:
            fields[attribute] = several[:1]
        else:
            fields[attribute + SUFFIXES[types[attribute]]] = several
    return copy_with(page, found=(), attributes=tuple(sorted(fields.items())), **filled)


def _report_unreadable(attributes: AttributeMap, attribute: str, text: str, url: str) -> None:
    """Counts a value that cannot be read as the type of its attribute; the first one of each attribute is logged."""
    attributes.unreadable[attribute] += 1
    if attributes.unreadable[attribute] == 1:
        kind = next(each.type for each in attributes.mapped if each.attribute == attribute)
        kind = "language tag" if attribute == "language" else kind
        logger.warning(
            "attribute %s: no %s, and left out: %r (%s); further values are only counted",
            attribute, kind, text[:_MAX_SHOWN_CHARS], url,
        )  # fmt: skip


def _cut_beginning(text: str) -> str:
    """About 250 characters from the beginning of a text, cut between words, on one line."""
    line = " ".join(text[: 2 * _MAX_DESCRIPTION_CHARS].split())
    if len(line) <= _MAX_DESCRIPTION_CHARS:
        return line
    cut = line.rfind(" ", _MAX_DESCRIPTION_CHARS // 2, _MAX_DESCRIPTION_CHARS)
    return line[: cut if cut > 0 else _MAX_DESCRIPTION_CHARS].rstrip() + "…"


class PageFilterPipeline:
    """Gives each document that was read its code, its canonical URL and its display URL.

    A meta refresh to another URL ends the visit (953).
    """

    def __init__(
        self,
        *,
        boundary: Boundary,
        rewriting: Rewriting,
        rules: IndexFilter,
        display: DisplayMap | None = None,
        says_displays: bool = False,
    ) -> None:
        self._boundary = boundary
        self._says_displays = says_displays
        self._rewriting = rewriting
        self._display = display
        self._rules = rules

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PageFilterPipeline:
        run = stages_of(crawler).get(Run)
        return cls(
            boundary=run.boundary,
            rewriting=run.rewriting,
            rules=run.index_filter,
            display=run.display,
            says_displays=run.source.says_displays,
        )

    def process_document(self, item: Document) -> Document | Outcome:
        return item if item.page is None else self._decide(item, item.page)

    def _decide(self, document: Document, page: Page) -> Document | Outcome:
        claim = document.claim
        decision = index_filter.decide(
            page,
            own_urls=(claim.url, document.base_url),
            boundary=self._boundary,
            rules=self._rules,
            depth=claim.depth,
            refusal=document.refusal,
            rewriting=self._rewriting,
        )
        code, rule, target = decision.code, decision.rule, decision.target
        if code == Code.META_REFRESH:
            links = () if target is None or rule is not None else (target,)
            error = None if target is None else write_target(target.url)
            return Outcome(claim=claim, code=code, rule=rule, error=error, links=links, redirects=document.redirects)
        # The Link header has precedence over the link element of the page. Others may see the canonical page, and would learn of
        # one that not everyone may see.
        canonical = (
            index_filter.find_canonical_link(
                *(document.canonical, page.canonical),
                own_url=claim.url,
                boundary=self._boundary,
                rewriting=self._rewriting,
            )
            if page.access is None
            else None
        )
        display_url = document.display_url
        if self._display is not None:
            said = find_display(document.headers) if self._says_displays else None
            try:
                display_url = self._display.resolve(claim.url, said or claim.display_url)
            except InvalidUrl as error:
                if code == 200:
                    code, rule = Code.INVALID_DISPLAY_URL, f"display: {error}"
        return copy_with(
            document,
            code=code,
            rule=rule,
            canonical=None if canonical is None else canonical.url,
            canonical_link=canonical,
            display_url=display_url,
        )


class FieldsDigestPipeline:
    """Gives each document that was read the digest of its fields; others keep the one of their row.

    With ``finds_copies`` documents that have the same one are copies of each other (F2).
    """

    def __init__(self, *, finds_copies: bool) -> None:
        self._finds_copies = finds_copies

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FieldsDigestPipeline:
        return cls(finds_copies=stages_of(crawler).get(Run).source.copies.scope != "off")

    def process_document(self, item: Document) -> Document:
        if item.page is not None:
            digest = compute_fields_digest(item.page, known=item.claim.fields_digest)
            copy_digest = compute_copy_digest(item.page) if self._finds_copies else None
            return copy_with(
                item, fields_digest=digest, copy_digest=copy_digest, url_fit=_find_fit(item.claim.url, item.page)
            )
        return item


def _find_fit(url: str, page: Page) -> int:
    """How the URL fits what copies have in common: a title that is the name of a file is that of each file."""
    title = "" if is_named_by_file(page) else page.title
    return find_fit(url, language=page.language, title=title, text=page.text)
