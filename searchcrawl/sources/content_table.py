"""``[content]`` of a source: what of a page's text is indexed (C8, C9)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from searchcrawl.sources.values import LIST, CssSelector, Language, Table


class Content(Table):
    """What of the text of HTML pages is indexed; links and fields are read from all of a page."""

    mode: Literal["main", "all"] = Field(
        "main",
        description="`main` leaves out navigation, headers, footers and the like; `all` indexes all that a page shows.",
    )
    keep: Annotated[tuple[CssSelector, ...], LIST] = Field(
        (),
        description="CSS selectors; where they find elements of a page, the text of these is indexed, and no other.",
    )
    drop: Annotated[tuple[CssSelector, ...], LIST] = Field(
        (), description="CSS selectors of elements whose text is never indexed, also inside of what is kept."
    )
    language: Language = Field(
        "", description="The language of all pages, whatever they declare; without it each page has its own."
    )
