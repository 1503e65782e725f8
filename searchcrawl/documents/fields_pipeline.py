"""The item pipeline that completes the fields of a page: mapped attributes, language, description (A5, A8, C9)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from scrapy.crawler import Crawler

from searchcrawl.index_fields import SUFFIXES
from searchcrawl.items import Document, Headers, Page
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
_LANGUAGE_TAG: Final = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]{1,8})*")
_MAX_DESCRIPTION_CHARS: Final = 250
_MAX_SHOWN_CHARS: Final = 100

#: The part of a text from which its language is detected.
_DETECTED_CHARS: Final = 1_500
#: A text with fewer letters is names and numbers, which are of no language.
_MIN_LETTERS: Final = 24
#: For shorter texts chardet is right more often.
_SHORT_CHARS: Final = 300

_KANA: Final = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_HANGUL: Final = re.compile("[\uac00-\ud7a3]")
_IDEOGRAPH: Final = re.compile("[\u4e00-\u9fff]")
#: The part of a text in which characters are counted to find its script.
_SCRIPT_CHARS: Final = 400
_CJK_LETTERS: Final = 8
_MIN_CJK_SHARE: Final = 0.2
_MIN_KANA_SHARE: Final = 0.1


class FieldsPipeline:
    """Completes the fields of each page from its headers and the settings of its source (``complete_page``)."""

    def __init__(self, attributes: AttributeMap | None, *, default_language: str) -> None:
        self._attributes = attributes
        self._default_language = default_language

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FieldsPipeline:
        run = stages_of(crawler).get(Run)
        return cls(run.attributes, default_language=run.source.fetch.default_language.lower())

    def process_item(self, item: object) -> object:
        if not isinstance(item, Document) or item.page is None:
            return item
        page = complete_page(item.page, item, self._attributes, default_language=self._default_language)
        return item if page is item.page else replace(item, page=page)


def complete_page(
    page: Page, document: Document, attributes: AttributeMap | None, *, default_language: str = ""
) -> Page:
    """The page with its mapped attributes, and with a language if one can be found.

    The page's own language goes before that of Content-Language, and this before the detected one. The beginning of the
    text becomes the description, if the source asks for it.
    """
    if attributes is not None:
        page = _add_attributes(page, document, attributes)
    if not page.language:
        language = _read_content_language(document.headers) or detect_language(page.text) or default_language
        page = replace(page, language=language) if language else page
    if attributes is not None and attributes.desc_fallback and not page.description and page.text:
        page = replace(page, description=_cut_beginning(page.text))
    return page


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
            if _LANGUAGE_TAG.fullmatch(tag):
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
    return replace(page, found=(), attributes=tuple(sorted(fields.items())), **filled)


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


def _read_content_language(headers: Headers) -> str:
    """The one language of Content-Language; several are the languages of the readers, not of the text."""
    values = [value for name, value in headers if name.lower() == b"content-language"]
    tag = b",".join(values).decode("latin-1").strip().replace("_", "-").lower()
    return tag if _LANGUAGE_TAG.fullmatch(tag) else ""


def _cut_beginning(text: str) -> str:
    """About 250 characters from the beginning of a text, cut between words, on one line."""
    line = " ".join(text[: 2 * _MAX_DESCRIPTION_CHARS].split())
    if len(line) <= _MAX_DESCRIPTION_CHARS:
        return line
    cut = line.rfind(" ", _MAX_DESCRIPTION_CHARS // 2, _MAX_DESCRIPTION_CHARS)
    return line[: cut if cut > 0 else _MAX_DESCRIPTION_CHARS].rstrip() + "…"


def detect_language(text: str) -> str:
    """The code of a text's language (ISO 639-1, lower case); empty where it cannot be told.

    Japanese, Korean and Chinese are told by their scripts. For the others resiliparse compares the text with
    profiles of a hundred languages, which takes about 20 µs; it is right for a few sentences. For a single sentence
    chardet, which takes ten times as long, is right more often.
    """
    head = text[:_DETECTED_CHARS]
    if not head.isascii() and (language := _detect_by_script(head[:_SCRIPT_CHARS])):
        return language
    if len(head) < _SHORT_CHARS and sum(map(str.isalpha, head)) < _MIN_LETTERS:
        return ""
    # Both libraries are loaded for the first page that does not name its language.
    if len(head) < _SHORT_CHARS:
        import chardet  # noqa: PLC0415  # heavy

        return chardet.detect(head.encode("utf-8", "replace"))["language"] or ""
    from resiliparse.parse.lang import detect_fast  # noqa: PLC0415  # heavy

    language, _ = detect_fast(head)
    return "" if language == "unknown" else language


def _detect_by_script(head: str) -> str:
    """ja, ko or zh if a good part of the text is in their characters; empty for other scripts."""
    kana, hangul, ideographs = (len(script.findall(head)) for script in (_KANA, _HANGUL, _IDEOGRAPH))
    together = kana + hangul + ideographs
    if together < _CJK_LETTERS or together < len(head) * _MIN_CJK_SHARE:
        return ""
    if hangul > kana + ideographs:
        return "ko"
    return "ja" if kana >= together * _MIN_KANA_SHARE else "zh"
