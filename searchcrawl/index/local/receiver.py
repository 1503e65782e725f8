"""The embedded index: a folder that several sources and processes share.

There is no log of updates, so every ``deliver`` commits: its receipts survive the death of the process and a power cut.
A writer is opened for one delivery only, under a lock on the folder.

Its documents can be read by rising id, in bounded memory and linear time (L4). The library sorts all that a query finds for
each page of it. So the ids of a source, which end in a hash, are taken by their first hexadecimal digits, some thousands at
a time. Other ids are few, if any.

Who delivers, or looks for what the index has, uses it in a thread of its own (`searchcrawl/index`).
"""

from __future__ import annotations

import errno
import fcntl
import heapq
import logging
import os
import re
import shutil
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import tantivy
from tantivy import Occur

from searchcrawl import clock, failpoints
from searchcrawl.cache.disk_space import free_bytes
from searchcrawl.durable import make_folder, sync_folder
from searchcrawl.exceptions import DiskFull, IndexMisconfigured, IndexUnavailable, SearchcrawlError
from searchcrawl.index.local import schema
from searchcrawl.index.local.query import QueryBuilder
from searchcrawl.index.local.search import (
    count_by_source,
    count_documents,
    find_by_id,
    find_spellings,
    read_fields,
    search,
)
from searchcrawl.index.receiver import Batch, IndexEntry, Receipt, SearchAnswer, SearchIndex, SearchQuery
from searchcrawl.index.sanitising import find_id_fault
from searchcrawl.items import IndexedDocument, Removal
from searchcrawl.sources.project import Project

# Enough for one delivery to become one segment: merging smaller ones costs more than the memory that they save.
_HEAP_BYTES: Final = 30_000_000
_POLL_SECONDS: Final = 0.05
#: What the library says where it may not read or write a file.
_NOT_OURS: Final = "PermissionDenied"
#: What the library says of an error of the system.
_OF_SYSTEM: Final = re.compile(r"(?:\bOs \{ code: |\bos error )(\d+)")
_TO_MEND: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ELOOP})
#: What the library says, and where the error comes from that it raises, where it reads a damaged file.
_UNREADABLE: Final = ("IO error", "orrupt")
_PANIC: Final = "pyo3_runtime"
_LOCK_NAME: Final = "searchcrawl.lock"
#: The library makes them with mode 0600, whatever the umask is.
_FOR_OWNER_ALONE: Final = ("meta.json", ".managed.json")
#: No byte, or no file, has room any more.
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
#: With less free space than this no delivery succeeds.
_NO_ROOM_BYTES: Final = 64 * 1024

logger = logging.getLogger(__name__)


class LocalReceiver(SearchIndex):
    """A SearchIndex in the folder ``path``; the first delivery creates it, and a missing one counts as empty.

    A delivery waits ``lock_timeout_seconds`` for that of another process, then raises IndexUnavailable. Methods
    raise IndexMisconfigured where the folder holds something else, or the index of another release, and DiskFull.
    Documents and removals that are not newer than what the index has are acknowledged and ignored.
    """

    hides_documents: Final = True

    def __init__(self, path: Path, *, lock_timeout_seconds: float = 30) -> None:
        self._path = path
        self._lock_timeout_seconds = lock_timeout_seconds
        self._queries = QueryBuilder()
        self._index: tantivy.Index | None = None
        self._inode: int | None = None
        self._opening = threading.Lock()

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        """Stores and removes, durably; a document that cannot be stored is refused with the reason."""
        given = [*(each.id for each in batch.documents), *(each.id for each in batch.removals)]
        ids = [each for each in given if find_id_fault(each) is None]
        with self._lock(), self._open_writer() as (writer, searcher):
            versions = self._read_versions(searcher, self._queries.with_ids(ids), most=len(ids))
            return _put(writer, versions, batch)

    def commit(self) -> None:
        """Returns at once: what was delivered is durable and visible."""

    def scan(self, source: str | None) -> Iterator[IndexEntry]:
        """Every document of a source (None: of all) by rising id, as of one moment; at most 10,000 in memory."""
        with self._reading() as searcher:
            for document_id, fields in list_documents(searcher, self._queries, source) if searcher is not None else ():
                yield IndexEntry.read(document_id, fields)

    def find_versions(self, ids: Collection[str]) -> Mapping[str, int]:
        return self._find_versions(self._queries.documents_with_ids(list(ids)), most=len(ids))

    def find_last_versions(self, ids: Collection[str]) -> Mapping[str, int]:
        return self._find_versions(self._queries.with_ids(list(ids)), most=len(ids))

    def _find_versions(self, wanted: tantivy.Query, *, most: int) -> Mapping[str, int]:
        with self._reading() as searcher:
            return {} if searcher is None else self._read_versions(searcher, wanted, most=most)

    def find_highest_version(self, source: str) -> int:
        with self._reading() as searcher:
            if searcher is None:
                return 0
            found = searcher.search(
                self._queries.with_value("source", source),
                limit=1,
                count=False,
                order_by_field="crawl_version",
                order=tantivy.Order.Desc,
            )
            return int(found.hits[0][0]) if found.hits else 0

    def search(self, query: SearchQuery) -> SearchAnswer:
        """Answers a query; UnsupportedByIndex for a field that cannot be a filter, a facet or an order."""
        with self._reading() as searcher:
            return search(searcher, self._queries, query)

    def find_spellings(self, word: str, principals: Collection[str] | None = None) -> Sequence[str]:
        """Words of the index that may be spelled like one that it does not have (SpellingIndex)."""
        with self._reading() as searcher:
            return [] if searcher is None else find_spellings(searcher, word)

    def purge(self) -> int:
        """Writes every document anew, without tombstones and deleted documents; returns the number of tombstones."""
        with self._lock():
            if self._open_existing() is None:
                return 0
            with self._open_writer() as (writer, searcher):
                for document_id, fields in list_documents(searcher, self._queries, None):
                    made = schema.build_document(
                        document_id, fields, source=fields["source"], crawl_version=fields["crawl_version"]
                    )
                    writer.delete_documents_by_term("id", document_id)
                    writer.add_document(made)
                writer.delete_documents_by_term("tombstone", True)
                return count_documents(searcher, self._queries.tombstones())

    def ping(self) -> None:
        """Returns if the folder holds an index of this release, or can be made one."""
        if self._open_existing() is None:
            _refuse_foreign(self._path)

    def wait_for_writer(self) -> None:
        """Returns once a delivery could begin; IndexUnavailable where another process writes for too long (LockedIndex)."""
        if (self._path / _LOCK_NAME).exists():
            with self._lock():
                pass

    def close(self) -> None:
        """Forgets the open index; the next call opens it again."""
        self._index = None

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Holds the lock on the folder; the system frees it when the process dies."""
        try:
            _refuse_foreign(self._path)
            make_folder(self._path)
            lock = os.open(self._path / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._explain_error(error) from error
        try:
            self._wait_for(lock)
            yield
        finally:
            os.close(lock)

    def _wait_for(self, lock: int) -> None:
        pause = threading.Event()
        give_up = clock.monotonic() + self._lock_timeout_seconds
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if clock.monotonic() >= give_up:
                    raise IndexUnavailable(
                        f"{self._path}: another process writes to the index since {self._lock_timeout_seconds:g} s"
                    ) from error
            except OSError as error:
                raise self._explain_error(error) from error
            pause.wait(_POLL_SECONDS)

    @contextmanager
    def _reading(self) -> Iterator[tantivy.Searcher | None]:
        """A searcher of all that is committed, None where there is no index yet; a damaged file is an error of ours."""
        index = self._open_existing()
        try:
            yield None if index is None else index.searcher()
        except BaseException as error:
            if isinstance(error, ValueError) and any(mark in str(error) for mark in _UNREADABLE):
                raise self._explain_error(error) from error
            if type(error).__module__ != _PANIC:
                raise
            raise self._explain_error(ValueError(str(error))) from error

    def _open_existing(self) -> tantivy.Index | None:
        """The index with all that is committed, or None where there is none yet."""
        try:
            return self._open() if (self._path / "meta.json").is_file() else None
        except OSError as error:
            raise self._explain_error(error) from error

    def _open(self) -> tantivy.Index:
        """The index with all that is committed; created where there is none yet."""
        try:
            with self._opening:
                inode = self._path.stat().st_ino
                # If another folder is in its place, it is another index.
                if self._index is None or inode != self._inode:
                    self._index = schema.open_index(self._path)
                    self._inode = inode
                self._index.reload()
                return self._index
        except (OSError, ValueError) as error:
            raise self._explain_error(error) from error

    @contextmanager
    def _open_writer(self) -> Iterator[tuple[tantivy.IndexWriter, tantivy.Searcher]]:
        """A writer, and a searcher of the index before it; commits at the end, or leaves the index as it was."""
        index = self._open()
        searcher = index.searcher()
        try:
            writer = index.writer(_HEAP_BYTES, num_threads=1)
        except ValueError as error:
            raise self._explain_write_error(error) from error
        try:
            # Files of a killed process go: the library uses their names again, and its commit would fail.
            writer.garbage_collect_files()
            for leftover in self._path.glob(".tmp*"):
                leftover.unlink(missing_ok=True)
            yield writer, searcher
            failpoints.reach("batch.post.mid")
            writer.commit()
            # The library syncs the folder before it renames the list of segments, not after that.
            sync_folder(self._path)
        except (ValueError, OSError) as error:
            raise self._explain_write_error(error) from error
        finally:
            self._release(writer)

    def _release(self, writer: tantivy.IndexWriter) -> None:
        """Waits for merges and frees the writer; a traceback that still refers to it must not keep it alive."""
        try:
            writer.wait_merging_threads()
        except ValueError as error:
            # The commit is safe without the merge, and the next delivery merges again.
            logger.warning("%s: segments were not merged: %s", self._path, error)
        for name in _FOR_OWNER_ALONE:
            # Whoever may read the other files may read these, too: that is for the umask to say.
            try:
                shutil.copymode(self._path / _LOCK_NAME, self._path / name)
            except OSError as error:
                logger.warning("%s: only its owner can read it: %s", self._path / name, error.strerror)

    def _read_versions(self, searcher: tantivy.Searcher, wanted: tantivy.Query, *, most: int) -> dict[str, int]:
        """The versions of the documents and tombstones that a query finds, ``most`` of them."""
        if not most or not searcher.num_docs:
            return {}
        found = find_by_id(searcher, wanted, limit=most)
        versions = searcher.fast_field_values("crawl_version", [address for _, address in found])
        return {key: int(version or 0) for (key, _), version in zip(found, versions, strict=True)}

    def _explain_write_error(self, error: OSError | ValueError) -> SearchcrawlError:
        """The error of ours for one of the library while it writes."""
        number = _find_number(error)
        # The library does not always say which error stopped one of its threads.
        if number in _FULL or free_bytes(self._path) < _NO_ROOM_BYTES:
            return DiskFull(f"{self._path}: no space left on its disk")
        if number in _TO_MEND or _NOT_OURS in str(error):
            return self._explain_error(error)
        return IndexUnavailable(f"{self._path}: {error}")

    def _explain_error(self, error: OSError | ValueError) -> SearchcrawlError:
        """The error of ours for one with the folder: to be tried again, or to be mended by the user."""
        number = _find_number(error)
        if number in _FULL:
            return self._explain_write_error(error)
        if isinstance(error, OSError):
            reason = f"{self._path}: {error.strerror or error}"
            return _misconfigured(reason) if number in _TO_MEND else IndexUnavailable(reason)
        if not (self._path / "meta.json").is_file():
            return IndexUnavailable(f"{self._path}: {error}")
        if _NOT_OURS in str(error):
            return _misconfigured(f"{self._path}: Permission denied: some of its files belong to another user")
        if number is not None:
            return self._explain_error(OSError(number, os.strerror(number)))
        return _misconfigured(
            f"{self._path}: damaged, or the index of another release ({error}); move the folder away, then send each"
            " source again with `searchcrawl resend NAME`"
        )


def open_receiver(project: Project) -> LocalReceiver:
    """The receiver for ``index.type = "local"``."""
    return LocalReceiver(project.index_dir)


def _put(writer: tantivy.IndexWriter, versions: dict[str, int], batch: Batch) -> list[Receipt]:
    """Gives the batch to the writer, without entries that are not newer than ``versions``, those of the index."""
    receipts: list[Receipt] = []
    entries: list[IndexedDocument | Removal] = [*batch.documents, *batch.removals]
    for each in entries:
        fault = find_id_fault(each.id)
        if fault is None:
            try:
                made = _build(each, batch)
            except (ValueError, TypeError, OverflowError) as error:
                fault = str(error)
            else:
                if versions.get(each.id, -1) < batch.crawl_version:
                    writer.delete_documents_by_term("id", each.id)
                    writer.add_document(made)
                    versions[each.id] = batch.crawl_version
        receipts.append(Receipt(each.id, accepted=fault is None, error=fault))
    return receipts


def _build(each: IndexedDocument | Removal, batch: Batch) -> tantivy.Document:
    if isinstance(each, Removal):
        return schema.build_tombstone(each.id, source=batch.source, crawl_version=batch.crawl_version)
    return schema.build_document(each.id, each.fields, source=batch.source, crawl_version=batch.crawl_version)


def _refuse_foreign(path: Path) -> None:
    """Raises IndexMisconfigured where the path is a file, or a folder that holds files but no index."""
    if not path.exists() or (path / "meta.json").is_file():
        return
    if not path.is_dir():
        raise _misconfigured(f"{path}: not a folder")
    for name in sorted(entry.name for entry in path.iterdir()):
        if name != _LOCK_NAME and not name.startswith("."):
            raise _misconfigured(f"{path}: not an index (it holds {name}); name another folder")


def _find_number(error: OSError | ValueError) -> int | None:
    """The number of the system's error that Python or the library met; None where it met none.

    To the library a file that is missing, or is a folder, is damage.
    """
    if isinstance(error, OSError):
        return error.errno
    found = _OF_SYSTEM.search(str(error))
    number = int(found[1]) if found else None
    return None if number in {errno.ENOENT, errno.EISDIR} else number


def _misconfigured(reason: str) -> IndexMisconfigured:
    """The error that the user has to repair, in searchcrawl.toml or in the folder that it names."""
    return IndexMisconfigured(f"searchcrawl.toml: index.path: {reason}")


Listed = tuple[str, dict[str, Any]]

_PAGE_DOCUMENTS: Final = 5000
_DIGITS: Final = "0123456789abcdef"
#: The hash at the end of an id.
_HASH_DIGITS: Final = 32
#: The name of a source; what others wrote into the index may have another value there.
_NAME: Final = re.compile(r"[a-z0-9_-]{1,100}")


def list_documents(searcher: tantivy.Searcher, queries: QueryBuilder, source: str | None) -> Iterator[Listed]:
    """Id and stored fields of the documents of a source (None: of all) by rising id, without tombstones.

    Some thousands of them at a time are in memory.
    """

    def is_name(name: str) -> bool:
        return name == source or _NAME.fullmatch(name) is not None

    wanted = queries.documents(source)
    counts = {name: count for name, count in count_by_source(searcher, wanted).items() if is_name(name)}
    # The ids of a source begin with its name and a colon, which no name has.
    names = sorted(counts, key=lambda name: f"{name}:")
    hashed = (
        listed
        for name in names
        for listed in _list_hashed(searcher, queries, queries.documents(name), name, "", counts[name])
    )
    # Of each source, because a document of another one may have an id like these.
    of_sources = [_both(queries.documents(name), queries.with_hashes(name, "")) for name in names]
    others = tantivy.Query.boolean_query([(Occur.Must, wanted), *((Occur.MustNot, each) for each in of_sources)])
    yield from heapq.merge(hashed, _list_in_pages(searcher, others), key=lambda listed: listed[0])


def _list_in_pages(searcher: tantivy.Searcher, wanted: tantivy.Query) -> Iterator[Listed]:
    """Id and stored fields of what a query finds; each page costs as much as all that it finds."""
    for offset in range(0, searcher.num_docs, _PAGE_DOCUMENTS):
        page = find_by_id(searcher, wanted, limit=_PAGE_DOCUMENTS, offset=offset)
        for document_id, address in page:
            yield document_id, read_fields(searcher, address)
        if len(page) < _PAGE_DOCUMENTS:
            return


def _list_hashed(
    searcher: tantivy.Searcher, queries: QueryBuilder, wanted: tantivy.Query, source: str, digits: str, expected: int
) -> Iterator[Listed]:
    """The documents whose hashes begin with ``digits``, about ``expected`` of them."""
    if expected <= _PAGE_DOCUMENTS or len(digits) == _HASH_DIGITS:
        here = _both(wanted, queries.with_hashes(source, digits))
        found = searcher.search(here, limit=2 * _PAGE_DOCUMENTS, count=False).hits
        if len(found) < 2 * _PAGE_DOCUMENTS or len(digits) == _HASH_DIGITS:
            listed = [(str(searcher.doc(address)["id"][0]), address) for _, address in found]
            for document_id, address in sorted(listed, key=lambda each: each[0]):
                yield document_id, read_fields(searcher, address)
            return
    for digit in _DIGITS:
        yield from _list_hashed(searcher, queries, wanted, source, digits + digit, expected // len(_DIGITS))


def _both(one: tantivy.Query, other: tantivy.Query) -> tantivy.Query:
    return tantivy.Query.boolean_query([(Occur.Must, one), (Occur.Must, other)])
