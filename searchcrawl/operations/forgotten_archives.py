"""Which files came from a forgotten archive by another URL, from which redirects led to it.

An archive has no record of its own, and the records of its files tell its URL and not that of the server's answer. So
the rows of archives are asked, with the redirects that their visits followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import orjson

from searchcrawl import urls
from searchcrawl.rules.archives import list_archives
from searchcrawl.rules.forgotten import Forgotten
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import forget_table
from searchcrawl.store.urls.forget_table import AnsweredRow


def find_carriers(database: Database, source_id: int, forgotten: Forgotten) -> frozenset[str]:
    """The URLs without a record whose redirects led to, or over, what is forgotten. Raises StoreError."""
    keys = {urls.key(url) for url in forgotten.list_named()}
    found: set[str] = set()
    after = 0
    while rows := database.read(partial(forget_table.load_answered, source_id=source_id, after=after)):
        after = rows[-1].id
        found |= {row.url for row in rows if row.answered_key in keys or _passed(row, forgotten)}
    return frozenset(found)


def _passed(row: AnsweredRow, forgotten: Forgotten) -> bool:
    hops = [] if row.redirects is None else [hop["url"] for hop in orjson.loads(row.redirects)]
    passed = [*hops, *([] if row.answered_url is None else [row.answered_url])]
    return any(url != row.url and forgotten.find(url) is not None for url in passed)


def find_carried(database: Database, source_id: int, carriers: frozenset[str]) -> Iterator[int]:
    """The rows of files in archives of these URLs. Raises StoreError."""
    after = 0
    while carriers and (rows := database.read(partial(forget_table.load_rows, after=after, source_id=source_id))):
        after = rows[-1].id
        yield from (row.id for row in rows if is_carried(row.url, carriers))


def is_carried(url: str, carriers: frozenset[str]) -> bool:
    """Whether a URL may be that of a file in one of these archives."""
    return bool(carriers) and not carriers.isdisjoint(list_archives(url, in_archive=True))
