"""One way to say no: every rule answers with a Decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something is allowed, and which rule (as written) of which file and key decided."""

    allowed: bool
    rule: str = ""
    file: str = ""
    key: str = ""


#: Allowed, and no rule in particular said so.
ALLOWED: Final = Decision(True)
