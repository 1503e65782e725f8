"""``[login]`` of a source: how the crawler gets pages that are not public (C10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import LIST, Check, CssSelector, Table, Text, WebUrl, check_selector, refuse

#: For each type, the keys that it requires, and further keys that it may have.
_KEYS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "basic": (frozenset({"username", "password"}), frozenset({"url"})),
    "digest": (frozenset({"username", "password"}), frozenset({"url"})),
    "form": (
        frozenset({"url", "password"}),
        frozenset({"username", "form", "username_field", "password_field", "fields", "check"}),
    ),
    "cookies": (frozenset(), frozenset({"url", "fields", "check"})),
    "browser": (frozenset({"url", "steps"}), frozenset({"check"})),
}
#: What a step does with the element of its selector.
_ACTIONS: Final = ("fill", "click", "wait")
#: A cookie is ``name=value``, divided by semicolons (RFC 6265 §4.1.1).
_COOKIE_BREAKS: Final = frozenset('\x7f",;\\ ')
_NAME_BREAKS: Final = _COOKIE_BREAKS | frozenset("=()<>@:/[]?{}")


ShownText = Annotated[Text, Privacy.SHOWN]


class Step(Table):
    """One step of a login in a browser: ``fill`` with a ``value``, ``click``, or ``wait`` for an element to be seen."""

    fill: CssSelector | None = Field(None, description="The field that gets `value`.")
    value: Annotated[Text, Privacy.SILENT] | None = Field(
        None, description="What is typed, a password best as `{env = …}` or `{file = …}`."
    )
    click: CssSelector | None = Field(None, description="What is clicked.")
    wait: CssSelector | None = Field(None, description="What has to be seen before the next step.")

    @model_validator(mode="after")
    def _check_action(self) -> Step:
        actions = self._list_actions()
        if not actions:
            refuse("is required, or click or wait", key="fill")
        if len(actions) > 1:
            refuse(f"not together with {actions[0]}", key=actions[1])
        if self.fill is None and self.value is not None:
            refuse("only with fill", key="value")
        if self.fill is not None and self.value is None:
            refuse("is required with fill", key="value")
        return self

    def _list_actions(self) -> list[str]:
        return [name for name in _ACTIONS if getattr(self, name) is not None]

    @property
    def action(self) -> str:
        """``fill``, ``click`` or ``wait``."""
        return self._list_actions()[0]

    @property
    def selector(self) -> str:
        """The CSS selector of its element."""
        return str(getattr(self, self.action))


class Login(Table):
    """How the crawler logs in; ``type`` is None if there is no login."""

    type: Literal["basic", "digest", "form", "cookies", "browser"] | None = Field(
        None, description="The kind of login."
    )
    url: Annotated[WebUrl, Privacy.SHOWN] | None = Field(
        None,
        description="The page with the form, the one at which `steps` begin, or one that sets cookies; of `basic` and "
        "`digest` only its origin counts.",
    )
    username: ShownText | None = Field(None, description="The name to log in with.")
    password: Annotated[Text, Privacy.SILENT] | None = Field(
        None, description="The password, best as `{env = …}` or `{file = …}`."
    )
    form: Annotated[ShownText, Check(check_selector, "CSS selector")] | None = Field(
        None, description="The form; without it the first one that has a password field."
    )
    username_field: ShownText | None = Field(None, description="The field of the name; without it found by its type.")
    password_field: ShownText | None = Field(
        None, description="The field of the password; without it found by its type."
    )
    fields: Annotated[Mapping[str, str], Privacy.SILENT] = Field(
        default_factory=dict, description="More values of the form, or the cookies."
    )
    check: ShownText | None = Field(None, description="A text that only pages for logged-in users have.")
    steps: Annotated[tuple[Step, ...], LIST] = Field(
        (), description="What is done in the browser, one after the other."
    )


def find_login_errors(login: Login) -> Iterator[tuple[str, str]]:
    """Keys of ``login`` that are missing or do not go together, each with a message.

    This is asked of a whole source only: a table of ``[defaults]`` or of a set may be a part of one.
    """
    given = {name for name in Login.model_fields if name != "type" and getattr(login, name)}
    if login.type is None:
        if given:
            yield "type", f"is required with {min(given)}"
        return
    required, others = _KEYS[login.type]
    for name in sorted(required - given):
        yield name, f'is required with type = "{login.type}"'
    for name in sorted(given - required - others):
        yield name, f'not with type = "{login.type}"'
    if login.type == "basic" and ":" in (login.username or ""):
        yield "username", "must have no colon: it ends the name (RFC 7617)"
    if login.type == "cookies":
        if not given:
            yield "fields", 'is required with type = "cookies", or url'
        elif not all(_is_cookie(name, value) for name, value in login.fields.items()):
            # The values are credentials and are not shown.
            yield "fields", "a cookie's name and value have no blanks, quotes, commas or semicolons"


def _is_cookie(name: str, value: str) -> bool:
    return _is_plain(name, _NAME_BREAKS) and (not value or _is_plain(value, _COOKIE_BREAKS))


def _is_plain(text: str, breaks: frozenset[str]) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and not breaks & set(text)
