"""``verify --repair``: which sources are mended, one after the other, each under its lease (L4).

Of each the differences between table and index are mended. What has a version that the store never sent may come from a
newer store than this one: it is neither overwritten nor removed, its page decides. All else is sent again from the cache,
or removed within the limits on deleting. Every step may be repeated: after a crash the same call goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Final

from searchcrawl import clock
from searchcrawl.comparison.bring_together import Changes, forget_lost_segments, note_compared
from searchcrawl.comparison.differences import (
    GROUP,
    IndexDifference,
    Spool,
    confirm,
    confirm_foreign,
    in_groups,
    is_askable,
    spool_differences,
)
from searchcrawl.comparison.look import is_newer
from searchcrawl.delivery import delivery_queue, removals
from searchcrawl.delivery.batch_sender import BatchSender, open_sender
from searchcrawl.delivery.closing import forget_end_look
from searchcrawl.delivery.removals import DeletionLimits
from searchcrawl.exceptions import ConfigurationError, SourceBusy
from searchcrawl.failpoints import reach
from searchcrawl.index.receiver import Batch, IndexEntry, SearchIndex
from searchcrawl.items import Removal
from searchcrawl.operations.source_lease import RETRY_SECONDS, check_delivers, lease_source
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import is_source_name, load_source, stand_in_for
from searchcrawl.sources.project import Project
from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.documents import comparison_table
from searchcrawl.store.documents.comparison_table import Receipted
from searchcrawl.store.engine.database import Database
from searchcrawl.store.removal_table import RemovalCandidate
from searchcrawl.store.states import BatchState, DocumentState


@dataclass(slots=True, kw_only=True)
class Repair:
    """Mends what a comparison finds, a source at a time, and notes what it could not.

    ``sources`` have files. Documents of other sources that the store knows are removed only ``with_foreign``: somebody
    named their source, or all sources. ``beyond_limits``: the limits on deleting do not hold (``--yes``).
    ``held_back`` are those limits by source, ``to_visit`` how many pages of a source the next run visits, ``errors``
    why a source was not mended.
    """

    project: Project
    database: Database
    index: SearchIndex
    sources: Collection[str]
    with_foreign: bool
    beyond_limits: bool
    retry_seconds: float = RETRY_SECONDS
    on_source: Callable[[Source], object] = lambda source: None
    held_back: dict[str, DeletionLimits] = field(default_factory=dict)
    to_visit: dict[str, int] = field(default_factory=dict)
    errors: list[ConfigurationError | SourceBusy] = field(default_factory=list)

    def treat(self, name: str, found: Iterator[IndexDifference]) -> Iterator[IndexDifference]:
        """Mends the differences of a source, where that was asked for; yields them as they are then.

        Raises DeliveryError, StoreError, LeaseLost, CacheError, OSError.
        """
        foreign = name not in self.sources
        if foreign and not (self.with_foreign and is_source_name(name)):
            yield from found
            return
        with spool_differences() as differences, spool_differences() as done:
            for each in found:
                differences.add(each)
            try:
                mended = len(differences) > 0 and self._mend(name, differences, done, foreign=foreign)
            except (ConfigurationError, SourceBusy) as error:
                # Others can be mended all the same.
                self.errors.append(error)
                mended = False
            yield from done if mended else differences

    def _mend(
        self, name: str, differences: Spool[IndexDifference], done: Spool[IndexDifference], *, foreign: bool
    ) -> bool:
        """Mends a source; whether the store knows it."""
        source = stand_in_for(self.project, name) if foreign else load_source(self.project, name)
        check_delivers(source)
        with lease_source(self.project, source, self.database) as run:
            if run is None:
                return False
            self.on_source(source)
            self._mend_under_lease(run, differences, done, foreign=foreign)
        return True

    def _mend_under_lease(
        self, run: Run, differences: Spool[IndexDifference], done: Spool[IndexDifference], *, foreign: bool
    ) -> None:
        with open_sender(run, self.index, retry_seconds=self.retry_seconds) as sender:
            # An index of another schema would take documents and forget their versions.
            sender.retry.attempt(self.index.ping)
            mending = Mending(run, self.index, sender, foreign=foreign, beyond_limits=self.beyond_limits)
            mending.mend(differences, done)
            if all(each.mended for each in done):
                forget_end_look(run)
        name = run.source.name
        if mending.held_back is not None:
            self.held_back[name] = mending.held_back
        if mending.to_visit:
            self.to_visit[name] = self.to_visit.get(name, 0) + mending.to_visit


#: Documents of one delivery, and removals.
_SENT_ROWS: Final = 5000
_REMOVED_ROWS: Final = 1000
#: Versions of which it is remembered whether the store sent them.
_KNOWN_VERSIONS: Final = 10_000
VISITED: Final = "its page is visited by the next run, which decides"
_D = DocumentState


class RepairAction(Enum):
    """What is done about a difference."""

    SEND = auto()
    REMOVE = auto()
    #: the table is told that the index lacks what does not belong there
    FORGET = auto()
    #: the table takes over what the index has, and the page is fetched whole
    VISIT = auto()
    #: it is under way, or nobody can do anything about it
    LEAVE = auto()


@dataclass(slots=True)
class Mending:
    """Mends one source; ``foreign`` is one that the project does not have any more: all its documents are removed.

    ``held_back`` are the limits on deleting where the removals pass them and were not carried out.
    """

    run: Run
    index: SearchIndex
    sender: BatchSender
    foreign: bool
    beyond_limits: bool
    to_visit: int = 0
    held_back: DeletionLimits | None = None
    _newer: int = 0
    _known: dict[int, bool] = field(default_factory=dict)
    _counted: bool = True

    def mend(self, differences: Spool[IndexDifference], done: Spool[IndexDifference]) -> None:
        """Mends what can be mended, and adds all ``differences`` to ``done`` as they are then.

        Raises DeliveryError, StoreError, LeaseLost, CacheError, OSError.
        """
        run = self.run
        self._newer = self.sender.retry.attempt(lambda: is_newer(self.index, run.database, run.source.name))
        # Else each document of such a segment would be sealed, and its record looked for in vain.
        forget_lost_segments(run)
        with spool_differences() as rest:
            self._have_pages_decide(differences, rest, done)
            left = self._end_left_removals()
            if self.foreign:
                removals.finish_removals(self.sender)
            elif run.read(delivery_queue.is_waiting, source_id=run.source_id):
                delivery_queue.flush(self.sender)
            self._act(rest, left)
            self._prove(rest, done)

    def _have_pages_decide(
        self, differences: Spool[IndexDifference], rest: Spool[IndexDifference], done: Spool[IndexDifference]
    ) -> None:
        run = self.run
        changes = Changes(run, is_newer=True)
        while self._newer and not self.foreign and run.write(comparison_table.open_removals, run.source_id):
            pass
        for each, action in self._decide_all(differences):
            if action is RepairAction.VISIT:
                _take(changes, each)
                done.add(each._replace(remedy=VISITED))
                self.to_visit += 1
            else:
                rest.add(each)
        changes.write()
        reach("repair.adopted")
        if self._newer:
            note_compared(run, self._newer)

    def _end_left_removals(self) -> int:
        """Ends removals of documents without rows that a dead process left; returns how many they were at most."""
        run = self.run
        left = run.read(removal_table.find_rowless, source_id=run.source_id)
        if left:
            # What it removed is gone now; the rest differs still, and has been counted.
            self.sender.retry.attempt(self.index.commit)
            for batch in left:
                run.write(batch_table.set_state, number=batch.number, state=BatchState.COMMITTED)
        return sum(batch.removals for batch in left)

    def _act(self, rest: Spool[IndexDifference], left: int) -> None:
        allowed = self._count_allowed(rest, left)
        changes = Changes(self.run, is_newer=True)
        sending: list[int] = []
        removing: list[IndexDifference] = []
        for each, action in self._decide_all(rest):
            if action is RepairAction.SEND and each.row is not None:
                sending.append(each.row.url_id)
            elif action is RepairAction.FORGET and each.row is not None:
                changes.note_missing(each.row.url_id)
            elif action is RepairAction.REMOVE and allowed:
                removing.append(each)
                allowed -= 1
            if len(sending) == _SENT_ROWS:
                self._send(sending)
                sending = []
            if len(removing) == _REMOVED_ROWS:
                self._remove(removing)
                removing = []
        changes.write()
        self._send(sending)
        self._remove(removing)

    def _count_allowed(self, rest: Spool[IndexDifference], left: int) -> int:
        """How many documents may be removed: all that are to be, or none (L3); ``left`` have been counted before."""
        wanted = sum(action is RepairAction.REMOVE for _, action in self._decide_all(rest))
        new = max(0, wanted - left)
        limits = self.run.read(removals.find_limits, self.run.source, self.run.source_id, new)
        if not new or limits.allowed:
            return wanted
        self._counted = False
        if self.beyond_limits:
            return wanted
        self.held_back = limits
        return 0

    def _send(self, url_ids: Sequence[int]) -> None:
        """Sends documents again from the cache, in a delivery of their own."""
        run = self.run
        if url_ids:
            seal = partial(batch_table.seal_chosen, source_id=run.source_id, run_id=run.id, now_ms=clock.now_ms())
            batch = run.write(seal, url_ids=url_ids)
            reach("batch.sealed")
            self.sender.deliver(batch)

    def _remove(self, removing: Sequence[IndexDifference]) -> None:
        rows = [each.row for each in removing if each.row is not None and _has_receipt(each.row)]
        others = [each for each in removing if each.row is None or not _has_receipt(each.row)]
        if rows:
            self._remove_rows(rows)
        if others:
            self._remove_rowless(others)

    def _remove_rows(self, rows: Sequence[Receipted]) -> None:
        candidates = [RemovalCandidate(row.url_id, row.url, 0, None) for row in rows]
        self.sender.remove(candidates, counted=self._counted)

    def _remove_rowless(self, removing: Sequence[IndexDifference]) -> None:
        """Removes what the table has no receipt for; counted before it leaves, in a delivery that has no rows."""
        run, count = self.run, len(removing) if self._counted else 0
        add = partial(batch_table.add_batch, source_id=run.source_id, run_id=run.id, now_ms=clock.now_ms())
        batch = run.write(add, removals=count)
        reach("repair.sealed")
        part = Batch(
            number=batch.number,
            source=run.source.name,
            crawl_version=batch.crawl_version,
            removals=[Removal(id=each.suspect.id, url=each.url, code=0) for each in removing],
        )
        self.sender.retry.attempt(lambda: self.index.deliver(part))
        reach("repair.removed")
        self.sender.commit(batch)

    def _prove(self, rest: Spool[IndexDifference], done: Spool[IndexDifference]) -> None:
        """Looks at all of them once more: what differs no longer was mended."""
        for group in in_groups(rest, GROUP):
            standing = {each.suspect.id: each for each in self._confirm(group)}
            for each in group:
                stands = standing.get(each.suspect.id)
                if stands is None:
                    done.add(each._replace(remedy="repaired", mended=True))
                else:
                    done.add(stands._replace(remedy=self._explain(stands)))

    def _explain(self, each: IndexDifference) -> str:
        """What is to be done about a difference that stands."""
        if each.row is not None and each.row.state == _D.RECORD_LOST:
            self.to_visit += 1
            return VISITED
        if self.held_back is not None and _decide(each, newer=False) is RepairAction.REMOVE:
            return "its removal would pass the limits on deleting, to remove it all the same: --yes"
        if each.row is not None and each.row.refused:
            return "the index refuses it"
        return each.remedy

    def _decide_all(self, differences: Iterable[IndexDifference]) -> Iterator[tuple[IndexDifference, RepairAction]]:
        """Those that are still there, and what is to be done about each."""
        for group in in_groups(differences, GROUP):
            found = self._confirm(group)
            absent = [each.suspect.id for each in found if each.version is None] if self._newer else []
            last = self.sender.retry.attempt(partial(self.index.find_last_versions, absent)) if absent else {}
            for each in found:
                version = last.get(each.suspect.id, 0) if each.version is None else each.version
                yield each, _decide(each, newer=not self._knows(version))

    def _confirm(self, group: Sequence[IndexDifference]) -> list[IndexDifference]:
        run, suspects = self.run, [each.suspect for each in group]
        look = (self.index, run.source.name, run.source_id, suspects)
        if self.foreign:
            return self.sender.retry.attempt(lambda: list(confirm_foreign(run.database, *look)))
        return self.sender.retry.attempt(lambda: list(confirm(run.database, *look, is_ours=True)))

    def _knows(self, version: int) -> bool:
        """Whether the store may have sent this version."""
        if not self._newer:
            return True
        if len(self._known) > _KNOWN_VERSIONS:
            self._known.clear()
        if version not in self._known:
            self._known[version] = self.run.read(comparison_table.knows_version, self.run.source_id, version)
        return self._known[version]


def _decide(each: IndexDifference, *, newer: bool) -> RepairAction:
    """What is to be done; ``newer``: the index has or had the document in a version that the store never sent."""
    row = each.row
    if each.kind == "foreign":
        return RepairAction.REMOVE
    if each.kind == "extra" or row is None:
        return _decide_extra(each, newer=newer)
    if newer and not (each.kind == "stale" and _has_same_text(each, row)):
        return RepairAction.VISIT
    if row.under_way or row.state == _D.CACHED:
        return RepairAction.LEAVE
    if _is_sendable(row):
        return RepairAction.SEND
    belongs = row.state in {_D.PRESENT, _D.QUARANTINED, _D.RECORD_LOST}
    return RepairAction.FORGET if each.kind == "missing" and not belongs else RepairAction.VISIT


def _decide_extra(each: IndexDifference, *, newer: bool) -> RepairAction:
    row = each.row
    if newer and each.suspect.names_its_page:
        return RepairAction.VISIT
    if row is not None and (row.under_way or row.state == _D.CACHED):
        return RepairAction.LEAVE
    if row is not None and row.state in {_D.RECORD_LOST, _D.QUARANTINED}:
        return RepairAction.VISIT
    if row is not None and row.refused and _is_sendable(row):
        return RepairAction.SEND
    return RepairAction.REMOVE if is_askable(each.suspect.id) else RepairAction.LEAVE


def _has_same_text(each: IndexDifference, row: Receipted) -> bool:
    entry = each.suspect.entry
    seen = entry is not None and entry.crawl_version == each.version
    return seen and row.settled and entry is not None and entry.checksum == row.fields_digest.hex()


def _is_sendable(row: Receipted) -> bool:
    """Whether ``seal_chosen`` sends it: the cache has it, and it belongs in the index, or stays there for now."""
    withheld = row.state == _D.WITHHELD and (not row.refused or not row.leaving)
    return row.recorded and (row.state in {_D.PRESENT, _D.QUARANTINED} or withheld)


def _has_receipt(row: Receipted) -> bool:
    return row.crawl_version is not None or row.state in {_D.SENDING, _D.REMOVING}


def _take(changes: Changes, each: IndexDifference) -> None:
    """Has the table take over what the index has of a document, or that it lacks it."""
    if each.version is None:
        if each.row is not None:
            changes.note_missing(each.row.url_id)
        return
    seen = each.suspect.entry or IndexEntry(each.suspect.id, each.version, "", each.url)
    entry = seen._replace(crawl_version=each.version)
    if each.row is None:
        changes.adopt(entry)
    else:
        changes.take_over(each.row.url_id, entry)
