"""Takes near copies out after a completed run or `apply`, where ``copies.near = "remove"`` asks for it (F6).

The signature of each text is made from the record in the cache, once for each text that is indexed: what is on most pages of
a host is left out before. Then all documents of the source are compared. In their order (``rules.copy_order``) a document
stays unless its text is near to that of a better one that stays: so the result depends on the documents alone. Documents
with the same content are one here; the best of them is what the others are compared with.

Those that are near to a better one get its content as the one by which copies are found: from there on they are copies
like all others, with the same removals, limits and successors. A document that changes is one of its own again until the
end of the run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final, NamedTuple

from searchcrawl.access import Access, read_record
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.opening import use_cache
from searchcrawl.commit.document_rows import resolve_again
from searchcrawl.commit.resolution import build_order_of
from searchcrawl.exceptions import CacheError
from searchcrawl.failpoints import reach
from searchcrawl.rules.copy_order import CopyOrder
from searchcrawl.rules.near_copies import NearGroups, sign
from searchcrawl.run import Run
from searchcrawl.store.documents import duplicate_key_table
from searchcrawl.store.documents.duplicate_key_table import NearRow
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.statements import split
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)


class SignedDocument(NamedTuple):
    """A document that may be a copy, with the digest of its content and the signature of its text, empty without one."""

    order: CopyOrder
    digest: bytes
    signature: str


def find_groups(documents: Iterable[SignedDocument]) -> dict[bytes, bytes]:
    """The digest of the content that stands for another, by the digest of that, where it is another one."""
    best: dict[bytes, tuple[CopyOrder, str]] = {}
    for document in documents:
        known = best.get(document.digest)
        if known is None:
            best[document.digest] = document.order, document.signature
        else:
            # The record of one of them may be lost: the text of the others is the same.
            best[document.digest] = min(known[0], document.order), known[1] or document.signature
    ordered = sorted(best, key=lambda digest: best[digest][0])
    groups = NearGroups()
    found: dict[bytes, bytes] = {}
    for number, digest in enumerate(ordered):
        first = groups.add(number, best[digest][1])
        if first != number:
            found[digest] = ordered[first]
    return found


#: So many documents a transaction.
_PART: Final = 500

#: What is indexed of the text of a document, by its URL and type.
CutText = Callable[[object, str, str], object]


def settle_near_copies(run: Run, cut: CutText) -> None:
    """Decides which documents are near copies of others; ``cut`` takes out what is not indexed of the text of a record.

    Where the source file does not ask for it any more, all are documents of their own again. A crash in between is
    harmless: the run goes on, and does all of it again at its end. Raises StoreError, LeaseLost.
    """
    changed = _take_out(run, cut) if run.source.copies.near == "remove" else _bring_back(run)
    if changed:
        logger.info("%s near copies of others now, or no longer", counted(changed, "document is", "documents are"))


def _take_out(run: Run, cut: CutText) -> int:
    """Returns how many documents are near copies now, or of others, or no longer."""
    with use_cache(run.project, run.source.name) as cache:
        standing = find_groups(_sign_all(run, cache, cut))
    changed = 0
    for rows in _load_pages(run):
        # None: its own content stands for it.
        wanted = {row.url_id: digest for row in rows if (digest := standing.get(row.own_digest)) != row.near_digest}
        changed += len(wanted)
        for part in split([*wanted]):
            _write(run, {url_id: wanted[url_id] for url_id in part})
    return changed


def _bring_back(run: Run) -> int:
    """Returns how many documents are near copies no longer; what tells near copies of each other is forgotten as well."""
    changed = 0
    while url_ids := run.read(duplicate_key_table.find_near, source_id=run.source_id, limit=_PART):
        changed += len(url_ids)
        _write(run, dict.fromkeys(url_ids))
    forget_signatures(run)
    return changed


def forget_signatures(run: Run, is_meant: Callable[[str], bool] = lambda _: True) -> None:
    """Forgets the signatures of the texts of a source, those that are meant by their URLs; they are made again when needed."""
    for rows in run.read_pages(duplicate_key_table.find_signed, source_id=run.source_id, key=itemgetter(0)):
        meant = [url_id for url_id, url in rows if is_meant(url)]
        if meant:
            run.write(duplicate_key_table.forget_signatures, url_ids=meant)


def _write(run: Run, digests: Mapping[int, bytes | None]) -> None:
    run.write(_write_part, source_id=run.source_id, digests=digests)
    reach("near.resolved")


def _read_text(cache: DocumentCache, cut: CutText, row: NearRow) -> tuple[str, Access | None] | None:
    """The indexed text of a document, and who may see it; None where it has no record, or one that cannot be read."""
    if row.place is None:
        return None
    try:
        record = cache.read_fields(row.place, url=row.document.url)
    except CacheError as error:
        logger.warning("%s; it is compared once it was fetched again", error)
        return None
    return str(cut(record.get("content"), row.document.url, row.mimetype) or ""), read_record(record)


def _sign_all(run: Run, cache: DocumentCache, cut: CutText) -> Iterator[SignedDocument]:
    """All documents that may be copies; those that have changed get a signature."""
    for rows in _load_pages(run):
        unsigned = (row for row in rows if row.signature is None)
        made = {row.url_id: sign(*text) for row in unsigned if (text := _read_text(cache, cut, row)) is not None}
        for part in split([*made]):
            signatures = {url_id: made[url_id] for url_id in part}
            run.write(duplicate_key_table.set_signatures, signatures=signatures)
            reach("near.signed")
        for row in rows:
            signature = made.get(row.url_id, row.signature or "")
            yield SignedDocument(build_order_of(row.document), row.own_digest, signature)


def _load_pages(run: Run) -> Iterator[list[NearRow]]:
    after: int | None = 0
    while after is not None:
        rows, after = run.read(duplicate_key_table.load_near_page, source_id=run.source_id, after=after)
        if rows:
            yield rows


def _write_part(transaction: Transaction, *, source_id: int, digests: Mapping[int, bytes | None]) -> None:
    before = duplicate_key_table.load(transaction, digests.keys())
    duplicate_key_table.set_digests(transaction, digests)
    resolve_again(transaction, source_id, before)
