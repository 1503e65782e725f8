"""The item pipeline that completes the fields of a page: mapped attributes, language, description (A5, A8, C9)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from scrapy.crawler import Crawler

from searchcrawl.documents.language import judge_languages
from searchcrawl.html.reading_headers import LANGUAGE_TAG, read_content_language
from searchcrawl.index_fields import SUFFIXES
from searchcrawl.items import Document, Guess, Page, copy_with
from searchcrawl.rules.attribute_values import AttributeMap, Value
from searchcrawl.run import Run
from searchcrawl.sources.attribute_table import FIXED
from searchcrawl.stages import stages_of

logger = logging.getLogger(__name__)

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

    def __init__(self, attributes: AttributeMap | None, languages: Languages, *, groups: Sequence[str] = ()) -> None:
        self._attributes = attributes
        self._languages = languages
        self._groups = tuple(sorted(groups))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FieldsPipeline:
        run = stages_of(crawler).get(Run)
        content, fetch = run.source.content, run.source.fetch
        languages = Languages(content.language.lower(), fetch.default_language.lower())
        return cls(run.attributes, languages, groups=run.source.groups)

    def process_item(self, item: object) -> object:
        if not isinstance(item, Document) or item.page is None:
            return item
        page = complete_page(item.page, item, self._attributes, self._languages)
        if self._groups:
            # Beside the attributes, of which the digest of the document is made: after an edit it is sent again.
            page = copy_with(page, attributes=(*page.attributes, ("groups", self._groups)))
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
