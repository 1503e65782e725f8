"""A right to be forgotten: URLs leave index, cache and table at once, and are refused from then on.

``forgotten.txt`` has them first, so that no later run asks for them. Then each source gives up what it knows of them: a
transaction empties rows and seals their removals, which a later run or call sends where the index is away. A crash at any
moment is completed by the same call.

Files may have come from a forgotten archive by another URL, from which redirects led to it. An archive has no record of its
own, and the records of its files tell its URL and not that of the server's answer. So the rows of archives are asked, with
the redirects that their visits followed.

No byte of their records stays in the cache. What no row names any more lies in the segments until they are compacted: each
record there is read for its URL. A crash at any moment loses no record, and the next call finds what is left.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from searchcrawl import clock, urls
from searchcrawl.cache.document_cache import DocumentCache, find_gaps, has_record_of
from searchcrawl.cache.opening import open_cache, use_cache
from searchcrawl.commit.document_rows import resolve_again
from searchcrawl.comparison.bring_together import prepare_resend
from searchcrawl.comparison.look import has_documents, require_known
from searchcrawl.delivery import delivery_queue
from searchcrawl.delivery.anchors import take_back_texts
from searchcrawl.delivery.batch_sender import Sent
from searchcrawl.delivery.cache_space import rewrite
from searchcrawl.delivery.receivers.sending import send_rest
from searchcrawl.delivery.removals import find_limits
from searchcrawl.exceptions import (
    CacheError,
    ConfigurationError,
    DamagedRecord,
    DeliveryError,
    IndexMisconfigured,
    IndexUnavailable,
    UnknownSource,
)
from searchcrawl.failpoints import reach
from searchcrawl.index.opening import use_index
from searchcrawl.index.receiver import SearchIndex
from searchcrawl.items import Place
from searchcrawl.operations import redelivery
from searchcrawl.operations.plan_file import drop_plans
from searchcrawl.operations.source_lease import lease_source
from searchcrawl.rules.archives import list_archives
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.forgotten import FILE, KEY, Forgotten, digest
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.forgotten_list import add_lines
from searchcrawl.sources.loading import build_forgotten, build_identity, load_source, stand_in_for
from searchcrawl.sources.project import Project
from searchcrawl.store import removal_table, source_table
from searchcrawl.store.documents import duplicate_key_table, segment_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.receiver_table import list_unheard
from searchcrawl.store.runs import run_table
from searchcrawl.store.statements import split
from searchcrawl.store.states import DocumentState
from searchcrawl.store.urls import forget_table, recrawl_table
from searchcrawl.store.urls.forget_table import KnownRow, NamedRow

_ID: Final = operator.attrgetter("id")


@dataclass(slots=True)
class Known:
    """What a source knows of forgotten URLs: rows that a line names, and rows that patterns or archives alone match.

    ``led`` are rows of other URLs whose page came from one of them by redirects; True: a line names that one. ``carriers`` are
    URLs from which redirects led to a forgotten archive; their files are among ``led``.

    ``error`` is that of its file, where that is missing or broken: then it stands for the source with built-in values.
    """

    source: Source
    source_id: int
    forgotten: Forgotten
    error: ConfigurationError | UnknownSource | None = None
    named: list[int] = field(default_factory=list)
    matched: list[int] = field(default_factory=list)
    led: dict[int, bool] = field(default_factory=dict)
    carriers: frozenset[str] = frozenset()

    def list_led(self, *, named: bool) -> list[int]:
        """The rows whose page came from a URL that a line names, or that a pattern alone matches."""
        return [url_id for url_id, by_name in self.led.items() if by_name == named]


@dataclass(slots=True)
class Survey:
    """What all sources know of forgotten URLs, by the name of the source; ``last_id`` is that of the last row seen.

    ``aliases`` are the URLs of rows that were found as, or are shown as, a URL that a line names.
    """

    known: dict[str, Known]
    aliases: dict[str, None] = field(default_factory=dict)
    last_id: int = 0


class ForgetCall(NamedTuple):
    """What one call of the command has in common for all sources, of which the survey has seen rows up to ``last_id``.

    Removals by patterns count towards the limits on deleting, unless ``approved``. ``before`` is the digest of the list
    that the rows were known to agree with, before lines were added.
    """

    project: Project
    database: Database
    before: str | None
    last_id: int
    approved: bool
    retry_seconds: float


class PastLimit(NamedTuple):
    """A source of which patterns match more documents than may be removed at once."""

    source: str
    documents: int
    of: int


def survey(project: Project, database: Database, lines: Sequence[str]) -> Survey:
    """Looks for what ``lines`` mean, in the rows of all sources; writes nothing. Raises StoreError."""
    names = database.read(run_table.find_source_names)
    by_id = {source_id: _open_source(project, name, source_id, lines) for source_id, name in names.items()}
    found = Survey({known.source.name: known for known in by_id.values()})
    for rows in database.read_pages(forget_table.load_rows, key=_ID):
        found.last_id = rows[-1].id
        for row in rows:
            if (known := by_id.get(row.source_id)) is not None:
                _sort(row, known, found.aliases)
    for known in by_id.values():
        known.led = _find_led(project, database, known)
        known.carriers = find_carriers(database, known.source_id, known.forgotten)
        seen = {*known.named, *known.matched, *known.led}
        carried = find_carried(database, known.source_id, known.carriers)
        known.led |= {url_id: False for url_id in carried if url_id not in seen}
    return found


def _find_led(project: Project, database: Database, known: Known) -> dict[int, bool]:
    """The rows whose record has the page of a forgotten URL, to which redirects led."""
    identity, seen = build_identity(known.source), {*known.named, *known.matched}
    found: dict[int, bool] = {}
    with use_cache(project, known.source.name) as cache:
        for rows in database.read_pages(forget_table.load_redirecting, key=_ID, source_id=known.source_id):
            for row in rows:
                base = _read_base_url(cache, row)
                if base is not None and row.id not in seen and known.forgotten.find(identity.strip(base)) is not None:
                    found[row.id] = known.forgotten.find_named(identity.strip(base)) is not None
    return found


def _read_base_url(cache: DocumentCache, row: Any) -> str | None:
    try:
        return cache.read_page(Place._make(row[2:])).base_url
    except DamagedRecord:
        return None


def _open_source(project: Project, name: str, source_id: int, lines: Sequence[str]) -> Known:
    error = None
    try:
        source = load_source(project, name)
    except (ConfigurationError, UnknownSource) as caught:
        source, error = stand_in_for(project, name), caught
    return Known(source, source_id, build_forgotten(source, lines) or Forgotten([]), error)


def _sort(row: NamedRow, known: Known, aliases: dict[str, None]) -> None:
    forgotten = known.forgotten
    others = [url for url in (row.found_as, row.display_url) if url is not None]
    if forgotten.find_named(row.url):
        known.named.append(row.id)
    elif any(forgotten.find_named(url) for url in others):
        aliases[row.url] = None
        known.named.append(row.id)
    elif forgotten.find(row.url, in_archive=row.in_archive):
        known.matched.append(row.id)
    elif any(forgotten.find(url) for url in others):
        aliases[row.url] = None
        known.matched.append(row.id)


def find_past_limits(database: Database, found: Survey) -> list[PastLimit]:
    """The sources of which patterns match more documents than the limits on deleting allow (L3)."""
    return [past for known in found.known.values() if (past := database.read(_find_past, known=known))]


def _find_past(transaction: Transaction, *, known: Known) -> PastLimit | None:
    removals = forget_table.count_documents(transaction, [*known.matched, *known.list_led(named=False)])
    if not removals:
        return None
    limits = find_limits(transaction, known.source, known.source_id, removals)
    return None if limits.allowed else PastLimit(known.source.name, removals, limits.documents)


def is_concerned(project: Project, database: Database, known: Known) -> bool:
    """Whether a source knows anything of forgotten URLs, or waits for one, or its cache has a record of one.

    Raises StoreError, CacheError.
    """
    if known.named or known.matched or known.led or database.read(_find_submitted, known=known):
        return True
    with use_cache(project, known.source.name) as cache:
        return any(find_segments(database.read, cache, known.source_id, partial(_may_be_meant, known)))


def _find_submitted(transaction: Transaction, *, known: Known) -> list[str]:
    """Forgotten URLs that were submitted, and that no run has admitted yet."""
    identity = build_identity(known.source)
    waiting = recrawl_table.load_submitted(transaction, known.source_id)
    return [url for url in waiting if _is_meant(known, url) or _is_meant(known, identity.strip(url))]


def _drop_submitted(transaction: Transaction, *, known: Known) -> None:
    recrawl_table.remove_submitted(transaction, known.source_id, _find_submitted(transaction, known=known))


def _is_meant(known: Known, url: str) -> bool:
    return known.forgotten.find(url) is not None


def _may_be_meant(known: Known, url: str) -> bool:
    """The same of a record that no row names: if in doubt it was read from an archive, for nobody needs it."""
    return known.forgotten.find(url, in_archive=True) is not None or is_carried(url, known.carriers)


def forget_in(call: ForgetCall, known: Known) -> tuple[dict[str, Any], DeliveryError | None]:
    """Has a source forget what a survey found, and what has been added since.

    Returns the receipt, ``{"source", "documents", "removed", "failed", "to_fetch"}``, and the error of an index that could
    not be reached: all else is done then. Raises SourceBusy while the source is crawled, StoreError, CacheError.
    """
    project = call.project
    source = known.source.model_copy(update={"forgotten": project.forgotten})
    drop_plans(project, source.name)
    sent, failure = Sent(), None
    with lease_source(project, source, call.database) as run:
        if run is None:
            return build_receipt(source.name), None
        _add_later_rows(run, known, call.last_id)
        run.write(_drop_submitted, known=known)
        ids = [*known.named, *known.matched, *known.led]
        documents = sum(_empty_rows(run, known, counted=not call.approved))
        try:
            sent = _send(run, call.retry_seconds)
        except DeliveryError as error:
            failure = error
        with use_cache(project, source.name) as cache:
            remove_records(run, cache, partial(_may_be_meant, known))
        left = sum(run.write(forget_table.purge, run.source_id, source.name, part) for part in split(ids))
        send_rest(run, open_cache(project, source.name))
        unheard = run.read(list_unheard, source_id=run.source_id)
        run.write(_note_applied, source=source, source_id=run.source_id, before=call.before)
        reach("forget.done")
    receipt = build_receipt(source.name, documents=documents, removed=sent.removed, to_fetch=sent.to_fetch)
    return receipt | {"failed": left if failure is None else 0} | ({"receivers": unheard} if unheard else {}), failure


def check_index(project: Project, database: Database, name: str) -> None:
    """Raises DeliveryError where the index may have a document that no row names: the store was put back, or lost (L4).

    What is forgotten leaves with the run that brings both together. An index that is away says nothing.
    """
    try:
        with use_index(project) as index:
            if not isinstance(index, SearchIndex) or not has_documents(index, name):
                return
            require_known(index, database, name)
    except (IndexUnavailable, IndexMisconfigured):
        return


def build_receipt(source: str, *, documents: int = 0, removed: int = 0, to_fetch: int = 0) -> dict[str, Any]:
    """What was done for a source: documents forgotten, removals that the index acknowledged and those that it refused.

    ``to_fetch`` are pages with the same text that take the place of a forgotten one, and have no record any more, ``receivers``
    those besides the index that have not heard of it yet: they are away or paused, or write files at the end of a run.
    """
    return {"source": source, "documents": documents, "removed": removed, "failed": 0, "to_fetch": to_fetch}


def _add_later_rows(run: Run, known: Known, last_id: int) -> None:
    """Adds rows that a crawl added since the survey, before the source was taken."""
    aliases: dict[str, None] = {}
    while rows := run.read(forget_table.load_rows, after=last_id, source_id=run.source_id):
        last_id = rows[-1].id
        for row in rows:
            _sort(row, known, aliases)
    if aliases:
        add_lines(run.project.root, aliases)


def _empty_rows(run: Run, known: Known, *, counted: bool) -> Iterator[int]:
    kinds = (
        (known.named, False, True),
        (known.matched, counted, True),
        (known.list_led(named=True), False, False),
        (known.list_led(named=False), counted, False),
    )
    for ids, is_counted, refused in kinds:
        for part in split(ids):
            yield run.write(_empty_page, run=run, url_ids=part, counted=is_counted, refused=refused)
            reach("forget.emptied")


def _empty_page(transaction: Transaction, *, run: Run, url_ids: Sequence[int], counted: bool, refused: bool) -> int:
    """Empties rows and seals their removals; returns how many documents that concerns."""
    rows = {row.id: row for row in forget_table.load_known(transaction, run.source_id, url_ids)}
    rules = {row.id: _find_rule(run, row) if refused else None for row in rows.values()}
    rules = {url_id: rule for url_id, rule in rules.items() if not rows[url_id].is_forgotten(rule)}
    before = duplicate_key_table.load(transaction, list(rules))
    sealing = [url_id for url_id in rules if rows[url_id].is_in_index and rows[url_id].state != DocumentState.REMOVING]
    if sealing:
        removal_table.seal(transaction, run.source_id, run.id, clock.now_ms(), sealing, counted=counted)
    take_back_texts(transaction, run.source_id, list(rules))
    forget_table.empty(transaction, rules)
    resolve_again(transaction, run.source_id, before)
    forget_table.purge(transaction, run.source_id, run.source.name, list(rules))
    return len(before)


def _find_rule(run: Run, row: KnownRow) -> str:
    """The rule of a row, as the boundary says it; of one that was found as a forgotten URL, or is shown as one, itself."""
    decision = run.boundary.decide(row.url, in_archive=row.in_archive)
    return (decision if decision.key == KEY else Decision(False, row.url, FILE, KEY)).text


def _send(run: Run, retry_seconds: float) -> Sent:
    """Sends the removals, and the pages that take the place of forgotten ones, with all else that waits."""
    if not run.read(delivery_queue.is_waiting, source_id=run.source_id):
        return Sent()
    with use_index(run.project) as receiver:
        if isinstance(receiver, SearchIndex):
            receiver.ping()
        prepare_resend(run)
        return redelivery.send_waiting(run, receiver, retry_seconds, None, tells_receivers=False)


def _note_applied(transaction: Transaction, *, source: Source, source_id: int, before: str | None) -> None:
    """Notes that all rows agree with the list, if they did before: else the next run looks at each."""
    if source_table.find(transaction, source_id, "forgotten") == before:
        source_table.note(transaction, source_id, forgotten=digest(source.forgotten))


def find_carriers(database: Database, source_id: int, forgotten: Forgotten) -> frozenset[str]:
    """The URLs without a record whose redirects led to, or over, what is forgotten. Raises StoreError."""
    keys = {urls.key(url) for url in forgotten.list_named()}
    found: set[str] = set()
    for rows in database.read_pages(forget_table.load_answered, key=_ID, source_id=source_id):
        found |= {row.url for row in rows if row.answered_key in keys or _passed(row, forgotten)}
    return frozenset(found)


def _passed(row: Any, forgotten: Forgotten) -> bool:
    hops = [] if row.redirects is None else [hop["url"] for hop in orjson.loads(row.redirects)]
    passed = [*hops, *([] if row.answered_url is None else [row.answered_url])]
    return any(url != row.url and forgotten.find(url) is not None for url in passed)


def find_carried(database: Database, source_id: int, carriers: frozenset[str]) -> Iterator[int]:
    """The rows of files in archives of these URLs. Raises StoreError."""
    for rows in database.read_pages(forget_table.load_rows, key=_ID, source_id=source_id) if carriers else ():
        yield from (row.id for row in rows if is_carried(row.url, carriers))


def is_carried(url: str, carriers: frozenset[str]) -> bool:
    """Whether a URL may be that of a file in one of these archives."""
    return bool(carriers) and not carriers.isdisjoint(list_archives(url, in_archive=True))


T = TypeVar("T")
Read = Callable[[Callable[[Transaction], T]], T]


def find_segments(
    read: Read[list[segment_table.Needed]], cache: DocumentCache, source_id: int, is_meant: Callable[[str], bool]
) -> Iterator[int]:
    """The segments with a record, named by no row, of a URL that is meant, or with what cannot be read there.

    While a crawl writes, it may name too many. Raises CacheError, StoreError.
    """
    for number, size in cache.list_segments():
        find_needed = partial(segment_table.find_needed, source_id=source_id, number=number, with_waiting=True)
        places = [(row.offset, row.size) for row in read(find_needed)]
        if any(has_record_of(cache, number, begin, end, is_meant) for begin, end in find_gaps(size, places)):
            yield number


def remove_records(run: Run, cache: DocumentCache, is_meant: Callable[[str], bool]) -> int:
    """Rewrites all such segments of a source that no process crawls; returns how many. No row may name these records.

    Raises CacheError, StoreError, LeaseLost.
    """
    found = list(find_segments(run.read, cache, run.source_id, is_meant))
    for number in found:
        if not rewrite(run, cache, number):
            raise CacheError(f"segment {number} of {run.source.name} is in use: run the command again")
    if found:
        cache.storage.settle()
    return len(found)
