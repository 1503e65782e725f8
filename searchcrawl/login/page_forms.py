"""Which form each control of a page belongs to, as in a browser (HTML Standard, "form-associated elements"). Pure.

That is decided while a page is parsed: a form in a table, or one that is closed in the wrong place, has controls that are
not inside it in the tree. So each tag of a form gets a number, in the order in which it is written, and the end tags of
forms a mark that is an element only where the tag is one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from searchcrawl.html.tree import parse_tree

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
