"""``[render]`` of a source: which pages a browser renders, and when a page is done (C10, C11)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.rules.url_rules import build_url_test
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import (
    LIST,
    Check,
    Count,
    CssSelector,
    HostRules,
    PositiveAmount,
    PositiveCount,
    PublicText,
    Table,
    check_no_repeats,
    refuse,
)

#: What a browser calls the kinds of what a page loads. The page itself, its scripts and what these ask for are not among
#: them: a page that is rendered without is not the page.
KINDS: Final = ("eventsource", "font", "image", "manifest", "media", "other", "stylesheet", "texttrack", "websocket")

#: What an action may be: each has exactly one of these keys.
_ACTIONS: Final = ("click", "wait", "scroll")


def _check_kind(text: str) -> str:
    if text not in KINDS:
        refuse(f"must be one of {', '.join(KINDS)}")
    return text


def _check_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    return check_no_repeats(kinds) if kinds else kinds


def _check_url_rule(text: str) -> str:
    try:
        build_url_test(text)
    except ConfigurationError as error:
        refuse(error.message.partition(" (got ")[0])
    return text


class Action(Table):
    """One ``[[render.actions]]``: a step that is done in each page that its rule names (C10)."""

    match: Annotated[PublicText, Check(_check_url_rule, "URL rule")] | None = Field(
        None, description="A URL rule: the pages in which it is done; without it all that are rendered."
    )
    click: CssSelector | None = Field(None, description="A CSS selector: its first element that is seen is clicked.")
    wait: CssSelector | None = Field(
        None, description="A CSS selector: the next action waits until the page has such an element."
    )
    scroll: PositiveCount | None = Field(
        None,
        json_schema_extra={"unit": "times"},
        description="How often, at most, the page is scrolled to its end.",
    )

    @model_validator(mode="after")
    def _check(self) -> Action:
        said = [name for name in _ACTIONS if getattr(self, name) is not None]
        if not said:
            refuse("is required, or wait or scroll", key="click")
        if len(said) > 1:
            refuse(f"not together with {said[0]}", key=said[1])
        return self


class Render(Table):
    """Which pages are rendered by a browser, and when they are done; without this table none is, and none is started."""

    mode: Literal["never", "auto", "always"] = Field(
        "never",
        description="`auto` renders the pages that have next to no text without their scripts, `always` all HTML pages; "
        "each is fetched plainly first.",
    )
    wait_for: CssSelector | None = Field(
        None, description="A CSS selector: the page is done once it has such an element; without it, once it is quiet."
    )
    quiet_ms: Count = Field(
        300,
        json_schema_extra={"unit": "milliseconds"},
        description="The page is quiet once its elements and text have not changed for this long.",
    )
    max_seconds: PositiveAmount = Field(5.0, description="After this time a page is taken as it is.")
    pages: PositiveCount = Field(
        2, json_schema_extra={"unit": "pages"}, description="How many pages are rendered at once."
    )
    block: Annotated[
        tuple[Annotated[str, Privacy.PUBLIC, Check(_check_kind, "kind of resource")], ...],
        LIST,
        AfterValidator(_check_kinds),
    ] = Field(
        (),
        description=f"Kinds of what a page loads that are not loaded, besides images, fonts and media: "
        f"{', '.join(f'`{kind}`' for kind in KINDS)}.",
    )
    scroll: Count = Field(
        0,
        json_schema_extra={"unit": "times"},
        description="How often, at most, a page is scrolled to its end, for lists that grow then; 0 is never.",
    )
    allow_hosts: HostRules = Field(
        (),
        description="Host rules: the hosts outside the boundary from which a page may load something; without it any "
        "public host, for scripts and styles only.",
    )

    max_page_mb: PositiveAmount = Field(
        64.0,
        description="What a page may load in all, decoded; one that wants more cannot be rendered (904).",
    )
    post: bool = Field(
        False,
        description="Let scripts send POST to the origin of their page and to `allow_hosts`, as a GraphQL API wants it; forms "
        "are never sent.",
    )
    actions: Annotated[tuple[Action, ...], LIST] = Field(
        (),
        description="Steps that are done in a page, in this order, before it is read; each has one of `click`, `wait`, `scroll`.",
    )

    @property
    def max_page_bytes(self) -> int:
        """``max_page_mb`` in bytes, at least one."""
        return max(1, round(self.max_page_mb * (1 << 20)))

    @property
    def in_use(self) -> bool:
        """Whether any page is rendered."""
        return self.mode != "never"
