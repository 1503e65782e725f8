"""``verify``: what differs between table and index, source by source, in constant memory however much it is (L4).

Both are read one after the other, and a crawl goes on meanwhile: what it delivers between both looks like a difference. So
documents that seem to differ are looked at once more.
"""

from __future__ import annotations

import json
import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Final, Generic, NamedTuple, TypeVar

from searchcrawl import urls
from searchcrawl.comparison.sorted_merge import SortedRow, pair_by_id
from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.receiver import IndexEntry, Receiver, SearchIndex
from searchcrawl.store.documents import comparison_table
from searchcrawl.store.documents.comparison_table import Receipted
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.urls import url_table
from searchcrawl.temporary_files import PartFile

#: The lists of differences, in their order.
KINDS: Final = ("missing", "extra", "stale", "foreign")
#: Documents that are looked at together.
GROUP: Final = 500
_OF_NAMES: Final = frozenset(string.ascii_lowercase + string.digits + "_-")
_DIGEST_DIGITS: Final = 32
#: Other ids an index may be unable to look for.
_ASKABLE: Final = frozenset(map(chr, range(0x21, 0x7F))) - {","}
_MOST_ASKABLE: Final = 500


T = TypeVar("T")
#: So many are written at once.
_VALUES: Final = 1000


class Spool(Generic[T]):
    """Takes values, then yields them in their order, as often as they are asked for; who makes it closes it.

    ``pack`` makes JSON of a value, ``unpack`` the value again. Methods raise OSError where the disk is full.
    """

    def __init__(self, pack: Callable[[T], Any], unpack: Callable[[Any], T]) -> None:
        self._pack = pack
        self._unpack = unpack
        self._file = PartFile()
        self._gathered: list[bytes] = []
        self._length = 0

    def close(self) -> None:
        """Gives the place on the disk back."""
        self._file.close()

    def __len__(self) -> int:
        return self._length

    def add(self, value: T) -> None:
        """Takes one value; who is reading may not see it."""
        # Not orjson: what an index lists may have characters that UTF-8 does not know.
        self._gathered.append(json.dumps(self._pack(value)).encode())
        self._length += 1
        if len(self._gathered) == _VALUES:
            self._write()

    def __iter__(self) -> Iterator[T]:
        self._write()
        yield from (self._unpack(json.loads(written)) for written in self._file)

    def _write(self) -> None:
        if self._gathered:
            self._file.add(self._gathered)
            self._gathered = []


def in_groups(values: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    """The values, ``size`` at a time."""
    rest = iter(values)
    while group := list(islice(rest, size)):
        yield group


class Suspect(NamedTuple):
    """A document in which table and index seemed to differ; without a row, or without an entry of the index."""

    source: str
    id: str
    url_id: int | None
    entry: IndexEntry | None

    @property
    def names_its_page(self) -> bool:
        """Whether the index says which page the document was made of; as ``bring_together`` looks for it."""
        return self.entry is not None and urls.document_id(self.source, self.entry.access_url) == self.id


class IndexDifference(NamedTuple):
    """A document that differs between index and table; ``kind`` is the list to which it belongs.

    ``remedy`` is what mends it, or what was done; ``version`` is that of the index now, ``mended`` whether it was.
    """

    kind: str
    url: str
    why: str
    remedy: str
    suspect: Suspect
    version: int | None = None
    row: Receipted | None = None
    mended: bool = False

    def describe(self) -> dict[str, str]:
        """As ``verify --json`` shows it."""
        return {"url": self.url, "id": self.suspect.id, "why": f"{self.why}; {self.remedy}"}


def spool_suspects() -> closing[Spool[Suspect]]:
    """Keeps suspects on the disk."""
    return closing(Spool(tuple, _read_suspect))


def spool_differences() -> closing[Spool[IndexDifference]]:
    """Keeps differences on the disk, without their rows."""
    return closing(Spool(lambda each: each._replace(row=None), _read_difference))


def confirm(
    database: Database,
    index: SearchIndex,
    name: str,
    source_id: int | None,
    suspects: Iterable[Suspect],
    *,
    is_ours: bool = False,
) -> Iterator[IndexDifference]:
    """The differences of a source that are still there; without ``source_id`` the table has no rows of it.

    ``is_ours``: this process holds the source, so nothing of it is on its way. Raises StoreError, and as
    ``find_versions``.
    """
    for group in in_groups(suspects, GROUP):
        before, _ = _find_rows(database, name, source_id, group)
        versions = _find_versions(index, group)
        after, under_way = _find_rows(database, name, source_id, group)
        for suspect in group:
            row = after.get(suspect.id)
            # The row changed while the index was asked, so the answer may be older or newer than the row.
            if row == before.get(suspect.id) and (is_ours or suspect.id not in under_way):
                yield from _judge(suspect, row, versions.get(suspect.id))


def confirm_foreign(
    database: Database, index: SearchIndex, name: str, source_id: int | None, suspects: Iterable[Suspect]
) -> Iterator[IndexDifference]:
    """Documents of a source that the project does not have, as far as they are still in the index."""
    for group in in_groups(suspects, GROUP):
        versions = _find_versions(index, group)
        rows, _ = _find_rows(database, name, source_id, group)
        for each in group:
            if each.id in versions:
                why = f"the project has no source {name!r}"
                row = rows.get(each.id)
                yield IndexDifference("foreign", _url_of(each), why, _mend_foreign(each), each, versions[each.id], row)


def is_askable(document_id: str) -> bool:
    """Whether an index can be asked for a document of this id."""
    return len(document_id) <= _MOST_ASKABLE and _ASKABLE.issuperset(document_id)


def _find_rows(
    database: Database, name: str, source_id: int | None, group: Sequence[Suspect]
) -> tuple[Mapping[str, Receipted], frozenset[str]]:
    """What the table has now, by document id, and the ids of what a living process is delivering or removing."""
    if source_id is None:
        return {}, frozenset()
    # Those without a receipt have a row as soon as they are on their way.
    keys = [urls.key(suspect.entry.access_url or suspect.entry.url) for suspect in group if suspect.entry is not None]
    known = [suspect.url_id for suspect in group if suspect.url_id is not None]

    def find(transaction: Transaction) -> tuple[list[Receipted], bool, bool]:
        found = {row.id for row in url_table.find_known(transaction, source_id, keys)}
        rows = comparison_table.find_receipted(transaction, sorted(found.union(known)))
        removing = comparison_table.is_removing(transaction, source_id)
        return rows, removing, lease.is_held(transaction, source_id)

    rows, removing, held = database.read(find)
    by_id = {urls.document_id(name, row.url): row for row in rows}
    # What a process left behind that is gone stays different until somebody goes on with it.
    moving = (id_ for id_, row in by_id.items() if held and (row.under_way or (removing and row.crawl_version is None)))
    return by_id, frozenset(moving)


def _find_versions(index: SearchIndex, group: Sequence[Suspect]) -> Mapping[str, int]:
    # Somebody else made the others: no crawl has touched them.
    others = {each.id: each.entry.crawl_version for each in group if each.entry is not None and not is_askable(each.id)}
    return others | dict(index.find_versions([each.id for each in group if is_askable(each.id)]))


def _is_ours(document_id: str) -> bool:
    """Whether it may be an id that ``urls.document_id`` made."""
    name, _, digest = document_id.rpartition(":")
    return _OF_NAMES.issuperset(name) and len(digest) == _DIGEST_DIGITS and _OF_NAMES.issuperset(digest)


def _judge(suspect: Suspect, row: Receipted | None, version: int | None) -> Iterator[IndexDifference]:
    """The difference between a row and the version of the index, if there is one."""
    url = _url_of(suspect, row)
    if row is None or row.crawl_version is None:
        if version is not None:
            remedy = _mend_extra(suspect, row)
            yield IndexDifference("extra", url, "the table has no receipt for it", remedy, suspect, version, row)
        return
    if not row.crawl_version:
        # Its receipt was lost: it may be in the index, in any version.
        return
    remedy = _mend_sent(suspect.source, row)
    if version is None:
        why = f"the table has a receipt of version {row.crawl_version}"
        yield IndexDifference("missing", row.url, why, remedy, suspect, None, row)
    elif version != row.crawl_version:
        why = f"version {version} in the index, {row.crawl_version} in the table"
        yield IndexDifference("stale", url, why, remedy, suspect, version, row)
    elif suspect.entry is not None and suspect.entry.crawl_version == version and row.settled:
        checksum, of_row = suspect.entry.checksum, row.fields_digest.hex()
        if checksum != of_row:
            why = f"checksum {checksum or 'none'} in the index, {of_row} in the table"
            yield IndexDifference("stale", url, why, remedy, suspect, version, row)


def _mend_sent(name: str, row: Receipted) -> str:
    if row.under_way:
        return f"its delivery was cut off, to go on with it: searchcrawl flush {name}"
    return f"to send it again: searchcrawl verify {name} --repair"


def _mend_extra(suspect: Suspect, row: Receipted | None) -> str:
    if row is not None and row.under_way:
        return _mend_sent(suspect.source, row)
    if not is_askable(suspect.id):
        return _ONLY_THE_INDEX
    return f"to remove it, or to have its page visited, which decides: searchcrawl verify {suspect.source} --repair"


_ONLY_THE_INDEX: Final = "searchcrawl did not make it: only the index itself can delete it"


def _mend_foreign(suspect: Suspect) -> str:
    if _is_ours(suspect.id):
        return f"put sources/{suspect.source}.toml back, or searchcrawl delete {suspect.source}"
    return _ONLY_THE_INDEX


def _url_of(suspect: Suspect, row: Receipted | None = None) -> str:
    if suspect.entry is not None:
        return suspect.entry.url
    return "" if row is None else row.url


def _read_suspect(packed: list[Any]) -> Suspect:
    source, document_id, url_id, entry = packed
    return Suspect(source, document_id, url_id, None if entry is None else IndexEntry(*entry))


def _read_difference(packed: list[Any]) -> IndexDifference:
    made = IndexDifference(*packed)
    return made._replace(suspect=_read_suspect([*made.suspect]))


#: Gets the name of a source and its differences; returns them as they are then.
Treatment = Callable[[str, Iterator[IndexDifference]], Iterable[IndexDifference]]


def find_differences(
    database: Database,
    index: SearchIndex,
    sources: Collection[str],
    *,
    only: str | None,
    treat: Treatment | None = None,
) -> Iterator[IndexDifference]:
    """The differences of all sources, or of the one named by ``only``; documents of others than ``sources`` are foreign.

    Each was looked at twice. ``treat`` may mend those of a source, which is not read any more then. Raises StoreError,
    DeliveryError, OSError.
    """
    wanted = set(sources) if only is None else {only} & set(sources)
    with spool_suspects() as suspects:
        for suspect in _find_suspects(database, index.scan(only), find_tables(database, wanted)):
            suspects.add(suspect)
        # After the scan: that of a large index takes minutes, in which a crawl delivers a lot, maybe its first documents.
        tables = find_tables(database, None)
        for name, group in groupby(suspects, key=lambda suspect: suspect.source):
            source_id = tables.get(name)
            if name in sources:
                found = confirm(database, index, name, source_id, group)
            else:
                found = confirm_foreign(database, index, name, source_id, group)
            yield from found if treat is None else treat(name, found)


def find_tables(database: Database, wanted: Collection[str] | None) -> dict[str, int]:
    """The numbers of sources by name, as far as the store knows them; None: of all."""
    names = database.read(run_table.find_source_names)
    return {name: number for number, name in names.items() if wanted is None or name in wanted}


def _find_suspects(database: Database, entries: Iterator[IndexEntry], tables: Mapping[str, int]) -> Iterator[Suspect]:
    """What seems to differ; documents of sources without a table are all of it."""
    unseen = dict(tables)
    # Ids begin with the name of the source and are sorted, so those of one source come together.
    for name, group in groupby(entries, key=_source_of):
        if name in unseen:
            yield from _compare_source(database, name, unseen.pop(name), group)
        else:
            yield from (Suspect(name, entry.id, None, entry) for entry in group)
    for name, source_id in unseen.items():
        yield from _compare_source(database, name, source_id, iter(()))


def _compare_source(database: Database, name: str, source_id: int, entries: Iterator[IndexEntry]) -> Iterator[Suspect]:
    """Merges the documents of one source in index and table, both by rising id."""
    with pair_by_id(database, name, source_id, entries) as pairs:
        for row, entry in pairs:
            if row is None or entry is None or _differ(row, entry):
                id_ = f"{name}:{row.digest.hex()}" if row is not None else entry.id if entry is not None else ""
                yield Suspect(name, id_, None if row is None else row.url_id, entry)


def _differ(row: SortedRow, entry: IndexEntry) -> bool:
    other = row.settled and row.fields_digest.hex() != entry.checksum
    return other or row.crawl_version != entry.crawl_version


def _source_of(entry: IndexEntry) -> str:
    return entry.id.rpartition(":")[0]


@dataclass(slots=True)
class Verified:
    """What differs, by kind, on the disk; ``repaired`` of them were mended."""

    found: Mapping[str, Spool[IndexDifference]]
    repaired: int = 0

    @property
    def ok(self) -> bool:
        """Whether no difference stands any more."""
        return self.repaired == sum(len(spool) for spool in self.found.values())

    def count_by_source(self) -> Counter[str]:
        """How many differences stand, by the source that their ids begin with."""
        every = (each for spool in self.found.values() for each in spool)
        return Counter(each.suspect.id.partition(":")[0] for each in every if not each.mended)

    def describe(self, kind: str) -> Iterator[dict[str, str]]:
        """The list of a kind, as ``verify --json`` prints it."""
        return (each.describe() for each in self.found[kind])


@contextmanager
def verify(
    database: Database,
    receiver: Receiver,
    sources: Collection[str],
    *,
    only: str | None,
    treat: Treatment | None = None,
) -> Iterator[Verified]:
    """What differs, for all sources of a project, or for the one named by ``only``; kept on the disk meanwhile.

    ``sources`` are the names of all source files: documents of other sources are foreign. Each difference is looked at
    once more before it is named: a crawl may go on meanwhile. ``treat`` may mend those of a source.
    Raises UnsupportedByIndex, DeliveryError, StoreError, OSError.
    """
    if not isinstance(receiver, SearchIndex):
        raise UnsupportedByIndex(f"{type(receiver).__name__} cannot list its documents")
    with ExitStack() as stack:
        verified = Verified({kind: stack.enter_context(spool_differences()) for kind in KINDS})
        for each in find_differences(database, receiver, sources, only=only, treat=treat):
            verified.found[each.kind].add(each)
            verified.repaired += each.mended
        yield verified


def list_crawled_sources(database: Database, sources: Collection[str]) -> list[str]:
    """Those of ``sources`` that a process is crawling now: what it has under way is no difference."""

    def find_held(transaction: Transaction) -> list[str]:
        names = run_table.find_source_names(transaction)
        return sorted(name for id_, name in names.items() if name in sources and lease.is_held(transaction, id_))

    return database.read(find_held)
