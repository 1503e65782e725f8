"""What decided about a URL: a rule, where it is written, and the edit of the project that would end a refusal by it (L1)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from searchcrawl.codes import ROBOTS_UNAVAILABLE
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


class EditKind(StrEnum):
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

    action: EditKind
    file: str
    key: str
    value: Any = None

    @property
    def text(self) -> str:
        """What to type: ``add "a.test" to scope.include_hosts in sources/x.toml``."""
        value = json.dumps(self.value, ensure_ascii=False)
        match self.action:
            case EditKind.ADD:
                return f"add {value} to {self.key} in {self.file}"
            case EditKind.REMOVE if self.key == forgotten.KEY:
                return f"take the line {self.value} out of {self.file}"
            case EditKind.REMOVE:
                return f"take {self.key if self.value is None else f'{value} out of {self.key}'} in {self.file}"
            case EditKind.SET:
                return f"set {self.key} = {value} in {self.file}{_WITH_LEAVE.get(self.key, '')}"
        return f"raise {self.key} above {value} in {self.file}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What decided, and in which ``step``; ``file`` and ``key`` are None if no file of the project says it.

    ``proposal`` is the edit of a file that would end a refusal, ``hint`` what may help where nobody can know.
    """

    step: str
    rule: str
    file: str | None = None
    key: str | None = None
    proposal: Edit | None = None
    hint: str = ""

    def as_json(self) -> dict[str, Any]:
        """``{"step", "rule", "file", "key"}``, ``"proposal": {"action", "file", "key", "value"}`` and ``"hint"`` if there are any."""
        shown = asdict(self)
        return {name: value for name, value in shown.items() if value or name not in {"proposal", "hint"}}

    @property
    def row_rule(self) -> str:
        """As rows keep it: ``scope.exclude_urls: *.zip``, or a rule alone."""
        return f"{self.key}: {self.rule}" if self.key else self.rule

    @property
    def text(self) -> str:
        """For people: ``scope.exclude_urls: *.zip (sources/x.toml)``."""
        if self.rule == ROBOTS_UNAVAILABLE:
            return f"{self.file} could not be read"
        return f"{self.row_rule} ({self.file})" if self.file else self.row_rule

    @property
    def advice(self) -> str:
        """What to type: ``add "a.test" to scope.include_hosts in sources/x.toml``; empty without a proposal."""
        return "" if self.proposal is None else self.proposal.text


class Verdict(NamedTuple):
    """One sentence and its reasons: the first decided, the others would decide alike without it."""

    text: str
    reasons: Sequence[Reason]


@dataclass(frozen=True, slots=True)
class Step:
    """What a step came to; ``rule`` is ``KEY: RULE`` as rows keep it, where a rule decided it."""

    step: str
    outcome: str
    detail: str
    rule: str | None = None


def build_reason(
    step: str,
    decision: Decision,
    source: Source,
    include: Proposal | None = None,
    needed: Mapping[str, float] | None = None,
) -> Reason:
    """A decision of the source's rules, with the file and the key where the rule is written, as ``propose`` takes it."""
    if not decision.key:
        return Reason(step=step, rule=decision.rule, file=decision.file or None)
    proposal = None if decision.allowed else propose(decision, source, include=include, needed=needed)
    file, key = locate(source, decision.key)
    return Reason(step=step, rule=decision.rule, file=file, key=key, proposal=proposal)


def parse_reason(text: str, step: str, source: Source) -> Reason:
    """The reason that a row keeps as ``KEY: RULE``, or as a rule alone."""
    key, colon, rule = text.partition(": ")
    table = _POSITION.sub("", key).partition(".")[0]
    is_key = key == forgotten.KEY or (table in type(source).model_fields and " " not in key)
    if not (colon and is_key):
        return Reason(step=step, rule=text)
    return build_reason(step, Decision(False, rule, key=key), source)


def is_changed(changed: Collection[str], rule: str) -> bool:
    """Whether the key of a rule in a row (``KEY: RULE``) is among the changed keys of a fingerprint."""
    return not _list_names(rule.partition(": ")[0]).isdisjoint(changed)


def propose(
    decision: Decision, source: Source, *, include: Proposal | None = None, needed: Mapping[str, float] | None = None
) -> Edit | None:
    """The edit that would end a refusal by a rule; None where no edit of the project would.

    ``include`` is what is missing in a list of includes; ``needed`` is what the URL or the page has of that which limits
    count, by their keys. A value is set in the source's own file, which counts before all others.
    """
    key, number = decision.key, _NUMBER.match(decision.rule)
    if include is not None:
        file, key = locate(source, include.key)
        return Edit(action=EditKind.ADD, file=source.path if file == BUILT_IN else file, key=key, value=include.value)
    if key == forgotten.KEY:
        line = decision.rule if decision.rule in source.forgotten else f"{forgotten.PATTERN} {decision.rule}"
        return Edit(action=EditKind.REMOVE, file=forgotten.FILE, key=key, value=line)
    block = _BLOCK.match(key)
    if block is not None or key.rpartition(".")[2].startswith("exclude_"):
        # A rule of a row may be in no file any more.
        file, key = locate(source, key if block is None else block[1])
        value: Any = int(decision.rule) if key.endswith("exclude_ports") else decision.rule
        value = value if block is None else None
        return None if file == BUILT_IN else Edit(action=EditKind.REMOVE, file=file, key=key, value=value)
    opening = {**_OPEN_VALUES, **(needed or {})}
    if key in opening:
        return Edit(action=EditKind.SET, file=source.path, key=key, value=opening[key])
    if number is None or _list_names(key).isdisjoint({"scope", "keep", "fetch"}):
        return None
    return Edit(action=EditKind.RAISE, file=source.path, key=key, value=int(number[1]))


def locate(source: Source, key: str) -> tuple[str, str]:
    """The file that sets a key of a source, and the key's name there; ``built-in`` where no file does."""
    if key == forgotten.KEY:
        # No key of the source: the list is the project's.
        return forgotten.FILE, key
    return source.locate(key) if _list_names(key) & source.origins.keys() else (BUILT_IN, key)


def _list_names(key: str) -> set[str]:
    """The names of a key in a fingerprint and in origins: ``scope.host[1].include_paths`` is ``scope.host``."""
    table, _, name = _POSITION.sub("", key).partition(".")
    return {table, f"{table}.{name.partition('.')[0]}"}
