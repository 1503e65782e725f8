"""The ``[attributes]`` of a source: which values of its pages become which search attribute (A5, A6, A8).

A key with a colon names a place in the page: ``meta:NAME`` (a meta element by its name, property or http-equiv),
``header:NAME`` (a header of the answer), ``jsonld:NAME`` (a key of a JSON-LD object, ``jsonld:NAME.NAME`` of one in it),
``column:NAME`` (a column of the row that is the document), ``file:NAME`` (what is known of a file beside its content). Upper and lower case are equal. All other keys are fields of the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import ConfigDict

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.index_fields import FIELDS, LANGUAGE_PREFIXES, SUFFIXES
from searchcrawl.kind import KINDS
from searchcrawl.sources.checking import join_key
from searchcrawl.sources.privacy import Privacy
from searchcrawl.sources.values import Check, ListOf, Table, key, refuse

#: The values that every document has: all spellings, and the field of the index (A6).
FIXED: Final = {
    spelling: field.name for field in FIELDS if field.is_fixed for spelling in (field.name, *field.other_spellings)
}
#: The other names that a query may use; no attribute has such a name.
OWN: Final = frozenset({"score", *(field.name for field in FIELDS if not field.is_fixed)})

_KINDS: Final = ("meta", "header", "jsonld", *(kind.values for kind in KINDS.values() if kind.values))
_SHOWN: Final = [f'"{kind}:NAME"' for kind in _KINDS]
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MAX_SOURCE_CHARS: Final = 200
_TRANSLATION: Final = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")


class AttributeOrigin(NamedTuple):
    """The place of values: ``meta``, ``header``, ``jsonld``, ``column`` or ``file``, and the name there in lower case."""

    kind: str
    name: str


def _check_attribute_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        refuse("must be at most 64 letters, digits and _.- (ASCII), a letter first")
    fixed = FIXED.get(text.lower())
    if fixed is not None:
        return fixed
    if text.lower() in OWN or text.lower().startswith(LANGUAGE_PREFIXES):
        refuse("is a field of every document: name the attribute differently")
    return text


AttributeName = Annotated[str, Privacy.PUBLIC, Check(_check_attribute_name, "name of an attribute")]
AttributeNames = ListOf[AttributeName]
AttributeType = Literal["string", "text", "number", "date"]


def _check_translation(text: str) -> str:
    if text != "name" and not _TRANSLATION.fullmatch(text):
        refuse('must be "name" or a language tag, as "de" or "pt-BR"')
    return text.lower()


PublicText = Annotated[str, Privacy.PUBLIC]
Translation = Annotated[str, Privacy.PUBLIC, Check(_check_translation, "language tag")]
#: The text for a value, or its texts by language; that of ``name`` is for all others.
ShownName = PublicText | Mapping[Translation, PublicText]


class Attributes(Table):
    """A mapping of names in pages to search attributes, and what else is set for these."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, AttributeName]

    @classmethod
    def takes_key(cls, name: str, table: Mapping[str, Any]) -> bool:
        """Whether a key names a place in a page."""
        return ":" in name

    drop: AttributeNames = key((), "Attributes of the defaults or the set that this source does without.")
    types: Mapping[AttributeName, AttributeType] = key(dict, "The type of each attribute that is not a string.")
    values: Mapping[AttributeName, Mapping[PublicText, ShownName]] = key(
        dict,
        "What facets show for a value of an attribute: a text, or a table with the text as `name` and its "
        "translations by language.",
    )
    use_desc_fallback: bool = key(False, "A page without a description gets the beginning of its text as description.")

    def _check_keys(self) -> None:
        seen: set[AttributeOrigin] = set()
        for place, attribute in self.__pydantic_extra__.items():
            origin = _parse_origin(place)
            if origin in seen:
                refuse("the same name twice, but for its case", key=place)
            if attribute == "host":
                refuse("the host is that of the URL", key=place)
            seen.add(origin)
        for attribute in self.drop:
            if attribute in FIXED:
                refuse(f"{attribute} is an attribute of every document and cannot be removed", key="drop")
        for attribute in self.types:
            if attribute in FIXED:
                refuse(f"the type of {attribute} is fixed", key="types")
        names = sorted({*self.__pydantic_extra__.values(), *self.types}, key=str.lower)
        for one, other in pairwise(names):
            if one.lower() == other.lower():
                refuse(f"{one} and {other} differ only in case", key="")

    @property
    def mapped(self) -> Iterator[tuple[AttributeOrigin, str]]:
        """The place of the values and the name of each attribute, in the order of the file; dropped ones are left out."""
        for place, attribute in self.__pydantic_extra__.items():
            if attribute not in self.drop:
                yield _parse_origin(place), attribute

    @property
    def named(self) -> frozenset[str]:
        """All attributes to which something is mapped, including dropped ones."""
        return frozenset(self.__pydantic_extra__.values())

    @property
    def in_use(self) -> bool:
        """Whether the table gives documents any attribute."""
        return self.use_desc_fallback or any(True for _ in self.mapped)

    def types_in_use(self) -> dict[str, AttributeType]:
        """The type of each attribute of the source; fixed attributes are left out."""
        return {name: self.types.get(name, "string") for _, name in self.mapped if name not in FIXED}


class Registered(NamedTuple):
    """What is registered of a source; ``types`` and ``values`` are as in its table ``[attributes]``."""

    types: Mapping[str, AttributeType]
    values: Mapping[str, Mapping[str, ShownName]]
    groups: Sequence[str]

    def types_in_use(self) -> Mapping[str, AttributeType]:
        """The type of each attribute; fixed attributes are left out."""
        return self.types


def _parse_origin(key: str) -> AttributeOrigin:
    kind, _, name = key.partition(":")
    kind, name = kind.strip().lower(), name.strip().lower()
    if kind not in _KINDS or not name or not name.isprintable() or len(name) > _MAX_SOURCE_CHARS:
        refuse(f"must be {', '.join(_SHOWN[:-1])} or {_SHOWN[-1]}", key=key)
    # What no page can have would be looked for in vain.
    if kind == "header" and not _HEADER.fullmatch(name):
        refuse("is no name of a header", key=key)
    if kind == "jsonld":
        steps = [step.strip() for step in name.split(".")]
        if not all(steps):
            refuse('a name is missing beside a dot: "jsonld:NAME.NAME"', key=key)
        name = ".".join(steps)
    return AttributeOrigin(kind, " ".join(name.split()) if kind == "meta" else name)


def find_clashes(tables: Mapping[str, Attributes]) -> list[ConfigurationError]:
    """An error for each file in which an attribute has another type or spelling than in another file.

    ``tables`` are the attributes of all sources by the file of each: one name is one attribute of one type.
    """
    uses: dict[str, list[_Use]] = {}
    for file, table in tables.items():
        for name, kind in table.types_in_use().items():
            uses.setdefault(name.lower(), []).append(_Use(file, name, kind))
    errors = []
    for several in uses.values():
        for use in several:
            other = next((each for each in several if (each.name, each.type) != (use.name, use.type)), None)
            if other is not None:
                errors.append(use.build_error(other))
    return errors


class _Use(NamedTuple):
    file: str
    name: str
    type: AttributeType

    def build_error(self, other: _Use) -> ConfigurationError:
        if self.name != other.name:
            message = f"{other.file} writes it {other.name}"
        else:
            message = f"is {self.type} here and {other.type} in {other.file}"
        return ConfigurationError(self.file, join_key(("attributes.types", self.name)), message)


def choose_shown_names(tables: Iterable[Attributes | Registered], language: str) -> dict[str, dict[str, str]]:
    """What is shown for the values of each attribute, by its lower-case name, in a language; the first table counts."""
    shown: dict[str, dict[str, str]] = {}
    for table in tables:
        for attribute, names in table.values.items():
            for value, name in names.items():
                if (text := _choose_name(name, language)) is not None:
                    shown.setdefault(attribute.lower(), {}).setdefault(value, text)
    return shown


def _choose_name(name: str | Mapping[str, str], language: str) -> str | None:
    if isinstance(name, str):
        return name
    return next((name[each] for each in (language, language.partition("-")[0], "name") if each in name), None)


def map_index_fields(tables: Iterable[Attributes | Registered]) -> dict[str, str]:
    """The field of the index by the lower-case name of each attribute, those of every document included."""
    fields: dict[str, str] = {**{name: name for name in OWN}, **FIXED}
    for table in tables:
        for name, kind in table.types_in_use().items():
            fields.setdefault(name.lower(), name + SUFFIXES[kind])
    return fields
