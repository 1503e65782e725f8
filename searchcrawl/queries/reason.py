"""What decided about a URL: a rule, where it is written, and what to add where an include is missing (L1)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from searchcrawl.rules.decision import NO_INCLUDE, Decision, Proposal
from searchcrawl.sources.config import Origin, Source
from searchcrawl.sources.effective import BUILT_IN

_INDEX: Final = re.compile(r"\[[0-9]+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Because:
    """What decided, and in which ``step``; ``file`` and ``key`` are None where no file of the project says it.

    ``proposal`` is the include that would end a refusal for want of one, its key as in ``file``.
    """

    step: str
    rule: str
    file: str | None = None
    key: str | None = None
    proposal: Proposal | None = None

    def as_json(self) -> dict[str, Any]:
        """``{"step", "rule", "file", "key"}``, and ``"proposal": {"key", "value"}`` where there is one."""
        shown: dict[str, Any] = {"step": self.step, "rule": self.rule, "file": self.file, "key": self.key}
        if self.proposal is not None:
            shown["proposal"] = {"key": self.proposal.key, "value": self.proposal.value}
        return shown

    @property
    def text(self) -> str:
        """For people: ``scope.exclude_urls: *.zip (sources/x.toml)``."""
        said = f"{self.key}: {self.rule}" if self.key else self.rule
        return f"{said} ({self.file})" if self.file else said


def because(step: str, decision: Decision, source: Source, proposal: Proposal | None = None) -> Because:
    """A decision of the source's rules, with the file and the key where it is written, as it is written."""
    if not decision.key:
        return Because(step=step, rule=decision.rule, file=decision.file or None)
    file, key = written(source, decision.key)
    if proposal is not None:
        proposal = Proposal(written(source, proposal.key)[1], proposal.value)
    return Because(step=step, rule=decision.rule, file=file, key=key, proposal=proposal)


def because_beneath(decision: Decision, origin: Origin) -> Because:
    """A limit of the boundary that would hold without the one above it."""
    key = f"{origin.table}.{decision.key}" if origin.table else decision.key
    return Because(step="boundary", rule=decision.rule, file=origin.file, key=key)


def written(source: Source, key: str) -> tuple[str, str]:
    """The file and the name of a key of a source; ``built-in`` where nobody wrote it."""
    return source.locate(key) if _named(key) & source.origins.keys() else (BUILT_IN, key)


def is_changed(changed: Collection[str], rule: str) -> bool:
    """Whether the key of a rule that a row keeps (``KEY: RULE``) is among the keys of a fingerprint that differ."""
    return bool(_named(rule.partition(": ")[0]) & set(changed))


def _named(key: str) -> set[str]:
    """The names of a key in a fingerprint and in origins: ``scope.host[1].include_paths`` is ``scope.host``."""
    table, _, name = _INDEX.sub("", key).partition(".")
    return {table, f"{table}.{name.partition('.')[0]}"}


def advice(proposal: Proposal, file: str | None) -> str:
    """A proposal as something to be typed: ``add "www.acme.test" to scope.include_hosts in sources/x.toml``."""
    value = json.dumps(proposal.value, ensure_ascii=False)
    return f"add {value} to {proposal.key}" + (f" in {file}" if file else "")


def of_row(text: str, step: str, source: Source) -> Because:
    """The rule that a row keeps, ``KEY: RULE`` or a rule alone, as what decided."""
    key, colon, rule = text.partition(": ")
    table = _INDEX.sub("", key).partition(".")[0]
    if not colon or table not in type(source).model_fields or " " in key:
        return Because(step=step, rule=text)
    return because(step, Decision(False, rule, source.file, key), source)


def is_missing_include(reason: Because) -> bool:
    """Whether it refuses for want of an include."""
    return reason.rule == NO_INCLUDE
