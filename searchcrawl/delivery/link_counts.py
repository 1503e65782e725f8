"""Counts which pages link to a document with which texts, in bounded memory: sorted parts in a file, merged when read."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from searchcrawl.part_file import PartFile
from searchcrawl.rules.anchors import Linked

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
