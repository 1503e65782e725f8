"""The ``[login]`` table of a source: how its pages are come by that are not for everybody (C10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from searchcrawl.sources.values import Table, Text, WebUrl, refused

#: What each type must have, and what it may have besides.
_KEYS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "basic": (frozenset({"username", "password"}), frozenset({"url"})),
    "digest": (frozenset({"username", "password"}), frozenset({"url"})),
    "form": (
        frozenset({"url", "password"}),
        frozenset({"username", "form", "username_field", "password_field", "fields", "check"}),
    ),
    "cookies": (frozenset(), frozenset({"url", "fields", "check"})),
}
#: A cookie is ``name=value``, divided by semicolons (RFC 6265 §4.1.1).
_COOKIE_BREAKS: Final = frozenset('\x7f",;\\ ')
_NAME_BREAKS: Final = _COOKIE_BREAKS | frozenset("=()<>@:/[]?{}")


def _selector(text: str) -> str:
    # Only where it is needed: most sources have no form, and this is read by every command.
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError  # noqa: PLC0415

    try:
        LexborHTMLParser("").css(text)
    except SelectolaxError:
        raise refused("not a CSS selector") from None
    return text


class Login(Table):
    """How to log in; ``type`` is None where there is no login.

    ``url`` is the page with the form, or for cookies a page to be asked for first; for ``basic`` and
    ``digest`` only its origin counts. ``fields`` are more values of the form, or the cookies.
    ``check`` is a text that only pages for those who are logged in have.
    """

    type: Literal["basic", "digest", "form", "cookies"] | None = None
    url: WebUrl | None = None
    username: Text | None = None
    password: Text | None = None
    form: Annotated[Text, AfterValidator(_selector)] | None = None
    username_field: Text | None = None
    password_field: Text | None = None
    fields: Mapping[str, str] = Field(default_factory=dict)
    check: Text | None = None


def lacks_of(login: Login) -> Iterator[tuple[str, str]]:
    """What is wrong with a table whose values are well-formed: keys of ``login``, and what is said of them.

    Of a whole source: a table of ``[defaults]`` or of a set may well be a part.
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
            # They are not shown: they open doors.
            yield "fields", "a cookie's name and value have no blanks, quotes, commas or semicolons"


def _is_cookie(name: str, value: str) -> bool:
    return _is_plain(name, _NAME_BREAKS) and (not value or _is_plain(value, _COOKIE_BREAKS))


def _is_plain(text: str, breaks: frozenset[str]) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and not breaks & set(text)
