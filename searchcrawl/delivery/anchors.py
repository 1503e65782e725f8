"""The texts of links to each document, frozen at the end of each completed run; documents go out with them (C8, G2).

So what is indexed of a document never depends on the order of the visits. Change detection knows nothing of it. The links of
all documents are counted anew where any of them changed, or the documents themselves; those whose texts differ are sent
again, once, with the last batch of the run.

Each step may be the last one of a process: a transaction freezes the texts of some documents and has them sent again, and
until all are frozen the next completed run begins anew.

They are counted in bounded memory: sorted parts in a file, merged when read. In a helper thread before the last batch; once
orphans left, in the delivery thread.
"""

from __future__ import annotations

import heapq
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple, Self

from searchcrawl.delivery.freezing import TitleCounts
from searchcrawl.exceptions import StoreError
from searchcrawl.failpoints import reach
from searchcrawl.rules.host_texts import Linked, WordCounts, select_texts
from searchcrawl.run import Run
from searchcrawl.store import source_table
from searchcrawl.store.batch_table import send_again
from searchcrawl.store.documents import anchor_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import link_table
from searchcrawl.temporary_files import PartFile
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)

#: To be raised where the same links give other texts (``rules.host_texts``): they are collected anew.
VERSION: Final = 2
#: Documents that a transaction freezes the texts of.
_PART: Final = 500
#: Behind all row ids.
_END: Final = (1 << 63, "")


def freeze_anchors(run: Run, freeze_titles: Callable[[TitleCounts], bool] = lambda _: False) -> bool:
    """Collects the texts of links anew where they may have changed; returns whether documents are to be sent again.

    The titles of all documents are read with them: ``freeze_titles`` returns whether documents are to be sent again for
    theirs. Raises StoreError, LeaseLost, and what it raises.
    """
    preserve = run.project.cache.preserve
    state = f"{run.read(anchor_table.describe, source_id=run.source_id)} {preserve} {VERSION}"
    if run.read(source_table.find, run.source_id, "anchors") == state:
        return False
    # Else it would depend on the order of the visits which documents still have a record to be sent again.
    titles = TitleCounts()
    changed = _freeze_found(run, titles) if preserve else _freeze(run, ())
    titled = preserve and freeze_titles(titles)
    if changed:
        logger.info("the texts of links to %s are other ones", counted(changed, "document", "documents"))
    run.write(source_table.note, run.source_id, anchors=state)
    return changed > 0 or titled


def take_back_texts(transaction: Transaction, source_id: int, url_ids: Sequence[int]) -> None:
    """Takes what pages say of others, which are about to be forgotten, out of these, which are sent again.

    What other pages say as well comes back at the end of the next completed run.
    """
    said = anchor_table.load_said(transaction, url_ids)
    if not said:
        return
    successors = anchor_table.load_successors(transaction, source_id)
    gone: dict[int, set[str]] = {}
    for target, texts in said.items():
        gone.setdefault(successors.follow(target), set()).update(texts)
    frozen = anchor_table.load(transaction, list(gone))
    left = {
        target: "\n".join(text for text in texts if text.casefold() not in gone[target])
        for target, texts in frozen.items()
        if any(text.casefold() in gone[target] for text in texts)
    }
    anchor_table.freeze(transaction, source_id, left)
    anchor_table.note_change(transaction, source_id)
    send_again(transaction, list(left))


def _freeze_found(run: Run, titles: TitleCounts) -> int:
    # It may have some GB, as the cache, but unlike a folder for temporary files.
    folder = run.project.cache_dir
    try:
        with LinkCounts(folder) as links:
            pages_of_host = _count_links(run, links, titles)
            return _freeze(run, select_anchors(links, pages_of_host))
    except OSError as error:
        raise StoreError(f"the texts of links cannot be sorted in {folder}: {error}") from error


def _count_links(run: Run, links: LinkCounts, titles: TitleCounts) -> dict[int, int]:
    """Reads the links of all documents; returns how many of them each host has."""
    successors = run.read(anchor_table.load_successors, source_id=run.source_id)
    pages_of_host: dict[int, int] = {}
    for pages in run.read_pages(anchor_table.load_pages, source_id=run.source_id):
        for page in pages:
            pages_of_host[page.host_id] = pages_of_host.get(page.host_id, 0) + 1
            title, said = link_table.decode_texts(page.texts)
            links.add_document(page.url_id, title)
            titles.add(page.url_id, title)
            # What redirects lead to the same document counts once.
            found = {(successors.follow(target), text) for target, texts in said.items() for text in texts}
            for target, text in found:
                if target != page.url_id:
                    links.add_link(target, text, page.host_id)
    return pages_of_host


def select_anchors(links: LinkCounts, pages_of_host: Mapping[int, int]) -> Iterator[tuple[int, str]]:
    """Row id and texts, one a line, of documents by rising id."""
    counts = WordCounts()
    for document in links.by_document():
        counts.add(link.folded for link in document.links)
    for document in links.by_document():
        texts = select_texts(document.links, title=document.title, counts=counts, pages_of_host=pages_of_host)
        if texts:
            yield document.url_id, "\n".join(texts)


def _freeze(run: Run, found: Iterable[tuple[int, str]]) -> int:
    """Freezes texts where they differ from those before; returns of how many documents."""
    changed = 0
    part: dict[int, str] = {}
    frozen = run.read_pages(anchor_table.load_next, source_id=run.source_id, key=itemgetter(0))
    for url_id, text in _compare(chain.from_iterable(frozen), iter(found)):
        changed += 1
        part[url_id] = text
        if len(part) == _PART:
            _write(run, part)
            part = {}
    if part:
        _write(run, part)
    return changed


def _write(run: Run, texts: Mapping[int, str]) -> None:
    run.write(_freeze_part, source_id=run.source_id, texts=texts)
    reach("anchors.frozen")


def _freeze_part(transaction: Transaction, *, source_id: int, texts: Mapping[int, str]) -> None:
    anchor_table.freeze(transaction, source_id, texts)
    # Until all are frozen, they are those of no state: neither of the one before, if all becomes as it was.
    anchor_table.note_change(transaction, source_id)
    # One without a record gets them when it is sent for another reason: no page is fetched for them.
    send_again(transaction, anchor_table.find_with_record(transaction, list(texts)))


def _compare(before: Iterator[tuple[int, str]], now: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Row id and present texts of documents whose texts differ; both by rising id."""
    old, new = next(before, _END), next(now, _END)
    while old is not _END or new is not _END:
        if old[0] < new[0]:
            yield old[0], ""
        elif old != new:
            yield new
        first = min(old[0], new[0])
        old, new = next(before, _END) if old[0] == first else old, next(now, _END) if new[0] == first else new


#: So many different links are sorted in memory, about 40 MB.
_LINKS_IN_MEMORY: Final = 100_000
_DIGITS: Final = 16
#: No document has more texts, on pages of so many hosts, but one that is made to.
_MOST_LINKS: Final = 50_000


class LinkedDocument(NamedTuple):
    """A document, its title, and the texts of the links to it."""

    url_id: int
    title: str
    links: list[Linked]


class LinkCounts:
    """Takes links in any order, then returns the documents by rising row id; a context manager around its file.

    Methods raise OSError where the disk is full. The file has no name, and is in ``folder``, which is made; else where
    temporary files are.
    """

    def __init__(self, folder: Path | None = None, *, in_memory: int = _LINKS_IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._gathered: Counter[bytes] = Counter()
        self._file = PartFile(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add_document(self, url_id: int, title: str) -> None:
        """Takes a document: links to others are left out."""
        # The fields of a line are sorted: that without a text comes before all texts.
        self._add(f"{url_id:0{_DIGITS}x}\t\t{title}\t0")

    def add_link(self, url_id: int, text: str, host_id: int) -> None:
        """Takes the text of a link on a page of a host."""
        self._add(f"{url_id:0{_DIGITS}x}\t{text.casefold()}\t{text}\t{host_id:x}")

    def by_document(self) -> Iterator[LinkedDocument]:
        """The documents with links to them, by rising row id."""
        for key, lines in groupby(self._merge(), key=lambda line: line[0][:_DIGITS]):
            first, *links = (_read_line(*line) for line in islice(lines, _MOST_LINKS))
            if not first.folded and links:
                yield LinkedDocument(int(key, 16), first.text, links)

    def _add(self, line: str) -> None:
        self._gathered[line.encode("utf-8", "replace")] += 1
        if len(self._gathered) == self._in_memory:
            self._file.add(b"%b\t%d" % (line, count) for line, count in sorted(self._gathered.items()))
            self._gathered = Counter()

    def _merge(self) -> Iterator[tuple[bytes, int]]:
        gathered = sorted(self._gathered.items())
        if not self._file:
            yield from gathered
            return
        merged = heapq.merge(*(map(_split_count, part) for part in self._file.parts()), gathered)
        for line, same in groupby(merged, key=lambda one: one[0]):
            yield line, sum(count for _, count in same)


def _split_count(record: bytes) -> tuple[bytes, int]:
    line, _, count = record.rpartition(b"\t")
    return line, int(count)


def _read_line(line: bytes, count: int) -> Linked:
    _, folded, text, host_id = line.decode().split("\t")
    # All links of a source come here twice: this takes half the time of Linked(...).
    return tuple.__new__(Linked, (folded, text, int(host_id, 16), count))
