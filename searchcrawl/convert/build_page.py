"""The page of a file: what all formats but HTML have in common (A5, C8)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from searchcrawl import clock
from searchcrawl.codes import Code
from searchcrawl.convert.converter import ConversionContext
from searchcrawl.exceptions import ConversionFailed
from searchcrawl.html.fields import FoundTexts
from searchcrawl.html.file_name import build_title
from searchcrawl.html.metas import read_robots_directives
from searchcrawl.html.page_text import MAX_CHARACTERS, collapse_lines, collapse_value
from searchcrawl.items import Link, Page
from searchcrawl.rules.attribute_values import convert_value

_LANGUAGE_TAG: Final = re.compile(r"[a-z]{2,3}(?:-[a-z0-9]{2,8}){0,3}")


def build_page(
    context: ConversionContext,
    *,
    text: str,
    title: str = "",
    author: str = "",
    subject: str = "",
    description: str = "",
    language: str = "",
    charset: str = "",
    links: Sequence[Link] = (),
    malformed: Sequence[str] = (),
    values: Mapping[str, str] | None = None,
) -> Page:
    """The page of a file with this text, and the values that it has of itself.

    Without a title, the name of the file is the title; an empty file has none. ``values`` are further ones by name, which
    a source may map to attributes as those of meta elements (``meta:created``); ``modified`` is the last change where the
    server names none. Raises ConversionFailed (904) beyond
    MAX_CHARACTERS.
    """
    text = _read_text(text)
    title, author, subject = collapse_value(title), collapse_value(author), collapse_value(subject)
    named = {**(values or {}), "title": title, "author": author, "subject": subject}
    name_title = build_title(context.headers, context.url) if text and not title else ""
    return replace(
        _read_robots(context),
        title=title or name_title,
        name_title=name_title,
        text=text,
        author=author,
        subject=subject,
        description=collapse_value(description),
        language=_read_language(language),
        charset=charset,
        modified=str(convert_value(collapse_value(named.get("modified", "")), "date") or ""),
        links=tuple(links),
        malformed=tuple(malformed),
        found=_select(named, context.attribute_origins),
    )


def _read_text(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise ConversionFailed(f"a text of over {MAX_CHARACTERS} characters", code=Code.CONVERSION_LIMIT)
    return collapse_lines(text)


def _read_robots(context: ConversionContext) -> Page:
    """A page of which only is known what X-Robots-Tag says."""
    robots = read_robots_directives(
        metas=(), headers=context.robots_tags, user_agent=context.user_agent, now=clock.now()
    )
    return Page(
        noindex=robots.noindex,
        noindex_by_header=robots.noindex_by_header,
        nofollow=robots.nofollow,
        nofollow_by_header=robots.nofollow_by_header,
        unavailable_ms=robots.unavailable_ms,
    )


def _select(named: Mapping[str, str], origins: frozenset[str]) -> FoundTexts:
    """The values that a source maps to attributes, by their origin."""
    return tuple(
        (origin, (value,))
        for name, text in named.items()
        if (origin := f"meta:{name}") in origins and (value := collapse_value(text))
    )


def _read_language(text: str) -> str:
    tag = text.replace("_", "-").lower()
    return tag if _LANGUAGE_TAG.fullmatch(tag) else ""
