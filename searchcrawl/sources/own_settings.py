"""The values that settings of ours, and those of Scrapy for the memory of a process, may have."""

from __future__ import annotations

import difflib
import math
from typing import Any, Final

from searchcrawl import settings as shipped
from searchcrawl.sources import plugin_limits

_OURS: Final = "SEARCHCRAWL_"
NAMES: Final = frozenset(name for name in vars(shipped) if name.startswith(_OURS))
#: Those of Scrapy's that are numbers, and that a run reads where an error has no name.
_OF_MEMORY: Final = frozenset({"MEMUSAGE_LIMIT_MB", "MEMUSAGE_WARNING_MB", "MEMUSAGE_CHECK_INTERVAL_SECONDS"})
_WHOLE: Final = frozenset({"MEMUSAGE_LIMIT_MB", "MEMUSAGE_WARNING_MB"})
_SWITCHES: Final = frozenset(name for name in NAMES if isinstance(getattr(shipped, name), bool))
_ON_AND_OFF: Final = frozenset({"0", "1", "true", "false"})


def find_wrong_value(name: str, value: Any) -> str | None:
    """What a setting must be that has another value, or that there is none of this name; None if nothing is wrong."""
    if name.startswith(_OURS) and name not in NAMES:
        # The beginning that all share would make each of them alike.
        near = difflib.get_close_matches(name.removeprefix(_OURS), [each.removeprefix(_OURS) for each in NAMES], n=1)
        return f"there is no such setting{f' (did you mean {_OURS}{near[0]}?)' if near else ''}"
    if name == plugin_limits.NAME:
        try:
            plugin_limits.parse_limits(value)
        except ValueError as error:
            return str(error)
        return None
    if name in _SWITCHES:
        return None if str(value).lower() in _ON_AND_OFF else "must be True or False"
    if name not in NAMES | _OF_MEMORY:
        return None
    if name in _WHOLE:
        return None if _read(value).is_integer() else "must be a whole number of at least 0"
    return "must be a number of at least 0" if math.isnan(_read(value)) else None


def _read(value: Any) -> float:
    """The number of a setting; not a number where it is none that a limit may have."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return math.nan
    return number if 0 <= number < math.inf else math.nan
