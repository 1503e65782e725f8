"""``[render]`` of a source: which pages a browser renders, and when a page is done (C10, C11)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, model_validator

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


#: What an action of a page does.
_ACTIONS: Final = ("click", "wait", "scroll")


def _check_kind(text: str) -> str:
    if text not in KINDS:
        refuse(f"must be one of {', '.join(KINDS)}")
    return text


def _check_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    return check_no_repeats(kinds) if kinds else kinds


class Action(Table):
    """What is done on a page before it is read: one of `click`, `wait` and `scroll`."""

    match: PublicText | None = Field(
        None, description="A URL rule, as in `[scope]`: the pages on which it is done; without it all."
    )
    click: CssSelector | None = Field(None, description="The first such element that is seen is clicked.")
    wait: CssSelector | None = Field(None, description="Such an element has to be seen before the page goes on.")
    scroll: PositiveCount | None = Field(
        None, json_schema_extra={"unit": "times"}, description="How often, at most, the page is scrolled to its end."
    )

    @model_validator(mode="after")
    def _check_action(self) -> Action:
        given = self._list_given()
        if not given:
            refuse("is required, or wait or scroll", key="click")
        if len(given) > 1:
            refuse(f"not together with {given[0]}", key=given[1])
        return self

    def _list_given(self) -> list[str]:
        return [name for name in _ACTIONS if getattr(self, name) is not None]

    @property
    def kind(self) -> str:
        """``click``, ``wait`` or ``scroll``."""
        return self._list_given()[0]

    @property
    def value(self) -> Any:
        """The selector, or the number of times."""
        return getattr(self, self.kind)


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
    max_page_mb: PositiveCount = Field(
        64,
        json_schema_extra={"unit": "MB"},
        description="How much all that a page loads may have, decoded; a page that loads more is not rendered (904).",
    )
    actions: Annotated[tuple[Action, ...], LIST] = Field(
        (), description="What is done on a page before it is read, one after the other."
    )
    post: bool = Field(
        False,
        description="Scripts may send data by POST, to the origin of their page and to `allow_hosts`; forms are never sent.",
    )

    @property
    def in_use(self) -> bool:
        """Whether any page is rendered."""
        return self.mode != "never"
