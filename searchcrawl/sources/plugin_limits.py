"""How often a plug-in may fail before the run ends: SEARCHCRAWL_PLUGIN_ERRORS (K4)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from searchcrawl.wording import counted

#: The name of the setting.
NAME: Final = "SEARCHCRAWL_PLUGIN_ERRORS"
_WANTED: Final = "must be two numbers: so many documents in a row, and percent of them, as [20, 5]"


class PluginLimits(NamedTuple):
    """``in_a_row`` documents, or ``percent`` of all and more than ``in_a_row`` of them; 0 is no limit."""

    in_a_row: int
    percent: float

    def find_passed(self, *, errors: int, in_a_row: int, documents: int) -> str | None:
        """Which limit a plug-in passed, in words; None while it passed none."""
        if 0 < self.in_a_row <= in_a_row:
            return f"{counted(in_a_row, 'document', 'documents')} in a row"
        if self.percent > 0 and errors > self.in_a_row and errors * 100 > self.percent * documents:
            return f"{errors} of {counted(documents, 'document', 'documents')}"
        return None


def parse_limits(value: Any) -> PluginLimits:
    """The limits of a setting, which may be a list or a text such as ``20,5``; raises ValueError."""
    parts = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
    if len(parts) != 2 or any(isinstance(part, bool) for part in parts):
        raise ValueError(_WANTED)
    try:
        limits = PluginLimits(int(str(parts[0]).strip()), float(str(parts[1]).strip()))
    except ValueError:
        raise ValueError(_WANTED) from None
    if limits.in_a_row < 0 or not 0 <= limits.percent <= 100:
        raise ValueError(_WANTED)
    return limits
