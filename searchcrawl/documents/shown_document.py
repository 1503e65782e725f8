"""What plug-ins see of a document, and what of their changes goes back into it (K4).

Apart from the pipeline: ``searchcrawl.testing``, which tests of plug-ins import, needs no Scrapy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from searchcrawl import plugins
from searchcrawl.bodies import read_whole
from searchcrawl.codes import Code
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.page_text import MAX_CHARACTERS, MAX_VALUE_CHARS, collapse_value
from searchcrawl.items import Document, Page, copy_with

#: The fields that a plug-in may change, but for ``values``.
TEXTS: Final = ("title", "text", "description", "author", "subject", "language")
_FACTS: Final = ("url", "answered_url", "depth", "mimetype", "fetched_at", "headers", "body", "links")
_META: Final = "meta:"
#: Fields of one line, as pages have them.
_LINES: Final = frozenset({"title", "description", "author", "subject"})
#: The most characters between the hyphens of a language tag.
_MOST_OF_TAG: Final = 8
#: … and of all of it (RFC 5646, 4.4.1).
_MOST_OF_LANGUAGE: Final = 35
_MOST_SHOWN: Final = 40


def show(document: Document, page: Page) -> plugins.Document:
    """The document for a plug-in; ``page`` is what was read of it."""
    return plugins.Document(
        url=document.claim.url,
        answered_url=document.base_url,
        depth=document.claim.depth,
        mimetype=document.mimetype,
        fetched_at=document.fetched_at,
        headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in document.headers},
        body=read_whole(document.body),
        links=tuple(link.url for link in page.links),
        values=_show_values(page),
        **{name: getattr(page, name) for name in TEXTS},
    )


def take_over(document: Document, page: Page, shown: plugins.Document) -> Document:
    """The document with what a plug-in changed in ``shown``; raises TypeError or ValueError for what it must not."""
    before = show(document, page)
    for name in _FACTS:
        if getattr(shown, name) != getattr(before, name):
            raise ValueError(f"{name} cannot be changed")
    return copy_with(document, page=change(page, {name: getattr(shown, name) for name in TEXTS}, shown.values))


def change(page: Page, texts: Mapping[str, object], values: Mapping[str, object]) -> Page:
    """The page with other texts, and values by name in the place of those of its meta elements.

    Raises TypeError, ValueError for a language that is no tag, and ConversionFailed (904) for a text beyond MAX_CHARACTERS.
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"values must be a mapping (got {type(values).__name__})")
    changes: dict[str, Any] = {}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a string (got {type(text).__name__})")
        if text != getattr(page, name):
            changes[name] = _read_text(name, text)
    if changes.get("language"):
        changes["is_language_given"] = True
    checked, before = {name: _check_values(name, several) for name, several in values.items()}, _show_values(page)
    if checked != before:
        kept = tuple(each for each in page.found if not each[0].startswith(_META))
        cut = {
            name: several if several == before.get(name) else [text[:MAX_VALUE_CHARS] for text in several]
            for name, several in checked.items()
        }
        metas = tuple((f"{_META}{name.lower()}", tuple(several)) for name, several in cut.items() if several)
        changes["found"] = (*metas, *kept)
    return copy_with(page, **changes) if changes else page


def _read_text(name: str, text: str) -> str:
    if name == "language" and text:
        tag = text.replace("_", "-").lower()
        if not _is_tag(tag):
            raise ValueError(f'language must be a tag as "de" or "en-gb" (got {text[:_MOST_SHOWN]!r})')
        return tag
    if len(text) > MAX_CHARACTERS:
        raise ConversionFailed(f"a text of over {MAX_CHARACTERS} characters", code=Code.CONVERSION_LIMIT)
    return collapse_value(_make_whole(text)) if name in _LINES else _make_whole(text)


def _make_whole(text: str) -> str:
    """The text without halves of characters, which no index takes."""
    return text.encode("utf-8", "replace").decode()


def _is_tag(text: str) -> bool:
    language, *others = text.split("-")
    parts = [language, *others]
    return (
        1 < len(language) <= len(text) <= _MOST_OF_LANGUAGE
        and language.isalpha()
        and text.isascii()
        and all(part.isalnum() and len(part) <= _MOST_OF_TAG for part in parts)
    )


def _show_values(page: Page) -> dict[str, list[str]]:
    return {origin.removeprefix(_META): list(texts) for origin, texts in page.found if origin.startswith(_META)}


def _check_values(name: object, several: object) -> list[str]:
    listed = [several] if isinstance(several, str) else list(several) if isinstance(several, Sequence) else [None]
    if not isinstance(name, str) or not all(isinstance(text, str) for text in listed):
        raise TypeError(f"values[{name!r}] must be a list of strings")
    return [_make_whole(text) for text in listed if isinstance(text, str)]
