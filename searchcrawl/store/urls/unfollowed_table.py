"""Links that a crawl may not follow (nofollow), of each page as one compact blob: they get no rows, and ``explain`` names
them.

The blob has the keys of the targets (``urls.key``), eight bytes each, at most MOST_TARGETS.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from sqlalchemy import bindparam, delete, exists, func, insert, or_, select

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.many_rows import write_rows
from searchcrawl.store.schema import documents, unfollowed_links, urls
from searchcrawl.store.statements import split

#: What a target takes.
BYTES: Final = 8
#: Of a page with more such links only the first are known: 8 KB of a page.
MOST_TARGETS: Final = 1_000
#: The links of a source take so much; of further pages it is known only that they have some.
MOST_BYTES: Final = 64 << 20
#: Of a URL to which more pages have such links, so many are named.
_MOST_PAGES: Final = 10


class Nofollow(IntEnum):
    """What says that a link is not to be followed."""

    #: the link itself
    REL = 1
    #: a meta element of the page, for all its links
    META = 2
    #: the header X-Robots-Tag alone, for all links of the page
    HEADER = 3

    @property
    def title(self) -> str:
        """In words."""
        return _TITLES[self]


_TITLES: Final = {
    Nofollow.REL: "rel=nofollow",
    Nofollow.META: "meta robots nofollow",
    Nofollow.HEADER: "X-Robots-Tag nofollow",
}


class Unfollowed(NamedTuple):
    """The targets of links of one page, by key, that are not followed because of ``kind``; ``cut``: it has more."""

    page_id: int
    kind: Nofollow
    keys: Sequence[int]
    cut: bool = False


class UnfollowedLink(NamedTuple):
    """A page with a link to a URL that is not followed, and why."""

    page: str
    kind: Nofollow


def measure(transaction: Transaction, source_id: int) -> int | None:
    """How many bytes the links of a source take; None if no page of it has any."""
    query = select(func.sum(func.length(unfollowed_links.c.targets)))
    size: int | None = transaction.execute(query.where(unfollowed_links.c.source_id == source_id)).scalar()
    return None if size is None else int(size)


def is_cut(transaction: Transaction, source_id: int) -> bool:
    """Whether any page of a source has more such links than are known."""
    here = unfollowed_links.c.source_id == source_id, unfollowed_links.c.cut == 1
    return bool(transaction.execute(select(exists().where(*here))).scalar())


def forget(transaction: Transaction, pages: Sequence[int]) -> None:
    """Forgets the links of pages, by id: they have others now, or none."""
    for part in split(pages):
        transaction.execute(delete(unfollowed_links).where(unfollowed_links.c.url_id.in_(part)))


_INSERT: Final = insert(unfollowed_links)


def add(transaction: Transaction, source_id: int, found: Iterable[Unfollowed]) -> None:
    """Adds the links of pages of which nothing is known."""
    rows = [
        {
            "url_id": one.page_id,
            "kind": int(one.kind),
            "source_id": source_id,
            "targets": array("q", one.keys).tobytes(),
            "cut": int(one.cut),
        }
        for one in found
    ]
    write_rows(transaction, _INSERT, rows)


def find(transaction: Transaction, source_id: int, key: int, *, gone: Sequence[int]) -> list[UnfollowedLink]:
    """The pages with links to the URL with this key, those that a whole page refuses first; at most ten.

    It reads the links of all pages of the source. Pages with one of the codes ``gone`` that are not in the index do not
    count, nor do those that a rule refuses.
    """
    # Eight bytes of other keys that happen to be the same are as likely as two URLs with one key.
    here = dialect_of(transaction).contains_bytes(unfollowed_links.c.targets, array("q", [key]).tobytes())
    stays = or_(urls.c.code.not_in([*gone]), documents.c.indexed_version.is_not(None))
    query = (
        select(urls.c.url, unfollowed_links.c.kind)
        .select_from(
            unfollowed_links.join(urls, urls.c.id == unfollowed_links.c.url_id).outerjoin(
                documents, documents.c.url_id == urls.c.id
            )
        )
        .where(unfollowed_links.c.source_id == bindparam("source_id"), here, stays)
        .order_by(unfollowed_links.c.kind.desc(), urls.c.id)
        .limit(_MOST_PAGES)
    )
    rows = transaction.execute(query, {"source_id": source_id})
    return [UnfollowedLink(row.url, Nofollow(row.kind)) for row in rows]
