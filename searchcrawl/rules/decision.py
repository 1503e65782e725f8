"""What a rule answers, and lists of include and exclude rules that name every rule that matches. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

#: The key of what a robots.txt decides; rows have only its line.
ROBOTS_KEY: Final = "robots.txt"
#: The rule of a refusal because a list of includes has no entry that matches.
NO_INCLUDE: Final = "no include matches"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something is allowed, and which rule (as written) of which file and key decided."""

    allowed: bool
    rule: str = ""
    file: str = ""
    key: str = ""

    @property
    def text(self) -> str:
        """A refusal as rows keep it: ``KEY: RULE``."""
        return f"{self.key}: {self.rule}" if self.key else self.rule

    @property
    def is_exclusion(self) -> bool:
        """Whether an exclude rule refuses, or the list of what is forgotten, and neither a limit nor a missing include."""
        return not self.allowed and self.key.rpartition(".")[2].startswith(("exclude_", "forget"))

    def propose_include(self, values: Mapping[str, str | int]) -> Proposal | None:
        """Returns the include that would end this refusal; None for any decision that is not ``NO_INCLUDE``, or of another list.

        ``values`` has the host, port, path and URL by the name of the include list (the last part of its key).
        """
        value = values.get(self.key.rpartition(".")[2]) if self.rule == NO_INCLUDE else None
        return None if value is None else Proposal(self.key, value)


#: Allowed, and no rule in particular said so.
ALLOWED: Final = Decision(True)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The include that would end a refusal by ``NO_INCLUDE``: ``value`` is to be added to the list ``key``."""

    key: str
    value: str | int


class RuleList:
    """The include and exclude rules of one kind; a subclass says in ``find`` which of them match.

    ``decisions`` has one Decision for each rule: first the excludes, then the includes, each in the order of the file.
    ``include_key`` is the key of the list to which a missing include would be added. A list without rules is false.
    """

    __slots__ = ("_no_include", "decisions", "include_count")

    def __init__(self, decisions: Iterable[Decision], include_key: str, file: str) -> None:
        self.decisions = sorted(decisions, key=lambda decision: decision.allowed)
        #: the number of includes; with 0 everything is included
        self.include_count = sum(decision.allowed for decision in self.decisions)
        self._no_include = Decision(False, NO_INCLUDE, file, include_key)

    def __bool__(self) -> bool:
        return bool(self.decisions)

    def find(self, subject: Any) -> list[Decision]:
        """All that these rules say about ``subject``, refusals first: excludes, the missing include, includes."""
        raise NotImplementedError

    def list_refusals(self, subject: Any) -> list[Decision]:
        """The rules that refuse ``subject``: the excludes that match, and the missing include."""
        return [decision for decision in self.find(subject) if not decision.allowed]

    def list_includes(self, subject: Any) -> list[Decision]:
        """The includes that match ``subject``."""
        return [decision for decision in self.find(subject) if decision.allowed]

    def require_include(self, found: list[Decision]) -> list[Decision]:
        """Adds a refusal to the rules that match, if there are includes and none of them matches."""
        if not self.include_count or (found and found[-1].allowed):
            return found
        return [*found, self._no_include]


#: With it begin the errors of visits that ended because of it.
ROBOTS_ERROR: Final = "robots.txt: "
_STATUS: Final = re.compile(r"robots\.txt: (?:status )?([1-9][0-9]{2})\b")


def describe_unavailable(error: str | None) -> str:
    """Why a visit ended with the rule ``robots.unavailable``, by the error of its row."""
    status = None if error is None else _STATUS.match(error)
    said = "could not be read" if status is None else f"answered {status[1]}"
    return f"robots.txt {said}; tried again in the next run"
