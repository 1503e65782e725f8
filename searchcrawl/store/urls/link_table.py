"""The links of each page, as compact blobs (docs: decisions/no-link-table): of row ids, with their texts as another.

Links that may not be followed (nofollow) get no rows, and ``explain`` names them: their blob has the keys of the targets
(``urls.key``), eight bytes each, at most MOST_TARGETS. Of links that were refused without a row only the number is known, by
rule and host.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from isal import isal_zlib
from sqlalchemy import bindparam, delete, func, insert, or_, select, update

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.many_rows import has_row, read_parts, upsert_rows, write_parts, write_rows
from searchcrawl.store.schema import documents, outlinks, refused_links, unfollowed_links, urls

#: So many characters of a title are kept: longer ones only tell less well which words of links it has.
_MOST_OF_TITLE: Final = 500


class LinkTexts(NamedTuple):
    """The title of a page, and by the row id of a target the texts that its main text has for links there."""

    title: str
    texts: Mapping[int, Sequence[str]]


class _Row(NamedTuple):
    """A row of the table."""

    url_id: int
    links: bytes
    texts: bytes | None


def encode_texts(found: LinkTexts) -> bytes | None:
    """Encodes texts, which have no tab and no line break; None where there is nothing to encode."""
    title = " ".join(found.title[:_MOST_OF_TITLE].split())
    if not title and not found.texts:
        return None
    lines = [title, *("\t".join((f"{target}", *texts)) for target, texts in found.texts.items())]
    return isal_zlib.compress("\n".join(lines).encode("utf-8", "replace"), 1)


def decode_texts(blob: bytes | None) -> LinkTexts:
    """Decodes what ``encode_texts`` encoded."""
    title, *lines = isal_zlib.decompress(blob).decode().split("\n") if blob else [""]
    parts = (line.split("\t") for line in lines)
    return LinkTexts(title, {int(target): texts for target, *texts in parts})


def encode(url_ids: Sequence[int]) -> bytes:
    """Encodes row ids as compressed differences of the sorted ids, without duplicates."""
    ordered = sorted(set(url_ids))
    differences = array("Q", (after - before for before, after in zip([0, *ordered], ordered, strict=False)))
    return isal_zlib.compress(differences.tobytes(), 1)


def decode(blob: bytes) -> list[int]:
    """Decodes a blob into sorted row ids."""
    differences = array("Q")
    differences.frombytes(isal_zlib.decompress(blob))
    total, ids = 0, []
    for difference in differences:
        total += difference
        ids.append(total)
    return ids


def store(
    transaction: Transaction, links: Mapping[int, Sequence[int]], texts: Mapping[int, LinkTexts] | None = None
) -> None:
    """Replaces the links of pages, given by page id, and their texts."""
    rows = [row._asdict() for row in _build_rows(links, texts or {})]
    upsert_rows(transaction, outlinks, ("url_id",), rows, ("links", "texts"))


def is_new(transaction: Transaction, links: Mapping[int, Sequence[int]], texts: Mapping[int, LinkTexts]) -> bool:
    """Whether any of these pages has other links, or other texts, than are stored."""
    query = select(outlinks.c.url_id, outlinks.c.links, outlinks.c.texts)
    stored = {_Row._make(row) for row in read_parts(transaction, query, outlinks.c.url_id, list(links))}
    return not stored.issuperset(_build_rows(links, texts))


def _build_rows(links: Mapping[int, Sequence[int]], texts: Mapping[int, LinkTexts]) -> Iterator[_Row]:
    for page, targets in links.items():
        yield _Row(page, encode(targets), encode_texts(texts[page]) if page in texts else None)


def load(transaction: Transaction, pages: Sequence[int]) -> dict[int, list[int]]:
    """Loads the links of pages that have any."""
    query = select(outlinks.c.url_id, outlinks.c.links)
    return {row.url_id: decode(row.links) for row in read_parts(transaction, query, outlinks.c.url_id, pages)}


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


def measure_unfollowed(transaction: Transaction, source_id: int) -> int | None:
    """How many bytes the links of a source take; None if no page of it has any."""
    query = select(func.sum(func.length(unfollowed_links.c.targets)))
    size: int | None = transaction.execute(query.where(unfollowed_links.c.source_id == source_id)).scalar()
    return None if size is None else int(size)


def is_unfollowed_cut(transaction: Transaction, source_id: int) -> bool:
    """Whether any page of a source has more such links than are known."""
    return has_row(transaction, unfollowed_links.c.source_id == source_id, unfollowed_links.c.cut == 1)


def forget_unfollowed(transaction: Transaction, pages: Sequence[int]) -> None:
    """Forgets the links of pages, by id: they have others now, or none."""
    write_parts(transaction, delete(unfollowed_links), unfollowed_links.c.url_id, pages)


_INSERT_UNFOLLOWED: Final = insert(unfollowed_links)


def add_unfollowed(transaction: Transaction, source_id: int, found: Iterable[Unfollowed]) -> None:
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
    write_rows(transaction, _INSERT_UNFOLLOWED, rows)


def find_unfollowed(transaction: Transaction, source_id: int, key: int, *, gone: Sequence[int]) -> list[UnfollowedLink]:
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


#: A source keeps so many pairs of rule and host, those with the most links; all others are one entry.
MOST_PAIRS: Final = 200
#: A name in DNS is shorter.
_MAX_HOST_CHARACTERS: Final = 300
#: Rule and host of the entry of all others.
_OTHERS: Final = (None, None)


class RefusedPair(NamedTuple):
    """Links that a rule refused on a host; without both: those of all pairs that have no entry of their own."""

    rule: str | None
    host: str | None
    links: int


def load_refused(transaction: Transaction, source_id: int) -> list[RefusedPair]:
    """What was counted for a source: the pair with the most links first, all others last."""
    found = [RefusedPair(*pair, links) for pair, (_, links) in _load_pairs(transaction, source_id).items()]
    return sorted(found, key=lambda row: (row.rule is None, -row.links, row.rule, row.host))


def add_refused(transaction: Transaction, source_id: int, counts: Mapping[tuple[str, str], int]) -> None:
    """Adds to the numbers of links, by rule and host."""
    if not counts:
        return
    known = _load_pairs(transaction, source_id)
    sums = {pair: links for pair, (_, links) in known.items() if pair != _OTHERS}
    for (rule, host), links in counts.items():
        pair = (rule, host[:_MAX_HOST_CHARACTERS])
        sums[pair] = sums.get(pair, 0) + links
    ordered = sorted(sums, key=lambda pair: (-sums[pair], pair))
    wanted: dict[tuple[str | None, str | None], int] = {pair: sums[pair] for pair in ordered[:MOST_PAIRS]}
    rest = sum(sums[pair] for pair in ordered[MOST_PAIRS:]) + known.get(_OTHERS, (0, 0))[1]
    if rest:
        wanted[_OTHERS] = rest
    _write_pairs(transaction, source_id, known, wanted)


def clear_refused(transaction: Transaction, source_id: int) -> None:
    """Begins to count anew."""
    transaction.execute(delete(refused_links).where(refused_links.c.source_id == source_id))


def _load_pairs(transaction: Transaction, source_id: int) -> dict[tuple[str | None, str | None], tuple[int, int]]:
    """Id and number of links by rule and host."""
    query = select(refused_links).where(refused_links.c.source_id == source_id)
    return {(row.rule, row.host): (row.id, row.links) for row in transaction.execute(query)}


_UPDATE_PAIR: Final = (
    update(refused_links).where(refused_links.c.id == bindparam("row_id")).values(links=bindparam("new_links"))
)
_INSERT_PAIR: Final = insert(refused_links)


def _write_pairs(
    transaction: Transaction,
    source_id: int,
    known: Mapping[tuple[str | None, str | None], tuple[int, int]],
    wanted: Mapping[tuple[str | None, str | None], int],
) -> None:
    gone = [row_id for pair, (row_id, _) in known.items() if pair not in wanted]
    write_parts(transaction, delete(refused_links), refused_links.c.id, gone)
    changed = [
        {"row_id": known[pair][0], "new_links": links}
        for pair, links in wanted.items()
        if pair in known and known[pair][1] != links
    ]
    write_rows(transaction, _UPDATE_PAIR, changed)
    fresh = [
        {"source_id": source_id, "rule": pair[0], "host": pair[1], "links": links}
        for pair, links in wanted.items()
        if pair not in known
    ]
    write_rows(transaction, _INSERT_PAIR, fresh)
