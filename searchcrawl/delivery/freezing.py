"""What the documents of a host have in common is frozen at the end of each completed run, and applied when they are sent.

That is what repeats on most pages, and is no content (C8); the language that most documents have, which decides where one
declares none and its text tells none for sure (C9); and the titles that several pages share, which go out with what tells
them from others (C8).

So it never depends on the order of the visits. Change detection knows nothing of it: records and digests have the page as
it is. Documents that went out with something else are sent again, once, with the last batch of the run.

Each step may be the last one of a process. Until all documents that differ are to be sent again, the row of a host has what
was before as well, and the next completed run begins with them.

There may be many hosts with few documents each: a transaction freezes what is known of hundreds of them, and the records
that tell it are read in the order in which they are in the cache.

In a helper thread before the last batch; titles, once orphans were found, in the delivery thread.
"""

from __future__ import annotations

import hashlib
import logging
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar

from searchcrawl import urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.commit.near_copies import forget_signatures
from searchcrawl.documents.language import JudgedLanguages, select_usual, weigh_usual
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.failpoints import reach
from searchcrawl.items import Guess
from searchcrawl.rules.copy_order import rank
from searchcrawl.rules.host_texts import (
    FEWEST_SHARING,
    FEWEST_STILL_SHARING,
    NamedPage,
    choose_title,
    cut_blocks,
    key_of_own,
    list_blocks,
    list_title_keys,
    pack_keys,
    select_blocks,
    select_shared,
    unpack_keys,
)
from searchcrawl.run import Run
from searchcrawl.store.batch_table import BatchDocument, send_again
from searchcrawl.store.documents import document_queries
from searchcrawl.store.documents.document_queries import HTML, SampledDocument
from searchcrawl.store.documents.frozen_table import BLOCKS, LANGUAGES, TITLES, Frozen, FrozenTable
from searchcrawl.store.statements import split

logger = logging.getLogger(__name__)

T = TypeVar("T", bytes, str)

#: Of fewer documents of a host nothing can be said.
_FEWEST_DOCUMENTS: Final = 10
#: So many documents of a host tell what they have in common.
_MOST_DOCUMENTS: Final = 200
#: Titles are counted by so many bits of their keys: two that have the same count as one, and a record more is read.
_BUCKETS: Final = 1 << 22
_MOST_COUNTED: Final = 255
#: Documents that are looked up by their titles at once, and records that are read before something is told of their hosts.
_PART: Final = 500
#: Hosts that a transaction freezes what is known of.
_HOSTS: Final = 500
#: Hosts that the log names for each thing that is frozen.
_MOST_NAMED: Final = 100
#: So many hosts are remembered with their keys; documents come in the order in which they were found.
_UNPACKED: Final = 256

#: The fields of a document as the cache has them, and its ``access_url``.
Record = Mapping[str, Any]


class KeysOfHosts:
    """Keys by host, as ``rules.host_texts`` packs them: 8 bytes each, where a set of them would have 90."""

    def __init__(self, packed: Mapping[str, bytes]) -> None:
        self._packed = packed
        self._unpack = lru_cache(_UNPACKED)(unpack_keys)

    def __bool__(self) -> bool:
        return bool(self._packed)

    def find(self, host: str) -> frozenset[int]:
        """The keys of a host; none where nothing is known of it."""
        packed = self._packed.get(host)
        return self._unpack(packed) if packed else frozenset()


class OfHosts(NamedTuple):
    """What is frozen, by host: blocks that are no content, by their digests; the usual language; shared titles, by their keys."""

    blocks: KeysOfHosts
    languages: Mapping[str, str]
    titles: KeysOfHosts

    def apply(self, record: Record, row: BatchDocument) -> dict[str, Any]:
        """The record as the document goes out: with its languages, which its whole text tells, its title and its text."""
        return {
            **record,
            **choose_languages(record, row.url, self.languages),
            "title": tell_title(record, row.url, row.mimetype, self.titles),
            "content": cut_content(record.get("content"), row.url, row.mimetype, self.blocks),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Common(Generic[T]):
    """Something that documents of a host have in common.

    ``types`` are those of the documents that tell it, and get it; None: all. ``nothing`` is the value of a host of which
    nothing is known; it stays so with less than ``fewest`` documents. ``list_seen`` says what is counted of a record, each
    once. ``find`` makes a value of how many records have each, of the number of records, and of the value before.
    ``apply`` is what comes of a record with a value: a document of which something else comes is sent again. ``report``
    logs the value of a host. Where it is not ``wanted`` all documents go without it.
    """

    name: str
    table: FrozenTable[T]
    types: Collection[str] | None
    nothing: T
    fewest: int
    wanted: Callable[[Run], bool]
    list_seen: Callable[[Record], Iterable[Hashable]]
    find: Callable[[Counter[Any], int, T], T]
    apply: Callable[[Record, T], object]
    report: Callable[[str, T], None]
    on_marked: Callable[[Run, Collection[str]], None] | None = None


class _Sampled:
    """The documents that are looked at: a sample of each host tells what they have in common, and all may differ."""

    def __init__(self, run: Run, types: Collection[str] | None) -> None:
        self._run = run
        self._types = types

    def sample(self) -> Mapping[str, Sequence[SampledDocument]]:
        """Those that tell it, by host, in an order that does not depend on the order of the visits."""
        found: dict[str, list[SampledDocument]] = {}
        sampled = self._run.read(document_queries.find_sample, source_id=self._run.source_id, types=self._types)
        for document in _leave_copies_out(sampled):
            found.setdefault(urls.host_and_port(document.url), []).append(document)
        return {host: several[:_MOST_DOCUMENTS] for host, several in found.items() if len(several) >= _FEWEST_DOCUMENTS}

    def find_sent(self, values: Collection[bytes | str]) -> Iterator[Sequence[SampledDocument]]:  # all of them
        """Those that were sent and may differ where it was, or is, one of these values; some at a time."""
        return self._run.read_pages(document_queries.find_sent, source_id=self._run.source_id, types=self._types)


class TitleCounts:
    """Which documents may share their titles: 12 bytes a document, whatever its title."""

    def __init__(self) -> None:
        self._ids = array("q")
        self._buckets = array("I")
        self._counts = bytearray(_BUCKETS)

    def add(self, url_id: int, title: str) -> None:
        """Adds a document."""
        bucket = key_of_own(title) % _BUCKETS
        self._ids.append(url_id)
        self._buckets.append(bucket)
        if self._counts[bucket] < _MOST_COUNTED:
            self._counts[bucket] += 1

    def find_shared(self) -> Iterator[int]:
        """The ids of documents whose title may be shared, by rising id, and of those without a title."""
        none, counts = key_of_own("") % _BUCKETS, self._counts
        for url_id, bucket in zip(self._ids, self._buckets, strict=True):
            if counts[bucket] >= FEWEST_STILL_SHARING or bucket == none:
                yield url_id

    def find(self, keys: Collection[int]) -> Iterator[int]:
        """The ids of documents whose title may have one of these keys, by rising id, and of those without a title."""
        buckets = {key_of_own("") % _BUCKETS, *(key % _BUCKETS for key in keys)}
        return (url_id for url_id, bucket in zip(self._ids, self._buckets, strict=True) if bucket in buckets)


class _Titled(_Sampled):
    """The documents that are looked at for their titles."""

    def __init__(self, run: Run, titles: TitleCounts) -> None:
        super().__init__(run, HTML)
        self._titles = titles

    def sample(self) -> Mapping[str, list[SampledDocument]]:
        """Those whose title may be shared, by host."""
        found: dict[str, list[SampledDocument]] = {}
        for document in self._load(self._titles.find_shared(), is_sent=False):
            found.setdefault(urls.host_and_port(document.url), []).append(document)
        # The ids depend on the order of the visits.
        return {host: sorted(several, key=lambda each: each.url) for host, several in found.items()}

    def find_sent(self, values: Collection[bytes | str]) -> Iterator[list[SampledDocument]]:
        """Those that were sent whose title is, or was, a shared one."""
        keys = {key for packed in values if isinstance(packed, bytes) for key in unpack_keys(packed)}
        documents = self._load(self._titles.find(keys), is_sent=True)
        while found := list(islice(documents, _PART)):
            yield found

    def _load(self, url_ids: Iterator[int], *, is_sent: bool) -> Iterator[SampledDocument]:
        while part := list(islice(url_ids, _PART)):
            yield from self._run.read(
                document_queries.load_sampled, source_id=self._run.source_id, url_ids=part, types=HTML, is_sent=is_sent
            )


def load_of_hosts(run: Run) -> OfHosts:
    """What is frozen of the hosts of a source; nothing of what it says itself."""
    return OfHosts(
        KeysOfHosts(_load(run, COMMON_BLOCKS)),
        _load(run, COMMON_LANGUAGES),
        KeysOfHosts(_load(run, COMMON_TITLES)),
    )


def _load(run: Run, common: Common[T]) -> dict[str, T]:
    return run.read(common.table.load_values, source_id=run.source_id) if common.wanted(run) else {}


def freeze(run: Run, cache: DocumentCache, common: Common[T], titles: TitleCounts | None = None) -> bool:
    """Looks at the documents of each host anew, and has those sent again that differ; raises StoreError, CacheError.

    ``titles`` are those of all documents, where it is about these. Without ``cache.preserve`` what is known stays, and
    nothing becomes known: which records are left at the end of a run is chance. Returns whether documents differ.
    """
    looked_at = _Sampled(run, common.types) if titles is None else _Titled(run, titles)
    differed = _send_differing(run, cache, common, looked_at)
    if not run.project.cache.preserve:
        return differed
    sampled = looked_at.sample() if common.wanted(run) else {}
    freezing = _Freezing(run, cache, common, run.read(common.table.load, source_id=run.source_id))
    freezing.look_at(sampled)
    freezing.leave_out(sampled)
    freezing.report_rest()
    return _send_differing(run, cache, common, looked_at) or differed


def _leave_copies_out(sampled: Sequence[SampledDocument]) -> list[SampledDocument]:
    """One document of each content, in the order in which they came: near copies may be exact copies of each other, too."""
    best: dict[bytes, SampledDocument] = {}
    for document in sampled:
        if document.copy_digest is not None:
            known = best.get(document.copy_digest)
            if known is None or rank(document.url) < rank(known.url):
                best[document.copy_digest] = document
    return [one for one in sampled if one.copy_digest is None or best[one.copy_digest] is one]


def _digest(documents: Sequence[SampledDocument]) -> bytes:
    digest = hashlib.sha256()
    for document in documents:
        digest.update(document.url.encode() + b"\n" + document.fields_digest)
    return digest.digest()


class _Look(NamedTuple):
    """The documents of a host that tell what they have in common, their digest, and what was seen of those with a record."""

    host: str
    documents: Sequence[SampledDocument]
    digest: bytes
    counts: Counter[Hashable]


@dataclass(slots=True)
class _Freezing(Generic[T]):
    """Freezes one thing for all hosts; ``frozen`` is what is known of them."""

    run: Run
    cache: DocumentCache
    common: Common[T]
    frozen: Mapping[str, Frozen[T]]
    _rows: list[Frozen[T]] = field(default_factory=list)
    _named: int = 0

    def look_at(self, sampled: Mapping[str, Sequence[SampledDocument]]) -> None:
        """Freezes what documents of hosts have in common, where they are other ones than before."""
        part: list[_Look] = []
        records = 0
        for host, documents in sampled.items():
            digest = _digest(documents)
            if host in self.frozen and self.frozen[host].sample == digest:
                continue
            part.append(_Look(host, documents, digest, Counter()))
            records += len(documents)
            if records >= _PART:
                self._look_at_part(part)
                part, records = [], 0
        self._look_at_part(part)
        self._write()

    def leave_out(self, sampled: Collection[str]) -> None:
        """Nothing is known any more of hosts that are not among these."""
        gone = [self.frozen[host] for host in self.frozen.keys() - sampled]
        for row in gone:
            if row.value:
                self._add(Frozen(row.host, row.version + 1, b"", self.common.nothing, row.value))
        self._write()
        for hosts in split([row.host for row in gone if not row.value]):
            self.run.write(self.common.table.forget, source_id=self.run.source_id, hosts=hosts)

    def report_rest(self) -> None:
        """Says of how many hosts the log does not say what was frozen."""
        if self._named > _MOST_NAMED:
            logger.info("%s of %d more hosts are other ones", self.common.name, self._named - _MOST_NAMED)

    def _look_at_part(self, part: Sequence[_Look]) -> None:
        read = self._count(part)
        for look in part:
            before, version = self._known(look.host)
            value = self.common.find(look.counts, read[look.host], before)
            # Where the cache gave most of its records up, what is known stays.
            if value == before or read[look.host] * 2 < len(look.documents):
                self._add(Frozen(look.host, version, look.digest, before, None))
            else:
                self._report(look.host, value)
                self._add(Frozen(look.host, version + 1, look.digest, value, before))

    def _known(self, host: str) -> tuple[T, int]:
        """What is frozen of a host, and its version."""
        row = self.frozen.get(host)
        return (self.common.nothing, 0) if row is None else (row.value, row.version)

    def _count(self, part: Sequence[_Look]) -> Counter[str]:
        """Counts what is seen of the documents of hosts; returns how many records of each were read."""
        wanted = [
            (look, document)
            for look in part
            # Of so few nothing becomes known.
            if len(look.documents) >= self.common.fewest or self._known(look.host)[0]
            for document in look.documents
        ]
        read = Counter[str]()
        for look, document in sorted(wanted, key=lambda each: each[1].place or ()):
            record = _read_record(self.cache, document)
            if record is not None:
                read[look.host] += 1
                look.counts.update(self.common.list_seen(record))
        return read

    def _report(self, host: str, value: T) -> None:
        self._named += 1
        if self._named <= _MOST_NAMED:
            self.common.report(host, value)

    def _add(self, row: Frozen[T]) -> None:
        self._rows.append(row)
        if len(self._rows) == _HOSTS:
            self._write()

    def _write(self) -> None:
        if self._rows:
            self.run.write(self.common.table.freeze, source_id=self.run.source_id, rows=self._rows)
            self._rows = []
            reach(f"{self.common.name}.frozen")


def _read_record(cache: DocumentCache, row: SampledDocument) -> Record | None:
    """The record of a document; None where it cannot be read: what sends the document says so."""
    try:
        return None if row.place is None else {**cache.read_fields(row.place, url=row.url), "access_url": row.url}
    except DamagedRecord:
        return None


def _send_differing(run: Run, cache: DocumentCache, common: Common[T], looked_at: _Sampled) -> bool:
    """Has the documents sent again that were, or may have been, sent with another value than is frozen; whether there are any."""
    changed = run.read(common.table.load_changed, source_id=run.source_id)
    if not changed:
        return False
    found = False
    for rows in looked_at.find_sent([value for versions in changed.values() for value in versions]):
        differing = [
            row.url_id
            for row in rows
            if (versions := changed.get(urls.host_and_port(row.url))) and _differs(cache, row, common, versions)
        ]
        if differing:
            found = True
            run.write(send_again, url_ids=differing)
            reach(f"{common.name}.marked")
    if common.on_marked is not None:
        common.on_marked(run, changed)
    run.write(common.table.settle, source_id=run.source_id)
    return found


def _differs(cache: DocumentCache, row: SampledDocument, common: Common[T], versions: tuple[T, T]) -> bool:
    record = _read_record(cache, row)
    return record is not None and common.apply(record, versions[0]) != common.apply(record, versions[1])


# What repeats on most pages of a host


def cut_content(content: object, url: str, mimetype: str, blocks: KeysOfHosts) -> object:
    """The text of a document without what is on most pages of its host."""
    if not blocks or not isinstance(content, str) or mimetype not in HTML:
        return content
    return cut_blocks(content, blocks.find(urls.host_and_port(url)))


def _cuts_blocks(run: Run) -> bool:
    content = run.source.content
    return content.mode == "main" and not content.keep


def _find_blocks(counts: Counter[int], number: int, before: bytes) -> bytes:
    return pack_keys(select_blocks(counts, number, before=unpack_keys(before)))


def _read_text(record: Record) -> str:
    text = record.get("content")
    return text if isinstance(text, str) else ""


def _report_blocks(host: str, packed: bytes) -> None:
    logger.info("%s: blocks on most of its pages that are not indexed: %d", host, len(unpack_keys(packed)))


def _forget_signatures(run: Run, hosts: Collection[str]) -> None:
    # What tells near copies is made of the text that is indexed.
    forget_signatures(run, lambda url: urls.host_and_port(url) in hosts)


COMMON_BLOCKS: Final[Common[bytes]] = Common(
    name="blocks",
    table=BLOCKS,
    types=HTML,
    nothing=b"",
    fewest=_FEWEST_DOCUMENTS,
    wanted=_cuts_blocks,
    list_seen=lambda record: list_blocks(_read_text(record)),
    find=_find_blocks,
    apply=lambda record, packed: cut_blocks(_read_text(record), unpack_keys(packed)),
    report=_report_blocks,
    on_marked=_forget_signatures,
)


# The language that most documents of a host have


def choose_languages(record: Record, url: str, usual: Mapping[str, str]) -> dict[str, Any]:
    """The fields with the languages of a document, the main one first, by its record and by what its host usually has."""
    languages = _choose_languages(record, usual.get(urls.host_and_port(url), "") if usual else "")
    return {"language": languages[0] if languages else "", "languages": list(languages)}


def _choose_languages(record: Record, usual: str) -> tuple[str, ...]:
    language, guess = str(record.get("language") or ""), record.get("language_guess")
    languages = tuple(record.get("languages") or filter(None, (language,)))
    if not usual or guess is None:
        return languages
    told = JudgedLanguages() if guess == Guess.DEFAULT else JudgedLanguages(languages, Guess(guess))
    return weigh_usual(str(record.get("content") or ""), told, usual) or languages


def _list_language(record: Record) -> Sequence[str]:
    """The language of a record, where it says one itself."""
    language = record.get("language")
    if not language or record.get("language_guess") in {Guess.DEFAULT, Guess.SCRIPT}:
        return ()
    return (str(language).partition("-")[0],)


def _find_language(counts: Counter[str], _: int, before: str) -> str:
    return select_usual(counts, before=before, least=_FEWEST_DOCUMENTS)


def _report_language(host: str, language: str) -> None:
    logger.info("%s: the language of most of its documents is %s", host, language or "not known any more")


COMMON_LANGUAGES: Final[Common[str]] = Common(
    name="languages",
    table=LANGUAGES,
    types=None,
    nothing="",
    fewest=_FEWEST_DOCUMENTS,
    wanted=lambda run: not run.source.content.language,
    list_seen=_list_language,
    find=_find_language,
    apply=_choose_languages,
    report=_report_language,
)


# The titles that pages of a host share


def tell_title(record: Record, url: str, mimetype: str, shared: KeysOfHosts) -> object:
    """The title of a document, by its record and by what its host shares."""
    title = record.get("title")
    keys = shared.find(urls.host_and_port(url)) if shared else frozenset[int]()
    if mimetype not in HTML or (title and not keys):
        return title
    return choose_title(_name(record, url), keys)


def _name(record: Record, url: str) -> NamedPage:
    headings = record.get("headings") or ()
    return NamedPage(
        url=url,
        title=str(record.get("title") or ""),
        headings=headings,
        naming=record.get("naming") or 0,
        line=str(record.get("content") or "").partition("\n")[0],
    )


def _find_titles(counts: Counter[int], _: int, before: bytes) -> bytes:
    return pack_keys(select_shared(counts, before=unpack_keys(before)))


def _report_titles(host: str, packed: bytes) -> None:
    logger.info("%s: titles that several of its pages share or could have: %d", host, len(unpack_keys(packed)))


COMMON_TITLES: Final[Common[bytes]] = Common(
    name="titles",
    table=TITLES,
    types=HTML,
    nothing=b"",
    fewest=FEWEST_SHARING,
    wanted=lambda run: True,
    list_seen=lambda record: list_title_keys(_name(record, record["access_url"])),
    find=_find_titles,
    apply=lambda record, packed: choose_title(_name(record, record["access_url"]), unpack_keys(packed)),
    report=_report_titles,
)
