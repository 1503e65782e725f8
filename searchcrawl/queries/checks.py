"""What ``doctor`` says of each thing that it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from searchcrawl.sources.secrets import redact


class Health(StrEnum):
    """How something is that a run needs."""

    #: a run finds it
    OK = "ok"
    #: a run begins, and somebody should see to it
    WARNING = "warning"
    #: a run fails, or a part of it
    WRONG = "wrong"
    #: it was not looked at
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at; ``remedy`` is what to do about it, None where nothing is to be done."""

    what: str
    state: Health
    message: str
    source: str | None = None
    remedy: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As ``--json`` has it, without secrets."""
        return {
            "what": self.what,
            "source": self.source,
            "state": self.state.value,
            "message": redact(self.message),
            "remedy": None if self.remedy is None else redact(self.remedy),
        }


def find_ok(what: str, message: str, *, source: str | None = None) -> Check:
    """Nothing is wrong with it."""
    return Check(what=what, state=Health.OK, message=message, source=source)


def find_wrong(what: str, message: object, remedy: str, *, source: str | None = None) -> Check:
    """A run fails because of it."""
    return Check(what=what, state=Health.WRONG, message=str(message), source=source, remedy=remedy)


def find_doubtful(what: str, message: object, remedy: str, *, source: str | None = None) -> Check:
    """A run begins, and somebody should see to it."""
    return Check(what=what, state=Health.WARNING, message=str(message), source=source, remedy=remedy)


def find_skipped(what: str, message: str, *, source: str | None = None) -> Check:
    """It was not looked at; the message says why."""
    return Check(what=what, state=Health.SKIPPED, message=message, source=source)
