"""The table ``[copies]`` of a source: which documents are copies of each other."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import Check, Table, refuse, refuse_until_later


def _check_scope(text: str) -> str:
    if text == "collection":
        refuse_until_later()
    if text not in {"source", "off"}:
        refuse('must be "source" or "off"')
    return text


class Copies(Table):
    """Which documents are copies of each other (F2)."""

    scope: Annotated[str, Privacy.PUBLIC, Check(_check_scope, '`"source"` or `"off"`')] = Field(
        "source",
        description="Documents of the source with the same text, title and other indexed fields are copies: one is indexed, and lists "
        "the URLs of the others. With `off` each is indexed; canonical links count all the same.",
    )
