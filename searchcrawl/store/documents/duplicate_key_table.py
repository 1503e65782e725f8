"""The duplicate keys of documents (content, canonical link, display URL), and which document is indexed for which.

Where near copies are taken out, another text stands for that of a document, found by its signature (F6).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Column,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    select,
    text,
    update,
)

from searchcrawl import urls as identity
from searchcrawl.codes import WITH_DOCUMENT, Code
from searchcrawl.items import Place
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.documents.document_events import IS_COPY, RESOLVED
from searchcrawl.store.documents.shared_copy_table import SURVIVORS, build_found, find_places
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.many_rows import has_row, read_page, read_parts, select_fields, set_rows, write_parts, write_rows
from searchcrawl.store.schema import DOCUMENTS_WITH_URLS, PLACE, documents, urls
from searchcrawl.store.statements import split, unindexed
from searchcrawl.store.states import INDEXABLE, REMOVALS, DocumentState

_CLASH: Final = int(Code.DISPLAY_URL_CLASH)
#: The URLs of its duplicates are fields of an indexed document. If there are more copies, only the first are listed.
MOST_DUPLICATES: Final = 1000


class KeyedDocument(NamedTuple):
    """A document with its duplicate keys, and the result that is stored.

    ``copy_digest`` is that of the content that stands for it: its own, or that of which it is a near copy.
    ``code`` is that of the document: 200, or 909, 956, 964 where ``duplicate_of`` is indexed instead. ``cached``
    tells whether the cache has its record. ``leaving`` is 1 if there is evidence against it: it is to be removed.
    ``redirected``: the page did not answer itself, but by a redirect to another URL. That is what it was made from, whatever
    became of a later visit. ``url_fit`` is how its URL fits it (``rules.copy_order``), None where that is not known. ``place`` is 0, or that of another source beside the own one in the order of names.
    """

    url_id: int
    url: str
    copy_digest: bytes | None
    canonical_key: int | None
    display_key: int | None
    code: int
    duplicate_of: int | None
    state: int
    leaving: int
    cached: bool
    redirected: bool = False
    url_fit: int | None = None
    place: int = 0

    @property
    def key(self) -> int:
        """The key of its URL."""
        return identity.key(self.url)

    @property
    def is_good(self) -> bool:
        """Whether the page was fetched well, and no later visit brought evidence against it."""
        if self.code == _CLASH:
            return True
        # A copy is removed from the index because of another document, which is no evidence against it.
        copy = self.state in REMOVALS and self.duplicate_of is not None
        return self.code in WITH_DOCUMENT and not self.leaving and (copy or self.state in INDEXABLE)


#: The columns of ``KeyedDocument``.
KEYED_DOCUMENTS: Final = select_fields(
    KeyedDocument,
    documents,
    urls,
    copy_digest=func.coalesce(documents.c.near_digest, documents.c.copy_digest),
    cached=documents.c.segment.is_not(None),
    redirected=documents.c.answered_key.is_not(None),
    place=literal_column("0"),
).select_from(DOCUMENTS_WITH_URLS)


def load(transaction: Transaction, url_ids: Collection[int]) -> dict[int, KeyedDocument]:
    """Loads the documents of these rows by id, good or not."""
    found = _select(transaction, KEYED_DOCUMENTS, documents.c.url_id, url_ids)
    return {document.url_id: document for document in found}


class DuplicateKeys:
    """Finds the good documents of a source by their duplicate keys, for duplicate resolution.

    And those of other sources that the index has, where the source shares copies with them.
    """

    def __init__(self, transaction: Transaction, source_id: int) -> None:
        self._transaction = transaction
        self._source_id = source_id
        self._of_source = documents.c.source_id == source_id
        self._url_of_source = urls.c.source_id == source_id

    @cached_property
    def _places(self) -> dict[int, int]:
        return find_places(self._transaction, self._source_id)

    def find_survivors(self, digests: Collection[bytes]) -> list[KeyedDocument]:
        """Documents with this content that are indexed themselves."""
        here = SURVIVORS, self._of_source
        found = self._find_good(digests, *here, documents.c.near_digest.is_(None), one_of=documents.c.copy_digest)
        # A near copy may be the best one that is left. A query of its own, because each has an index of its own.
        found += self._find_good(digests, *here, one_of=documents.c.near_digest)
        return [*found, *self._find_foreign(digests)] if self._places else found

    def _find_foreign(self, digests: Collection[bytes]) -> Iterator[KeyedDocument]:
        """Documents of other sources with this content that can be found now."""
        of_others = SURVIVORS, documents.c.source_id.in_(sorted(self._places)), build_found(documents)
        rows = KEYED_DOCUMENTS.add_columns(documents.c.source_id).where(*of_others)
        for row in read_parts(self._transaction, rows, documents.c.copy_digest, sorted(digests)):
            yield KeyedDocument._make(row[:-1])._replace(place=self._places[row.source_id])

    def find_copies(self, survivors: Collection[int]) -> list[KeyedDocument]:
        """Documents of the source known as copies (909) of these."""
        is_copy = unindexed(documents.c.source_id) == self._source_id, documents.c.code == int(Code.DUPLICATE)
        return self._find_good(survivors, *is_copy, one_of=documents.c.duplicate_of)

    def find_by_url(self, keys: Collection[int]) -> list[KeyedDocument]:
        """The documents of the URLs with these keys."""
        return self._find_good(keys, self._url_of_source, one_of=urls.c.key)

    def find_by_canonical_url(self, keys: Collection[int]) -> list[KeyedDocument]:
        """Documents that name one of these URLs as canonical."""
        return self._find_good(keys, self._of_source, one_of=documents.c.canonical_key)

    def find_by_display_url(self, display_keys: Collection[int]) -> list[KeyedDocument]:
        """Documents with these display URLs."""
        return self._find_good(display_keys, self._of_source, one_of=documents.c.display_key)

    def _find_good(self, values: Collection[Any], *conditions: Any, one_of: Column[Any]) -> list[KeyedDocument]:
        found = _select(self._transaction, KEYED_DOCUMENTS.where(*conditions), one_of, values)
        return [document for document in found if document.is_good]


def _select(
    transaction: Transaction, query: Select[Any], column: Column[Any], values: Collection[Any]
) -> Iterator[KeyedDocument]:
    return map(KeyedDocument._make, read_parts(transaction, query, column, sorted(values), are_keys=True))


def has_canonicals(transaction: Transaction, source_id: int) -> bool:
    """Whether a document of a source names another URL as canonical."""
    return has_row(transaction, documents.c.source_id == source_id, documents.c.canonical_key.is_not(None))


_SET: Final = update(documents).where(documents.c.url_id == bindparam("row_id")).values(RESOLVED.values)


def set_results(transaction: Transaction, changes: Iterable[tuple[int, int, int | None, DocumentState | None]]) -> None:
    """Writes results: (url id, code, duplicate of, state). With the state None the state of the document stays."""
    rows = [
        {
            "row_id": url_id,
            "new_code": int(code),
            "new_duplicate_of": duplicate_of,
            "new_state": None if state is None else int(state),
            "new_evidence": None if code == 200 else str(int(code)),
        }
        for url_id, code, duplicate_of, state in changes
    ]
    write_rows(transaction, _SET, rows)


def move_duplicates(transaction: Transaction, source_id: int, pairs: Sequence[tuple[int, int]]) -> None:
    """Gives the duplicates of an old survivor to a new one, for pairs (old, new); those of other sources see to it."""
    if pairs:
        transaction.execute(
            update(documents)
            .where(
                documents.c.duplicate_of == bindparam("old_id"), IS_COPY, unindexed(documents.c.source_id) == source_id
            )
            .values(duplicate_of=bindparam("new_id")),
            [{"old_id": old, "new_id": new} for old, new in pairs],
        )


def set_keys(transaction: Transaction, column: str, keys: Mapping[int, int | None]) -> None:
    """Sets ``canonical_key``, ``display_key`` or ``answered_key`` of documents by row id."""
    set_rows(transaction, documents.c.url_id, {url_id: {column: key} for url_id, key in keys.items()})


def find_canonical_targets(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, int]:
    """The ids of the rows that documents name as canonical, by the id of the row that names them."""
    target = urls.alias("target")
    named = and_(target.c.source_id == documents.c.source_id, target.c.key == documents.c.canonical_key)
    query = select(documents.c.url_id, target.c.id).join(target, named)
    return {row[0]: row[1] for row in read_parts(transaction, query, documents.c.url_id, url_ids)}


class Copy(NamedTuple):
    """The URL of a duplicate, the display URL that a rewriter set for it, and its source."""

    url: str
    display_url: str | None = None
    source_id: int | None = None


def find_duplicates(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, list[Copy]]:
    """Copies and non-canonical pages by the id of their survivor, sorted by URL, the first MOST_DUPLICATES of each."""
    ordered = dialect_of(transaction).collate_by_code_points(urls.c.url)
    place = func.row_number().over(partition_by=documents.c.duplicate_of, order_by=ordered)
    found: dict[int, list[Copy]] = {}
    for part in split(url_ids):
        copies = (
            select(
                documents.c.duplicate_of, urls.c.url, urls.c.display_url, documents.c.source_id, place.label("place")
            )
            .select_from(DOCUMENTS_WITH_URLS)
            .where(documents.c.duplicate_of.in_(part), IS_COPY)
            .subquery()
        )
        query = select(copies.c.duplicate_of, copies.c.url, copies.c.display_url, copies.c.source_id).where(
            copies.c.place <= MOST_DUPLICATES
        )
        for survivor, *copy in transaction.execute(query.order_by(copies.c.duplicate_of, copies.c.place)):
            found.setdefault(survivor, []).append(Copy(*copy))
    return found


class CanonicalTarget(NamedTuple):
    """A row that is named as canonical, with the code of its last visit, and what its document names in turn.

    ``is_good``: it has a document that may stand for others, unless it only redirects (``redirected``).
    """

    code: int
    is_good: bool = False
    redirected: bool = False
    canonical_key: int | None = None


def follow_canonicals(transaction: Transaction, source_id: int, key: int, *, most: int) -> list[CanonicalTarget]:
    """The chain of canonical links that begins with the row of this key, up to ``most``; it ends where it comes back."""
    documents_of_source, found, passed = DuplicateKeys(transaction, source_id), list[CanonicalTarget](), {key}
    while len(found) < most:
        code = select(urls.c.code).where(urls.c.source_id == source_id, urls.c.key == key)
        visited: int | None = transaction.execute(code).scalar()
        if visited is None:
            break
        good = [each for each in documents_of_source.find_by_url([key]) if each.code != _CLASH]
        if not good:
            found.append(CanonicalTarget(visited))
            break
        following = good[0].canonical_key
        found.append(CanonicalTarget(visited, True, good[0].redirected, following))
        if following is None or following in passed:
            break
        key = following
        passed.add(key)
    return found


#: Rows that are read at once.
PAGE_ROWS: Final = 5000
#: The label of a column of ``KEYED_DOCUMENTS`` is another digest.
_DIGESTS: Final = (documents.c.copy_digest.label("own_digest"), documents.c.near_digest)
_WIDTH: Final = len(KeyedDocument._fields)
#: The literals let the planner use the partial indexes.
_SIGNED: Final = text("documents.near_signature IS NOT NULL")
_NEAR: Final = text("documents.near_digest IS NOT NULL")


class NearRow(NamedTuple):
    """A good document; ``own_digest`` is that of its own content, ``near_digest`` that of what it is a near copy of, if any.

    ``signature`` is None where none was made of its present text. ``place`` is where its record is, None without one.
    """

    document: KeyedDocument
    own_digest: bytes
    near_digest: bytes | None
    signature: str | None
    mimetype: str
    place: Place | None

    @property
    def url_id(self) -> int:
        """The id of its row."""
        return self.document.url_id


def load_near_page(transaction: Transaction, source_id: int, *, after: int) -> tuple[list[NearRow], int | None]:
    """The good ones of the next documents that may be copies, by rising id; and the id of the last one, None after all."""
    query = (
        KEYED_DOCUMENTS.add_columns(
            *_DIGESTS, documents.c.near_signature, documents.c.mimetype, *(documents.c[name] for name in PLACE)
        )
        # No other page is the canonical one, or shown in their place.
        .where(documents.c.code.in_((200, int(Code.DUPLICATE))), documents.c.copy_digest.is_not(None))
    )
    rows = read_page(
        transaction, query, source_id, by=documents.c.url_id, after=after, limit=PAGE_ROWS, is_indexed=True
    )
    found = []
    for row in rows:
        keyed = KeyedDocument._make(row[:_WIDTH])
        own, near, signature, mimetype, *place = row[_WIDTH:]
        if keyed.is_good and own:
            found.append(NearRow(keyed, own, near, signature, mimetype or "", Place.read(place)))
    return found, rows[-1].url_id if len(rows) == PAGE_ROWS else None


def find_near(transaction: Transaction, source_id: int, *, limit: int) -> list[int]:
    """Ids of documents that are near copies, whatever became of them since."""
    query = select(documents.c.url_id).where(documents.c.source_id == source_id, _NEAR)
    return list(transaction.execute(query.limit(limit)).scalars())


def find_signed(transaction: Transaction, source_id: int, *, after: int) -> list[tuple[int, str]]:
    """Id and URL of the next documents with a signature, by rising id."""
    query = select(documents.c.url_id, urls.c.url).select_from(DOCUMENTS_WITH_URLS).where(_SIGNED)
    page = read_page(
        transaction, query, source_id, by=documents.c.url_id, after=after, limit=PAGE_ROWS, is_indexed=True
    )
    return [(row.url_id, row.url) for row in page]


def set_signatures(transaction: Transaction, signatures: Mapping[int, str]) -> None:
    """Writes the signatures of documents by row id."""
    set_rows(transaction, documents.c.url_id, {url_id: {"near_signature": new} for url_id, new in signatures.items()})


def note_signatures(transaction: Transaction, batch: SealedBatch, signatures: Mapping[int, str]) -> None:
    """Writes the signatures of documents that the index has taken, by row id, but of those that changed meanwhile."""
    as_sent = documents.c.batch_id == batch.number, documents.c.state == int(DocumentState.PRESENT)
    rows = {url_id: {"near_signature": signature} for url_id, signature in signatures.items()}
    set_rows(transaction, documents.c.url_id, rows, *as_sent, documents.c.copy_digest.is_not(None))


def forget_signatures(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Takes the signatures of documents away."""
    write_parts(transaction, update(documents).values(near_signature=None), documents.c.url_id, url_ids)


def set_digests(transaction: Transaction, digests: Mapping[int, bytes | None]) -> None:
    """Writes which content stands for documents, by row id, None: their own; their duplicates have to be resolved after it."""
    set_rows(transaction, documents.c.url_id, {url_id: {"near_digest": digest} for url_id, digest in digests.items()})
