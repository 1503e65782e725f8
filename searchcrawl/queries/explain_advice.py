"""What would admit a URL that a rule refuses: the edit of a file of the project (L1)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from searchcrawl.rules import forgotten
from searchcrawl.rules.decision import Decision, Proposal
from searchcrawl.sources.config import Source
from searchcrawl.sources.effective import BUILT_IN

_POSITION: Final = re.compile(r"\[[0-9]+\]")
#: One of a list of tables, which has no value that would refuse nothing.
_BLOCK: Final = re.compile(r"(.*(?:rewrite|display)\[[0-9]+\])")
#: The number of a limit, as rules of rows have it.
_NUMBER: Final = re.compile(r"(?:[a-z_]+ = )?([0-9]{1,18})(?![0-9])")
#: Keys of one value, and the value that refuses nothing.
_OPEN_VALUES: Final[Mapping[str, Any]] = {
    "scope.dynamic_pages": True,
    "scope.follow_links": True,
    "scope.trap_after": 0,
    "keep.meta_robots": False,
    "keep.min_bytes": 0,
    "robots.obey": False,
    "start.sitemaps": "auto",
    "lifecycle.orphans": "check",
    "mode": "accept",
    "test": False,
}
#: Where others than the owner of the source have a say.
_WITH_LEAVE: Final = {"robots.obey": ", if the owner of the site agrees"}


class Action(StrEnum):
    """How a file is to be edited."""

    #: ``value`` is added to the list ``key``
    ADD = "add"
    #: ``value`` is taken out of the list ``key``; without a value all of ``key``
    REMOVE = "remove"
    #: ``key`` gets ``value``
    SET = "set"
    #: ``key`` gets more than ``value``, nobody knows how much
    RAISE = "raise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """An edit of ``file``; ``key`` is the name that it has there."""

    action: Action
    file: str
    key: str
    value: Any = None

    @property
    def text(self) -> str:
        """What to type: ``add "a.test" to scope.include_hosts in sources/x.toml``."""
        value = json.dumps(self.value, ensure_ascii=False)
        match self.action:
            case Action.ADD:
                return f"add {value} to {self.key} in {self.file}"
            case Action.REMOVE if self.key == forgotten.KEY:
                return f"take the line {self.value} out of {self.file}"
            case Action.REMOVE:
                return f"take {self.key if self.value is None else f'{value} out of {self.key}'} in {self.file}"
            case Action.SET:
                return f"set {self.key} = {value} in {self.file}{_WITH_LEAVE.get(self.key, '')}"
        return f"raise {self.key} above {value} in {self.file}"


def propose(
    decision: Decision, source: Source, *, include: Proposal | None = None, needed: Mapping[str, float] | None = None
) -> Edit | None:
    """The edit that would end a refusal by a rule; None where no edit of the project would.

    ``include`` is what is missing in a list of includes; ``needed`` is what the URL or the page has of that which limits
    count, by their keys.
    """
    key = decision.key
    if include is not None:
        file, key = locate(source, include.key)
        return Edit(action=Action.ADD, file=source.file if file == BUILT_IN else file, key=key, value=include.value)
    if key == forgotten.KEY:
        line = decision.rule if decision.rule in source.forgotten else f"{forgotten.PATTERN} {decision.rule}"
        return Edit(action=Action.REMOVE, file=forgotten.FILE, key=key, value=line)
    if key.rpartition(".")[2].startswith("exclude_"):
        # A rule of a row may be in no file any more.
        file, key = locate(source, key)
        value: Any = int(decision.rule) if key.endswith("ports") else decision.rule
        return None if file == BUILT_IN else Edit(action=Action.REMOVE, file=file, key=key, value=value)
    if block := _BLOCK.match(key):
        file, key = locate(source, block[1])
        return None if file == BUILT_IN else Edit(action=Action.REMOVE, file=file, key=key)
    return _propose_value(decision, source, needed or {})


def _propose_value(decision: Decision, source: Source, needed: Mapping[str, float]) -> Edit | None:
    """The value of a key that would let the URL pass, in the source's own file: it counts before all others."""
    key, number = decision.key, _NUMBER.match(decision.rule)
    if key in needed:
        return Edit(action=Action.SET, file=source.file, key=key, value=needed[key])
    if key in _OPEN_VALUES:
        return Edit(action=Action.SET, file=source.file, key=key, value=_OPEN_VALUES[key])
    if number is None or table_and_key(key).isdisjoint({"scope", "keep", "fetch"}):
        return None
    return Edit(action=Action.RAISE, file=source.file, key=key, value=int(number[1]))


def locate(source: Source, key: str) -> tuple[str, str]:
    """The file that sets a key of a source, and the key's name there; ``built-in`` where no file does."""
    return source.locate(key) if table_and_key(key) & source.origins.keys() else (BUILT_IN, key)


def table_and_key(key: str) -> set[str]:
    """The names of a key in a fingerprint and in origins: ``scope.host[1].include_paths`` is ``scope.host``."""
    table, _, name = _POSITION.sub("", key).partition(".")
    return {table, f"{table}.{name.partition('.')[0]}"}
