"""What decided about a URL: a rule, where it is written, and what to add where an include is missing (L1)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Final

from searchcrawl.rules import forgotten
from searchcrawl.rules.decision import Decision, Proposal
from searchcrawl.sources.config import Source
from searchcrawl.sources.effective import BUILT_IN

_POSITION: Final = re.compile(r"\[[0-9]+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What decided, and in which ``step``; ``file`` and ``key`` are None if no file of the project says it.

    ``proposal`` is the include that would end a refusal because no include matches, with its key as in ``file``.
    """

    step: str
    rule: str
    file: str | None = None
    key: str | None = None
    proposal: Proposal | None = None

    def as_json(self) -> dict[str, Any]:
        """``{"step", "rule", "file", "key"}``, and ``"proposal": {"key", "value"}`` where there is one."""
        shown = asdict(self)
        if self.proposal is None:
            del shown["proposal"]
        return shown

    @property
    def row_rule(self) -> str:
        """As rows keep it: ``scope.exclude_urls: *.zip``, or a rule alone."""
        return f"{self.key}: {self.rule}" if self.key else self.rule

    @property
    def text(self) -> str:
        """For people: ``scope.exclude_urls: *.zip (sources/x.toml)``."""
        return f"{self.row_rule} ({self.file})" if self.file else self.row_rule

    @property
    def advice(self) -> str:
        """What to type: ``add "a.test" to scope.include_hosts in sources/x.toml``; empty without a proposal."""
        if self.proposal is None:
            return ""
        value = json.dumps(self.proposal.value, ensure_ascii=False)
        return f"add {value} to {self.proposal.key}" + (f" in {self.file}" if self.file else "")


def build_reason(step: str, decision: Decision, source: Source, proposal: Proposal | None = None) -> Reason:
    """A decision of the source's rules, with the file and the key where the rule is written."""
    if not decision.key:
        return Reason(step=step, rule=decision.rule, file=decision.file or None)
    if decision.key == forgotten.KEY:
        # No key of the source: the list is the project's.
        return Reason(step=step, rule=decision.rule, file=forgotten.FILE, key=forgotten.KEY)
    file, key = locate(source, decision.key)
    if proposal is not None:
        proposal = Proposal(locate(source, proposal.key)[1], proposal.value)
    return Reason(step=step, rule=decision.rule, file=file, key=key, proposal=proposal)


def parse_reason(text: str, step: str, source: Source) -> Reason:
    """The reason that a row keeps as ``KEY: RULE``, or as a rule alone."""
    key, colon, rule = text.partition(": ")
    table = _POSITION.sub("", key).partition(".")[0]
    if colon and key == forgotten.KEY:
        return Reason(step=step, rule=rule, file=forgotten.FILE, key=key)
    if not colon or table not in type(source).model_fields or " " in key:
        return Reason(step=step, rule=text)
    return build_reason(step, Decision(False, rule, source.file, key), source)


def locate(source: Source, key: str) -> tuple[str, str]:
    """The file that sets a key of a source, and the key's name there; ``built-in`` where no file does."""
    return source.locate(key) if _table_and_key(key) & source.origins.keys() else (BUILT_IN, key)


def is_changed(changed: Collection[str], rule: str) -> bool:
    """Whether the key of a rule in a row (``KEY: RULE``) is among the changed keys of a fingerprint."""
    return bool(_table_and_key(rule.partition(": ")[0]) & set(changed))


def _table_and_key(key: str) -> set[str]:
    """The names of a key in a fingerprint and in origins: ``scope.host[1].include_paths`` is ``scope.host``."""
    table, _, name = _POSITION.sub("", key).partition(".")
    return {table, f"{table}.{name.partition('.')[0]}"}
