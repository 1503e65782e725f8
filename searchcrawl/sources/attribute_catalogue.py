"""The attributes of a whole project: one name is one attribute of one type, whatever source it is from (A5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.index_fields import SUFFIXES
from searchcrawl.sources.attribute_table import FIXED, OWN, AttributeType
from searchcrawl.sources.checking import dotted
from searchcrawl.sources.config import Source


class _Use(NamedTuple):
    source: Source
    name: str
    type: AttributeType

    def clash_with(self, other: _Use) -> ConfigurationError:
        """The error of this use, where both cannot be."""
        if self.name != other.name:
            message = f"{other.source.file} writes it {other.name}"
        else:
            message = f"is {self.type} here and {other.type} in {other.source.file}"
        return ConfigurationError(self.source.file, dotted(("attributes.types", self.name)), message)


def clashes(sources: Iterable[Source]) -> list[ConfigurationError]:
    """An error of each source that has an attribute whose type or spelling is another one elsewhere."""
    uses: dict[str, list[_Use]] = {}
    for source in sources:
        for name, kind in source.attributes.types_in_use().items():
            uses.setdefault(name.lower(), []).append(_Use(source, name, kind))
    errors = []
    for several in uses.values():
        for use in several:
            other = next((each for each in several if (each.name, each.type) != (use.name, use.type)), None)
            if other is not None:
                errors.append(use.clash_with(other))
    return errors


def index_fields(sources: Iterable[Source]) -> dict[str, str]:
    """The field of the index by the lower-case name of each attribute, those of every document included."""
    fields: dict[str, str] = {**{name: name for name in OWN}, **FIXED}
    for source in sources:
        for name, kind in source.attributes.types_in_use().items():
            fields.setdefault(name.lower(), name + SUFFIXES[kind])
    return fields
