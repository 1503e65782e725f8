"""The messages that searchcrawl logs, each with an id that stays the same when its text changes (J3)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

_FILE: Final = "messages.txt"
_PACKAGE: Final = "searchcrawl."


_LOGGERS: Final = ("searchcrawl", "scrapy", "twisted")
_NOISY: Final = (
    "asyncio",
    "aiohttp",
    "botocore",
    "urllib3",
    "pysolr",
    "smbprotocol",
    "spnego",
    "scrapy.middleware",
    "scrapy.statscollectors",
)


def set_levels(level: str | int) -> None:
    """Has this process make records from ``level`` on, and of libraries that say much from WARNING on."""
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(level)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)


class Message(NamedTuple):
    """A message: its id, the module that logs it, and its text with the places of what varies."""

    id: str
    module: str
    text: str


def list_messages() -> Iterator[Message]:
    """All messages, in the order of their ids; one that is logged no more has the module ``-``."""
    for line in (files("searchcrawl") / _FILE).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield Message(*line.split("\t"))


@cache
def _list_by_text() -> dict[str, list[Message]]:
    found: dict[str, list[Message]] = {}
    for message in list_messages():
        found.setdefault(message.text, []).append(message)
    return found


def find_id(record: logging.LogRecord) -> str:
    """The id of the message of a record; empty for messages of libraries."""
    same = _list_by_text().get(record.msg, []) if isinstance(record.msg, str) else []
    for message in same:
        if record.name == _PACKAGE + message.module:
            return message.id
    # A spider logs under its own name; a text that is all places (`%s`) may be anybody's.
    return same[0].id if len(same) == 1 and record.pathname.endswith(f"{same[0].module.replace('.', '/')}.py") else ""
