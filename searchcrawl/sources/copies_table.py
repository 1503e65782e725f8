"""The table ``[copies]`` of a source: which documents are copies of each other."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import Check, Table, refuse


def _check_scope(text: str) -> str:
    if text not in {"source", "collection", "off"}:
        refuse('must be "source", "collection" or "off"')
    return text


def _check_near(text: str) -> str:
    if text not in {"group", "remove", "off"}:
        refuse('must be "group", "remove" or "off"')
    return text


class Copies(Table):
    """Which documents are copies of each other, and what becomes of near copies (F2, F6)."""

    scope: Annotated[str, Privacy.PUBLIC, Check(_check_scope, '`"source"`, `"collection"` or `"off"`')] = Field(
        "source",
        description="Documents of the source with the same text, title and other indexed fields are copies: one is indexed, and lists "
        "the URLs of the others. With `collection` these are looked for in all sources that say so too and deliver to the index. "
        "With `off` each is indexed; canonical links count all the same.",
    )
    near: Annotated[str, Privacy.PUBLIC, Check(_check_near, '`"group"`, `"remove"` or `"off"`')] = Field(
        "group",
        description="What becomes of near copies, whose texts differ in a few words: with `group` a search shows the best hit of "
        "them and lists the URLs of the others with it, with `off` each is a hit. With `remove` they are copies: after a completed run "
        "one is indexed, and the others leave, within the limits on deleting.",
    )

    @model_validator(mode="after")
    def _check(self) -> Copies:
        if self.near == "remove" and self.scope == "off":
            refuse('not with scope = "off"', key="near")
        return self
