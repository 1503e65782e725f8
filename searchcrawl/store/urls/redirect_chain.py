"""Part of the URL table: the chain of redirects that leads to a row."""

from __future__ import annotations

from typing import Final

from sqlalchemy import select

from searchcrawl.codes import REDIRECTS, Code
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import urls

_REDIRECTING: Final = sorted(REDIRECTS | {int(Code.REDIRECT_LOOP)})


def find_redirects_before(transaction: Transaction, url_id: int, *, limit: int) -> list[str]:
    """The URLs of the chain of redirects that leads to a row, the nearest first, at most ``limit``."""
    found: list[str] = []
    referrer = urls.alias("referrer")
    while len(found) < limit:
        query = (
            select(referrer.c.id, referrer.c.url)
            .select_from(urls.join(referrer, referrer.c.id == urls.c.referrer_id))
            .where(urls.c.id == url_id, referrer.c.code.in_(_REDIRECTING))
        )
        row = transaction.execute(query).one_or_none()
        if row is None or row.url in found:
            break
        url_id = row.id
        found.append(row.url)
    return found
