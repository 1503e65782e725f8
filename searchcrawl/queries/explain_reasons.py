"""What decided about a URL: a rule, where it is written, and what to add where an include is missing (L1)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from searchcrawl.codes import ROBOTS_UNAVAILABLE
from searchcrawl.queries.explain_advice import Edit, locate, propose, table_and_key
from searchcrawl.rules import forgotten
from searchcrawl.rules.decision import Decision, Proposal
from searchcrawl.sources.config import Source

_POSITION: Final = re.compile(r"\[[0-9]+\]")


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

    def is_same_rule(self, other: Reason) -> bool:
        """Whether both are one rule of one file, whatever would end them."""
        return (self.rule, self.file, self.key) == (other.rule, other.file, other.key)

    def as_json(self) -> dict[str, Any]:
        """``{"step", "rule", "file", "key"}``, ``"proposal": {"action", "file", "key", "value"}`` and ``"hint"`` if there are any."""
        shown = asdict(self)
        if self.proposal is None:
            del shown["proposal"]
        if not self.hint:
            del shown["hint"]
        return shown

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
    if decision.key == forgotten.KEY:
        # No key of the source: the list is the project's.
        return Reason(step=step, rule=decision.rule, file=forgotten.FILE, key=forgotten.KEY, proposal=proposal)
    file, key = locate(source, decision.key)
    return Reason(step=step, rule=decision.rule, file=file, key=key, proposal=proposal)


def parse_reason(text: str, step: str, source: Source) -> Reason:
    """The reason that a row keeps as ``KEY: RULE``, or as a rule alone."""
    key, colon, rule = text.partition(": ")
    table = _POSITION.sub("", key).partition(".")[0]
    if colon and key == forgotten.KEY:
        return build_reason(step, Decision(False, rule, forgotten.FILE, key), source)
    if not colon or table not in type(source).model_fields or " " in key:
        return Reason(step=step, rule=text)
    return build_reason(step, Decision(False, rule, source.file, key), source)


def is_changed(changed: Collection[str], rule: str) -> bool:
    """Whether the key of a rule in a row (``KEY: RULE``) is among the changed keys of a fingerprint."""
    return bool(table_and_key(rule.partition(": ")[0]) & set(changed))


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence and its reasons: the first decided, the others would decide alike without it."""

    text: str
    reasons: Sequence[Reason]
