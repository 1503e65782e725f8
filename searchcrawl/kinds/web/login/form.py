"""The form of a login page, filled in as a browser would when Enter is pressed in it (C10). Pure.

Which form each control of a page belongs to is told as in a browser (HTML Standard, "form-associated elements"): it is
decided while a page is parsed. A form in a table, or one that is closed in the wrong place, has controls that are not
inside it in the tree. So each tag of a form gets a number, in the order in which it is written, and the end tags of forms a
mark that is an element only where the tag is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple
from urllib.parse import urlencode

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.encoding import find_codec, find_encoding
from searchcrawl.html.tree import parse_tree
from searchcrawl.sources.fetch_tables import Login

_TYPED: Final = frozenset({"", "text", "email", "tel", "search", "url", "number"})
_BUTTONS: Final = frozenset({"submit", "image", "button", "reset"})
_SUBMITS: Final = frozenset({"submit", "image"})
#: Inputs of other kinds have one line.
_LINES: Final = frozenset({"hidden", "textarea", "select"})
_NEWLINE: Final = re.compile(r"\r\n?|\n")
_TICKED: Final = frozenset({"checkbox", "radio"})
_MAX_FIELDS: Final = 1000


class LoginFailed(Exception):
    """The login failed; a ``transient`` failure may be gone at the next try. The message has no secret."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        self.transient = transient
        super().__init__(message)


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


def fill_form(text: str, *, url: str, charset: str, login: Login) -> FilledForm:
    """The form of the page ``text`` at ``url``, filled in; raises LoginFailed where no form can be used."""
    tree = parse_tree(text)
    form = _find_form(tree, text, login)
    charset = _find_charset(form, charset)
    button = next((node for node, barred in form.controls if _is_sent(node, barred) and _kind(node) in _SUBMITS), None)
    fields = list(_fields(form, button, charset))
    password = login.password_field or next((one.name for one in fields if one.kind == "password"), None)
    if password is None:
        raise LoginFailed("the form has no password field with a name")
    values = [(one.name, one.value) for one in fields]
    values = _with_value(values, password, login.password or "")
    if login.username is not None:
        values = _with_value(values, login.username_field or _username_field(fields, password), login.username)
    for name, value in login.fields.items():
        values = _with_value(values, name, value)
    if _attribute(form, button, "method").strip().lower() != "post":
        # The logs of the server and of each proxy would have the URL.
        raise LoginFailed("the form would send the password in a URL (its method is not post)")
    body = urlencode(values, encoding=find_codec(charset), errors="xmlcharrefreplace").encode("ascii")
    action = _attribute(form, button, "action").strip()
    return FilledForm(url=_resolve_action(tree, action, url), body=body, password_field=password)


def _find_form(tree: LexborHTMLParser, text: str, login: Login) -> PageForm:
    forms = read_forms(text)
    if login.form is not None:
        chosen = tree.css_first(login.form)
        if chosen is not None and chosen.tag != "form":
            chosen = chosen.css_first("form")
        if chosen is None:
            raise LoginFailed(f"no form is found by login.form ({login.form})")
        # Those that were read are of another tree, so that a selector need not pass over what was added there.
        places = [node.mem_id for node in tree.css("form")]
        place = places.index(chosen.mem_id) if len(places) == len(forms) else len(forms)
        if place < len(forms):
            return forms[place]
        raise LoginFailed(f"the form that login.form finds ({login.form}) cannot be read")
    for form in forms:
        if any(node.tag == "input" and _kind(node) == "password" for node, _ in form.controls):
            return form
    raise LoginFailed("the page has no form with a password field")


def _find_charset(form: PageForm, charset: str) -> str:
    """The encoding in which a form is sent: the first known one that it accepts, or that of its page."""
    accepted = read_value(form.node.attributes.get("accept-charset")).split()
    found = next(filter(None, map(find_encoding, accepted)), None) or find_encoding(charset) or "utf-8"
    return "utf-8" if found.startswith("utf-16") else found


def _kind(node: LexborNode) -> str:
    """The type of an input or a button, or else the name of the element."""
    kind = read_value(node.attributes.get("type")).strip().lower()
    if node.tag == "button":
        return kind if kind in {"button", "reset"} else "submit"
    return kind if node.tag == "input" else node.tag or ""


def _is_sent(node: LexborNode, barred: bool) -> bool:
    return not barred and "disabled" not in node.attributes


def _attribute(form: PageForm, button: LexborNode | None, name: str) -> str:
    """An attribute of a form, or what its button says instead."""
    own = None if button is None else button.attributes.get(f"form{name}")
    return read_value(own or form.node.attributes.get(name))


def _fields(form: PageForm, button: LexborNode | None, charset: str) -> Iterator[_Field]:
    """The fields that a browser would send of the untouched form, in order (HTML Standard, "constructing the entry list")."""
    pressed = 0 if button is None else button.mem_id
    # Of the radio buttons with one name the last is the one that stays ticked.
    ticked = {
        read_value(node.attributes.get("name")): node.mem_id for node, _ in form.controls if _is_ticked(node, "radio")
    }
    for node, barred in form.controls[:_MAX_FIELDS]:
        attributes = node.attributes
        name, kind = read_value(attributes.get("name")), _kind(node)
        if not _is_sent(node, barred) or (kind in _BUTTONS and node.mem_id != pressed):
            continue
        if kind == "image":
            yield from (_Field(f"{name}.{axis}" if name else axis, "0", kind) for axis in "xy")
        elif not name or (kind == "checkbox" and not _is_ticked(node, kind)):
            continue
        elif kind != "radio" or ticked.get(name) == node.mem_id:
            yield from (_Field(name, value, kind) for value in _values(node, kind, charset))


def _is_ticked(node: LexborNode, kind: str) -> bool:
    return "checked" in node.attributes and node.tag == "input" and _kind(node) == kind


def _values(node: LexborNode, kind: str, charset: str) -> list[str]:
    attributes = node.attributes
    if node.tag == "select":
        return [_NEWLINE.sub("\r\n", value) for value in _selected(node)]
    if kind == "file":
        return [""]
    if kind == "hidden" and attributes.get("name") == "_charset_":
        return [charset]
    value = read_value(node.text() if kind == "textarea" else attributes.get("value"))
    if not value and kind in _TICKED and "value" not in attributes:
        return ["on"]
    return [_NEWLINE.sub("\r\n" if kind in _LINES else "", value)]


def _selected(select: LexborNode) -> list[str]:
    """The values of the options that are selected and not disabled."""
    attributes = select.attributes
    groups: dict[int, bool] = {}
    options: list[tuple[LexborNode, bool]] = [(one, _is_disabled(one, groups)) for one in select.css("option")]
    chosen = [(one, disabled) for one, disabled in options if "selected" in one.attributes]
    if "multiple" not in attributes:
        shown = read_value(attributes.get("size")).strip()
        if not chosen and shown in {"", "0", "1"}:
            chosen = [option for option in options if not option[1]][:1]
        chosen = chosen[-1:]
    return [_option_value(one) for one, disabled in chosen if not disabled]


def _is_disabled(option: LexborNode, groups: dict[int, bool]) -> bool:
    """Whether an option is disabled, by itself or in its group; ``groups`` are those of which it is known."""
    group = option.parent
    if group is not None and group.tag == "optgroup":
        if group.mem_id not in groups:
            groups[group.mem_id] = "disabled" in group.attributes
        if groups[group.mem_id]:
            return True
    return "disabled" in option.attributes


def _option_value(option: LexborNode) -> str:
    attributes = option.attributes
    return read_value(attributes["value"]) if "value" in attributes else " ".join(read_value(option.text()).split())


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


def _resolve_action(tree: LexborHTMLParser, action: str, url: str) -> str:
    base = tree.css_first("base[href]")
    try:
        start = urls.resolve(base.attributes.get("href") or "", url) if base is not None else url
        return urls.resolve(action, start) if action else url
    except InvalidUrl as error:
        raise LoginFailed(f"the form leads to what is no URL: {error}") from None


_NUMBER: Final = "data-searchcrawl-number"
_END: Final = "data-searchcrawl-end"
_TAG: Final = re.compile(r"<(?:(/form)|(?:form|input|select|textarea|button))(?=[\t\n\f\r />])", re.IGNORECASE)
_ADDED: Final = re.compile(rf"<input type=hidden {_END} {_NUMBER}=\d+>| {_NUMBER}=\d+")


class PageForm(NamedTuple):
    """A form and its controls, in tree order, with whether each is barred by what is around it."""

    node: LexborNode
    controls: list[tuple[LexborNode, bool]]


def read_forms(text: str) -> list[PageForm]:
    """The forms of a page, in tree order; values in them are to be read by ``read_value``."""
    numbers = count()

    def number(match: re.Match[str]) -> str:
        own = f" {_NUMBER}={next(numbers)}"
        return f"<input type=hidden {_END}{own}>{match[0]}" if match[1] else match[0] + own

    tree = parse_tree(_TAG.sub(number, text))
    forms = {node.mem_id: PageForm(node, []) for node in tree.css("form")}
    nodes = tree.css(f"[{_NUMBER}]")
    owners = _find_owners(tree, nodes)
    around = _Surroundings()
    for node in nodes:
        owner = forms.get(owners.get(node.mem_id, 0))
        if owner is not None:
            owner.controls.append((node, around.look(node).barred))
    return list(forms.values())


def read_value(value: str | None) -> str:
    """A value of a page without what ``read_forms`` added to its tags, which may have been in it."""
    return _ADDED.sub("", value) if value and _NUMBER in value else value or ""


def _find_owners(tree: LexborHTMLParser, nodes: list[LexborNode]) -> Mapping[int, int]:
    """By the controls of a page their forms; both by ``mem_id``."""
    around = _Surroundings()
    by_id: dict[str, LexborNode] = {}
    for node in tree.css("[id]"):
        by_id.setdefault(read_value(node.id), node)
    owners: dict[int, int] = {}
    #: the form whose end tag has not come yet
    pointer: int | None = None
    for node in sorted(nodes, key=_read_number):
        attributes = node.attributes
        if node.tag == "form":
            pointer = node.mem_id
        elif _END in attributes:
            pointer = None
        else:
            named = by_id.get(read_value(attributes["form"])) if "form" in attributes else None
            owner = named.mem_id if named is not None else None
            if "form" not in attributes:
                owner = pointer if pointer is not None else around.look(node).form
            if owner is not None:
                owners[node.mem_id] = owner
    return owners


def _read_number(node: LexborNode) -> int:
    value = node.attributes.get(_NUMBER) or ""
    return int(value) if value.isdecimal() and len(value) < 10 else 0


class _Surrounding(NamedTuple):
    """The form around an element or of it, and whether what is around it bars it from being sent."""

    form: int | None = None
    barred: bool = False


class _Surroundings:
    """Remembers what is around each element: all controls of a page are looked at in linear time."""

    def __init__(self) -> None:
        self._known: dict[int, _Surrounding] = {}
        self._legends: dict[int, int | None] = {}
        self._disabled: dict[int, bool] = {}

    def look(self, node: LexborNode) -> _Surrounding:
        """What is around an element."""
        path: list[LexborNode] = []
        known = None
        inner: LexborNode | None = node
        while inner is not None and (known := self._known.get(inner.mem_id)) is None:
            path.append(inner)
            inner = inner.parent
        known = known or _Surrounding()
        parent = inner
        for element in reversed(path):
            barred = known.barred or (parent is not None and self._bars(parent, element))
            known = _Surrounding(element.mem_id if element.tag == "form" else known.form, barred)
            self._known[element.mem_id] = known
            parent = element
        return known

    def _bars(self, parent: LexborNode, child: LexborNode) -> bool:
        """Whether a parent bars what is in a child: a disabled fieldset all but that in its first legend."""
        if parent.tag == "fieldset" and self._is_disabled(parent):
            if parent.mem_id not in self._legends:
                legend = next((one for one in parent.iter() if one.tag == "legend"), None)
                self._legends[parent.mem_id] = None if legend is None else legend.mem_id
            return self._legends[parent.mem_id] != child.mem_id
        return parent.tag == "datalist"

    def _is_disabled(self, fieldset: LexborNode) -> bool:
        """It is looked up once: a list of attributes is made of all of them, and there may be many children."""
        known = self._disabled.get(fieldset.mem_id)
        if known is None:
            known = self._disabled[fieldset.mem_id] = "disabled" in fieldset.attributes
        return known
