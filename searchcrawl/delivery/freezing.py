"""What the documents of a host have in common is frozen at the end of each completed run, and applied when they are sent.

That is what repeats on most pages, and is no content (C8); the language that most documents have, which decides where one
declares none and its text tells none for sure (C9); and the titles that several pages share, which go out with what tells
them from others (C8).

So it never depends on the order of the visits. Change detection knows nothing of it: records and digests have the page as
it is. Documents that went out with something else are sent again, once, with the last batch of the run.

Each step may be the last one of a process. Until all documents that differ are to be sent again, the row of a host has what
was before as well, and the next completed run begins with them.

In a helper thread before the last batch; titles, once orphans were found, in the delivery thread.
"""

from __future__ import annotations

import hashlib
import logging
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    FEWEST_STILL_SHARING,
    NamedPage,
    choose_title,
    count_blocks,
    count_titles,
    cut_blocks,
    key_of_own,
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

logger = logging.getLogger(__name__)

T = TypeVar("T", bytes, str)

#: Of fewer documents of a host nothing can be said.
_FEWEST_DOCUMENTS: Final = 10
#: So many documents of a host tell what they have in common.
_MOST_DOCUMENTS: Final = 200
#: Titles are counted by so many bits of their keys: two that have the same count as one, and a record more is read.
_BUCKETS: Final = 1 << 22
_MOST_COUNTED: Final = 255
#: Documents that are looked up by their titles at once.
_PART: Final = 500

#: The fields of a document as the cache has them, and its ``access_url``.
Record = Mapping[str, Any]


class OfHosts(NamedTuple):
    """What is frozen, by host: blocks that are no content, by their digests; the usual language; shared titles, by their keys."""

    blocks: Mapping[str, frozenset[int]]
    languages: Mapping[str, str]
    titles: Mapping[str, frozenset[int]]

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
    nothing is known. ``find`` makes a value of records and of the value before. ``apply`` is what comes of a record with
    a value: a document of which something else comes is sent again. Where it is not ``wanted`` all documents go without it.
    """

    name: str
    table: FrozenTable[T]
    types: Collection[str] | None
    nothing: T
    wanted: Callable[[Run], bool]
    find: Callable[[Iterator[Record], T], T]
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
        found = list(self._load(self._titles.find(keys), is_sent=True))
        yield from (found[at : at + _PART] for at in range(0, len(found), _PART))

    def _load(self, url_ids: Iterator[int], *, is_sent: bool) -> Iterator[SampledDocument]:
        wanted = list(url_ids)
        for at in range(0, len(wanted), _PART):
            part = wanted[at : at + _PART]
            yield from self._run.read(
                document_queries.load_sampled, source_id=self._run.source_id, url_ids=part, types=HTML, is_sent=is_sent
            )


def load_of_hosts(run: Run) -> OfHosts:
    """What is frozen of the hosts of a source; nothing of what it says itself."""
    blocks, titles = _load(run, COMMON_BLOCKS), _load(run, COMMON_TITLES)
    return OfHosts(
        {host: unpack_keys(packed) for host, packed in blocks.items()},
        _load(run, COMMON_LANGUAGES),
        {host: unpack_keys(packed) for host, packed in titles.items()},
    )


def _load(run: Run, common: Common[T]) -> dict[str, T]:
    if not common.wanted(run):
        return {}
    frozen = run.read(common.table.load, source_id=run.source_id)
    return {host: row.value for host, row in frozen.items() if row.value}


def freeze(run: Run, cache: DocumentCache, common: Common[T], titles: TitleCounts | None = None) -> bool:
    """Looks at the documents of each host anew, and has those sent again that differ; raises StoreError, CacheError.

    ``titles`` are those of all documents, where it is about these. Without ``cache.preserve`` what is known stays, and
    nothing becomes known: which records are left at the end of a run is chance. Returns whether documents differ.
    """
    looked_at = _Sampled(run, common.types) if titles is None else _Titled(run, titles)
    differed = _send_differing(run, cache, common, looked_at)
    if not run.project.cache.preserve:
        return differed
    frozen = run.read(common.table.load, source_id=run.source_id)
    sampled = looked_at.sample() if common.wanted(run) else {}
    for host, documents in sampled.items():
        digest = _digest(documents)
        if host not in frozen or frozen[host].sample != digest:
            _freeze_host(run, cache, common, host, documents, digest, frozen.get(host))
    for host in frozen.keys() - sampled.keys():
        row = frozen[host]
        if row.value:
            _write(run, common, Frozen(host, row.version + 1, b"", common.nothing, row.value))
        else:
            run.write(common.table.forget, source_id=run.source_id, host=host)
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


def _freeze_host(
    run: Run,
    cache: DocumentCache,
    common: Common[T],
    host: str,
    documents: Sequence[SampledDocument],
    digest: bytes,
    frozen: Frozen[T] | None,
) -> None:
    before = common.nothing if frozen is None else frozen.value
    version = 0 if frozen is None else frozen.version
    records = _Records(cache, documents)
    value = common.find(iter(records), before)
    # Where the cache gave most of its records up, what is known stays.
    if value == before or records.read * 2 < len(documents):
        _write(run, common, Frozen(host, version, digest, before, None))
    else:
        common.report(host, value)
        _write(run, common, Frozen(host, version + 1, digest, value, before))


def _write(run: Run, common: Common[T], frozen: Frozen[T]) -> None:
    run.write(common.table.freeze, source_id=run.source_id, frozen=frozen)
    reach(f"{common.name}.frozen")


class _Records:
    """The records of documents, one after the other, and how many were read."""

    def __init__(self, cache: DocumentCache, documents: Sequence[SampledDocument]) -> None:
        self._cache = cache
        self._documents = documents
        self.read = 0

    def __iter__(self) -> Iterator[Record]:
        for document in self._documents:
            record = _read_record(self._cache, document)
            if record is not None:
                self.read += 1
                yield record


def _read_record(cache: DocumentCache, row: SampledDocument) -> Record | None:
    """The record of a document; None where it cannot be read: what sends the document says so."""
    try:
        return None if row.place is None else {**cache.read_fields(row.place, url=row.url), "access_url": row.url}
    except DamagedRecord:
        return None


def _send_differing(run: Run, cache: DocumentCache, common: Common[T], looked_at: _Sampled) -> bool:
    """Has the documents sent again that were, or may have been, sent with another value than is frozen; whether there are any."""
    frozen = run.read(common.table.load, source_id=run.source_id)
    changed = {host: (row.previous, row.value) for host, row in frozen.items() if row.previous is not None}
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


def cut_content(content: object, url: str, mimetype: str, blocks: Mapping[str, frozenset[int]]) -> object:
    """The text of a document without what is on most pages of its host."""
    if not blocks or not isinstance(content, str) or mimetype not in HTML:
        return content
    return cut_blocks(content, blocks.get(urls.host_and_port(url), frozenset()))


def _cuts_blocks(run: Run) -> bool:
    content = run.source.content
    return content.mode == "main" and not content.keep


def _find_blocks(records: Iterator[Record], before: bytes) -> bytes:
    counts, number = count_blocks(map(_read_text, records))
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
    wanted=_cuts_blocks,
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


def _find_language(records: Iterator[Record], before: str) -> str:
    said = (record for record in records if record.get("language_guess") not in {Guess.DEFAULT, Guess.SCRIPT})
    languages = [record.get("language") for record in said]
    counts = Counter(str(language).partition("-")[0] for language in languages if language)
    return select_usual(counts, before=before, least=_FEWEST_DOCUMENTS)


def _report_language(host: str, language: str) -> None:
    logger.info("%s: the language of most of its documents is %s", host, language or "not known any more")


COMMON_LANGUAGES: Final[Common[str]] = Common(
    name="languages",
    table=LANGUAGES,
    types=None,
    nothing="",
    wanted=lambda run: not run.source.content.language,
    find=_find_language,
    apply=_choose_languages,
    report=_report_language,
)


# The titles that pages of a host share


def tell_title(record: Record, url: str, mimetype: str, shared: Mapping[str, frozenset[int]]) -> object:
    """The title of a document, by its record and by what its host shares."""
    title = record.get("title")
    keys = shared.get(urls.host_and_port(url)) if shared else None
    if mimetype not in HTML or (title and not keys):
        return title
    return choose_title(_name(record, url), keys or ())


def _name(record: Record, url: str) -> NamedPage:
    headings = record.get("headings") or ()
    return NamedPage(
        url=url,
        title=str(record.get("title") or ""),
        headings=headings,
        naming=record.get("naming") or 0,
        line=str(record.get("content") or "").partition("\n")[0],
    )


def _find_titles(records: Iterator[Record], before: bytes) -> bytes:
    counts = count_titles(_name(record, record["access_url"]) for record in records)
    return pack_keys(select_shared(counts, before=unpack_keys(before)))


def _report_titles(host: str, packed: bytes) -> None:
    logger.info("%s: titles that several of its pages share or could have: %d", host, len(unpack_keys(packed)))


COMMON_TITLES: Final[Common[bytes]] = Common(
    name="titles",
    table=TITLES,
    types=HTML,
    nothing=b"",
    wanted=lambda run: True,
    find=_find_titles,
    apply=lambda record, packed: choose_title(_name(record, record["access_url"]), unpack_keys(packed)),
    report=_report_titles,
)
