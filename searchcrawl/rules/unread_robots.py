"""What people are told of a robots.txt that could not be read. Pure."""

from __future__ import annotations

import re
from typing import Final

#: With it begin the errors of visits that ended because of it.
PREFIX: Final = "robots.txt: "
_STATUS: Final = re.compile(r"robots\.txt: (?:status )?([1-9][0-9]{2})\b")


def describe_unavailable(error: str | None) -> str:
    """Why a visit ended with the rule ``robots.unavailable``, by the error of its row."""
    status = None if error is None else _STATUS.match(error)
    said = "could not be read" if status is None else f"answered {status[1]}"
    return f"robots.txt {said}; tried again in the next run"
