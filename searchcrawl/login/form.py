"""The form of a login page, filled in as a browser would when Enter is pressed in it (C10). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.tree import parse_tree

_TYPED: Final = frozenset({"", "text", "email", "tel", "search", "url", "number"})
_NOT_SENT: Final = frozenset({"submit", "image", "button", "reset", "file"})
_TICKED: Final = frozenset({"checkbox", "radio"})
_MAX_FIELDS: Final = 1000


class LoginFailed(Exception):
    """The login failed; a ``transient`` failure may be gone at the next try. The message has no secret."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        self.transient = transient
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormSettings:
    """What the source says of its form (``[login]``)."""

    password: str = field(repr=False)
    username: str | None = None
    form: str | None = None
    username_field: str | None = None
    password_field: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledForm:
    """What is sent: ``body`` by POST to ``url``; a page with a field ``password_field`` is the same form again."""

    url: str
    body: bytes = field(repr=False)
    password_field: str


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    value: str = field(repr=False)
    kind: str


def fill_form(text: str, *, url: str, charset: str, settings: FormSettings) -> FilledForm:
    """The form of the page ``text`` at ``url``, filled in; raises LoginFailed where no form can be used."""
    tree = parse_tree(text)
    form = _find_form(tree, settings)
    fields = list(_fields(form))
    password = settings.password_field or next((one.name for one in fields if one.kind == "password"), None)
    if password is None:
        raise LoginFailed("the form has no password field with a name")
    values = [(one.name, one.value) for one in fields]
    values = _with_value(values, password, settings.password)
    if settings.username is not None:
        values = _with_value(values, settings.username_field or _username_field(fields, password), settings.username)
    for name, value in settings.fields.items():
        values = _with_value(values, name, value)
    if (form.attributes.get("method") or "").strip().lower() != "post":
        # The logs of the server and of each proxy would have the URL.
        raise LoginFailed("the form would send the password in a URL (its method is not post)")
    body = urlencode(values, encoding=charset, errors="xmlcharrefreplace").encode("ascii")
    return FilledForm(url=_resolve_action(tree, form, url), body=body, password_field=password)


def _find_form(tree: LexborHTMLParser, settings: FormSettings) -> LexborNode:
    if settings.form is not None:
        chosen = tree.css_first(settings.form)
        if chosen is not None and chosen.tag != "form":
            chosen = chosen.css_first("form")
        if chosen is None:
            raise LoginFailed(f"no form is found by login.form ({settings.form})")
        return chosen
    for form in tree.css("form"):
        if form.css_first('input[type="password" i]') is not None:
            return form
    raise LoginFailed("the page has no form with a password field")


def _fields(form: LexborNode) -> Iterator[_Field]:
    """The fields that a browser would send of the untouched form, in order, with the first of its buttons."""
    pressed = False
    for number, node in enumerate(form.css("input, select, textarea, button")):
        attributes = node.attributes
        name = attributes.get("name")
        kind = (attributes.get("type") or "").strip().lower()
        if node.tag == "button" and kind not in _NOT_SENT:
            kind = "submit"
        if not name or "disabled" in attributes or number >= _MAX_FIELDS:
            continue
        if kind == "submit" and not pressed:
            pressed = True
            yield _Field(name, attributes.get("value") or "", kind)
        elif kind not in _NOT_SENT and (kind not in _TICKED or "checked" in attributes):
            yield _Field(name, _value(node, kind), kind if node.tag == "input" else node.tag or "")


def _value(node: LexborNode, kind: str) -> str:
    if node.tag == "textarea":
        return node.text()
    if node.tag == "select":
        options = node.css("option")
        option = next((one for one in options if "selected" in one.attributes), options[0] if options else None)
        if option is None:
            return ""
        value = option.attributes.get("value")
        return option.text(strip=True) if value is None else value
    return node.attributes.get("value") or ("on" if kind in _TICKED else "")


def _username_field(fields: list[_Field], password: str) -> str:
    """The last text field before the password, or else the first after it."""
    names = [one.name for one in fields]
    place = names.index(password) if password in names else len(names)
    before = [one.name for one in fields[:place] if one.kind in _TYPED]
    behind = [one.name for one in fields[place:] if one.kind in _TYPED]
    if not before and not behind:
        raise LoginFailed("the form has no field for the user name: name it in login.username_field")
    return before[-1] if before else behind[0]


def _with_value(values: list[tuple[str, str]], name: str, value: str) -> list[tuple[str, str]]:
    """``values`` with one of them replaced, or added at the end."""
    if all(one != name for one, _ in values):
        return [*values, (name, value)]
    return [(one, value if one == name else old) for one, old in values]


def _resolve_action(tree: LexborHTMLParser, form: LexborNode, url: str) -> str:
    base = tree.css_first("base[href]")
    action = (form.attributes.get("action") or "").strip()
    try:
        start = urls.resolve(base.attributes.get("href") or "", url) if base is not None else url
        return urls.resolve(action, start) if action else url
    except InvalidUrl as error:
        raise LoginFailed(f"the form leads to what is no URL: {error}") from None
