"""The table ``[content]`` of a source: what of a page is its content."""

from __future__ import annotations

from pydantic import Field

from searchcrawl.sources.values import Language, Table


class Content(Table):
    """What of a page is its content, and how it is read (C9)."""

    language: Language = Field(
        "", description="The language of all pages, whatever they declare; without it each page has its own."
    )
