"""The links of each page, as one compact blob of row ids, and their texts as another (docs: decisions/no-link-table)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from isal import isal_zlib
from sqlalchemy import Insert, select

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import Dialect, dialect_of
from searchcrawl.store.many_rows import write_rows
from searchcrawl.store.schema import outlinks
from searchcrawl.store.statements import split

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
    write_rows(transaction, _build_upsert(dialect_of(transaction)), rows)


@cache
def _build_upsert(dialect: Dialect) -> Insert:
    return dialect.upsert(outlinks, ["url_id"], lambda new: {"links": new.links, "texts": new.texts})


def is_new(transaction: Transaction, links: Mapping[int, Sequence[int]], texts: Mapping[int, LinkTexts]) -> bool:
    """Whether any of these pages has other links, or other texts, than are stored."""
    rows = set(_build_rows(links, texts))
    for part in split(list(links)):
        query = select(outlinks.c.url_id, outlinks.c.links, outlinks.c.texts).where(outlinks.c.url_id.in_(part))
        rows -= {_Row._make(row) for row in transaction.execute(query)}
    return bool(rows)


def _build_rows(links: Mapping[int, Sequence[int]], texts: Mapping[int, LinkTexts]) -> Iterator[_Row]:
    for page, targets in links.items():
        yield _Row(page, encode(targets), encode_texts(texts[page]) if page in texts else None)


def load(transaction: Transaction, pages: Sequence[int]) -> dict[int, list[int]]:
    """Loads the links of pages that have any."""
    found: dict[int, list[int]] = {}
    for part in split(pages):
        query = select(outlinks.c.url_id, outlinks.c.links).where(outlinks.c.url_id.in_(part))
        found.update({row.url_id: decode(row.links) for row in transaction.execute(query)})
    return found
