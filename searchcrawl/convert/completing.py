"""What a page still lacks when it was read: mapped attributes, its language, a description (A5, A8, D5)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from searchcrawl.convert.language import detect_language
from searchcrawl.index_fields import SUFFIXES
from searchcrawl.items import Document, Page
from searchcrawl.rules.attribute_values import AttributeMap, Value
from searchcrawl.run import Run
from searchcrawl.sources.attribute_table import FIXED

logger = logging.getLogger(__name__)

#: Fields of a page that an attribute may fill, and what stands between several values; None: the first one only.
_FILLED: Final[Mapping[str, str | None]] = {
    "title": None,
    "author": ", ",
    "description": None,
    "subject": ", ",
    "language": None,
}
_LANGUAGE_TAG: Final = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]{1,8})*")
_MAX_DESCRIPTION_CHARS: Final = 250
_MAX_SHOWN_CHARS: Final = 100


def completed(page: Page, document: Document, run: Run) -> Page:
    """The page with all that its source says of attributes, and with a language where one can be told."""
    attributes = run.attributes
    if attributes is not None:
        page = _with_attributes(page, document, attributes)
    if not page.language:
        declared = _declared(document.headers)
        language = declared or detect_language(page.text) or run.source.fetch.default_language.lower()
        page = replace(page, language=language) if language else page
    if attributes is not None and attributes.desc_fallback and not page.description and page.text:
        page = replace(page, description=_beginning(page.text))
    return page


def _with_attributes(page: Page, document: Document, attributes: AttributeMap) -> Page:
    found: dict[str, Sequence[str]] = {**dict(page.found), **attributes.in_headers(document.headers)}
    if not found:
        return page
    values, unreadable = attributes.read(found)
    for attribute, text in unreadable:
        _note(attributes, attribute, text, document.base_url)
    filled: dict[str, Any] = {}
    fields: dict[str, tuple[Value, ...]] = {}
    types = {each.attribute: each.type for each in attributes.mapped}
    for attribute, several in values.items():
        if attribute == "language":
            tag = str(several[0]).replace("_", "-").lower()
            if _LANGUAGE_TAG.fullmatch(tag):
                filled["language"] = tag
            else:
                _note(attributes, attribute, tag, document.base_url)
        elif attribute in _FILLED:
            between = _FILLED[attribute]
            filled[attribute] = str(several[0]) if between is None else between.join(map(str, several))
        elif attribute in FIXED:
            fields[attribute] = several[:1]
        else:
            fields[attribute + SUFFIXES[types[attribute]]] = several
    return replace(page, found=(), attributes=tuple(sorted(fields.items())), **filled)


def _note(attributes: AttributeMap, attribute: str, text: str, url: str) -> None:
    """Counts a value that is left out; the first of each attribute is shown."""
    attributes.unreadable[attribute] += 1
    if attributes.unreadable[attribute] == 1:
        kind = next(each.type for each in attributes.mapped if each.attribute == attribute)
        kind = "language tag" if attribute == "language" else kind
        logger.warning(
            "attribute %s: no %s, and left out: %r (%s); others are only counted",
            attribute, kind, text[:_MAX_SHOWN_CHARS], url,
        )  # fmt: skip


def _declared(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """The one language that Content-Language names; several are those of its readers, not of the text."""
    values = [value for name, value in headers if name.lower() == b"content-language"]
    tag = b",".join(values).decode("latin-1").strip().replace("_", "-").lower()
    return tag if _LANGUAGE_TAG.fullmatch(tag) else ""


def _beginning(text: str) -> str:
    """About 250 characters from the beginning of a text, cut between words, on one line."""
    line = " ".join(text[: 2 * _MAX_DESCRIPTION_CHARS].split())
    if len(line) <= _MAX_DESCRIPTION_CHARS:
        return line
    cut = line.rfind(" ", _MAX_DESCRIPTION_CHARS // 2, _MAX_DESCRIPTION_CHARS)
    return line[: cut if cut > 0 else _MAX_DESCRIPTION_CHARS].rstrip() + "…"
