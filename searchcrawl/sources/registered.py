"""What a crawl registers of its source for searches: attributes with their types and the texts for their values, groups.

So a search knows them on a machine without the file, and when the file is gone (A7). A value from the environment or a file
is left out: no database has any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from searchcrawl.sources.attribute_table import AttributeType, ShownName
from searchcrawl.sources.config import Source
from searchcrawl.sources.effective import show_references
from searchcrawl.sources.privacy import Reference


class Registered(NamedTuple):
    """What is registered of a source; ``types`` and ``values`` are as in its table ``[attributes]``."""

    types: Mapping[str, AttributeType]
    values: Mapping[str, Mapping[str, ShownName]]
    groups: Sequence[str]

    def types_in_use(self) -> Mapping[str, AttributeType]:
        """The type of each attribute; fixed attributes are left out."""
        return self.types


def dump_registered(source: Source) -> str:
    """What is to be registered of a source, as JSON; the same for the same meaning."""
    shown = show_references(source.attributes.values, "attributes.values", source.references)
    values = {name: _leave_references_out(names) for name, names in shown.items()}
    groups = [each for each in show_references(source.groups, "groups", source.references) if isinstance(each, str)]
    found = {"types": source.attributes.types_in_use(), "values": values, "groups": sorted(groups)}
    return orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode()


def load_registered(text: str) -> Registered:
    """What ``dump_registered`` wrote."""
    return Registered(**orjson.loads(text))


def _leave_references_out(names: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for value, name in names.items():
        if isinstance(name, str):
            found[value] = name
        elif not isinstance(name, Reference):
            found[value] = {tag: text for tag, text in name.items() if not isinstance(text, Reference)}
    return found
