"""Watches known pages for a placeholder that takes their place: many of a host have one text now (L9, X-R17, 965).

Only documents that were visited before and have other fields now are looked at. If more of them than a run may remove
at once have turned into one text, they are placeholder pages: the known documents stay, and those that were stored
before that was seen are put back. Records of the cache are read only for pages that share their text with so many
others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from searchcrawl import urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.codes import Code
from searchcrawl.commit.decide import Group, count_failure
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.items import Document, Outcome, Place
from searchcrawl.rules.lifecycle import FREE_DOCUMENTS
from searchcrawl.rules.turned_pages import Cluster, Clusters, Comparison, PageWords, Sketch, Version
from searchcrawl.run import Run
from searchcrawl.store.documents import former_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import url_table

logger = logging.getLogger(__name__)

RULE: Final = "sentinel: a text that many known pages of the host have now"
#: How many changed pages of the runs that this one continues are remembered.
_MOST_SEEDS: Final = 2_000
#: So many clusters have a comparison at once, of 1 MB at most.
_MOST_JUDGED: Final = 50
#: The number of kept versions is looked at after so many new ones.
_KEPT_PER_LOOK: Final = 1_000


@dataclass(slots=True)
class Watched:
    """What the watch found in a group of visits.

    ``sketches`` are the changed documents that are stored, by row id. ``held`` are placeholder pages of the group;
    ``first_held`` has the sketches of the first ones of a host.
    ``back`` are the rows of those stored before; ``readable`` those of them whose old record is there.
    """

    sketches: dict[int, bytes] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)
    first_held: dict[int, bytes] = field(default_factory=dict)
    back: list[int] = field(default_factory=list)
    readable: set[int] = field(default_factory=set)

    def end_visits(self, items: Sequence[Document | Outcome]) -> list[Document | Outcome]:
        """The items, with the end of the visit in place of each placeholder page."""
        return [_end_visit(item) if item.claim.url_id in self.held else item for item in items]


def _end_visit(item: Document | Outcome) -> Outcome:
    where = item.base_url if isinstance(item, Document) else item.claim.url
    return Outcome(
        claim=item.claim,
        code=Code.SENTINEL,
        rule=RULE,
        error=f"{_build_error(item.claim.url)}: {where}",
        redirects=item.redirects,
    )


def _build_error(url: str) -> str:
    return f"more than {FREE_DOCUMENTS} known pages of {urls.origin_of(url)} have this text now in place of their own"


class TurnedPages:
    """The changed pages of one run; made and opened in a helper thread, then used by the writer thread alone."""

    def __init__(self, run: Run, cache: DocumentCache) -> None:
        self._run = run
        self._cache = cache
        self._clusters = Clusters()
        self._judged: list[Cluster] = []
        self._kept = 0

    def open(self) -> None:
        """Remembers what the runs that this one continues changed, and forgets what others did."""
        run = self._run
        while run.write(former_table.forget, source_id=run.source_id, until_run=run.row.after_run):
            pass
        for url_id, url, packed in run.read(former_table.load_sketches, source_id=run.source_id, limit=_MOST_SEEDS):
            cluster = self._clusters.find_or_add(urls.origin_of(url), Sketch.unpack(packed))
            cluster.pages += 1
            cluster.members[url_id] = False

    def look(self, stored: Sequence[Document]) -> Watched:
        """Looks at the documents of a group that are to be stored; a replay finds no other pages than it knows.

        What is listed is what it is: no server answers in its place.
        """
        found = Watched()
        if not self._run.requests or self._run.source.kind.is_listed:
            return found
        words: dict[int, PageWords] = {}
        met: dict[Cluster, list[Document]] = {}
        for document in stored:
            claim, page = document.claim, document.page
            # One that was visited before, and has other fields now.
            is_changed = claim.fields_digest not in (None, document.fields_digest)
            if page is None or document.code != 200 or not is_changed:
                continue
            words[claim.url_id] = PageWords.of(claim.url, page.title, page.text)
            sketch = Sketch.of(words[claim.url_id])
            found.sketches[claim.url_id] = sketch.pack()
            cluster = self._clusters.find_or_add(urls.origin_of(claim.url), sketch)
            cluster.pages += 1
            met.setdefault(cluster, []).append(document)
        for cluster, documents in met.items():
            if cluster.pages > FREE_DOCUMENTS:
                self._judge(cluster, documents, words, found)
            else:
                cluster.members |= {document.claim.url_id: False for document in documents}
        for url_id in found.held:
            del found.sketches[url_id]
        return found

    def _judge(
        self, cluster: Cluster, documents: Sequence[Document], words: Mapping[int, PageWords], found: Watched
    ) -> None:
        """Decides which pages of a cluster have turned; adds those of the group and those stored before to ``found``."""
        new = self._read_versions(documents, words)
        if cluster.comparison is None:
            self._note_judged(cluster)
            cluster.comparison = self._judge_stored(cluster, list(new.values()))
        turned, was_seen = _select_turned(cluster.comparison, new), cluster.turned > FREE_DOCUMENTS
        cluster.turned += len(turned)
        if cluster.turned <= FREE_DOCUMENTS:
            cluster.members |= turned
            return
        if not was_seen:
            logger.warning("%s: pages with it are not taken (%d)", _build_error(documents[0].claim.url), Code.SENTINEL)
            # A run that continues this one has to know it too, even if it visits few pages itself.
            found.first_held |= {url_id: found.sketches[url_id] for url_id in [*turned][: FREE_DOCUMENTS + 1]}
        found.held |= turned.keys()
        found.back += sorted(cluster.members)
        found.readable |= {url_id for url_id, readable in cluster.members.items() if readable}
        cluster.members = {}

    def find_readable(self, url_ids: Sequence[int]) -> set[int]:
        """Those of the documents that this run changed, or is about to, whose earlier record the cache still has."""
        if not url_ids:
            return set()
        places = self._run.read(url_table.find_places, url_ids)
        earlier = self._run.read(former_table.find_earlier, url_ids)
        return {
            url_id
            for url_id, (place, _) in earlier.items()
            if self._read_words(places[url_id].url, place, partial(self._find_earlier, url_id)) is not None
        }

    def _read_versions(self, documents: Sequence[Document], words: Mapping[int, PageWords]) -> dict[int, Version]:
        """Both versions of pages of the group."""
        ids = [document.claim.url_id for document in documents]
        earlier = self._run.read(former_table.find_earlier, ids)
        versions = {}
        for document in documents:
            url_id = document.claim.url_id
            place, size = earlier.get(url_id, (None, 0))
            before = self._read_words(document.claim.url, place, partial(self._find_earlier, url_id))
            versions[url_id] = Version(before, words[url_id], document.body_bytes - size)
        return versions

    def _note_judged(self, cluster: Cluster) -> None:
        """Remembers the comparisons of a few clusters: they have all words of a text."""
        self._judged.append(cluster)
        if len(self._judged) > _MOST_JUDGED:
            self._judged.pop(0).comparison = None

    def _judge_stored(self, cluster: Cluster, new: Sequence[Version]) -> Comparison:
        """Judges the members, now that there are enough pages to compare with."""
        members = sorted(cluster.members)
        versions, restored = dict[int, Version](), set[int]()
        for change in self._run.read(former_table.find_changes, members):
            before, now = self._read_both(change)
            versions[change.url_id] = Version(before, now, change.now_bytes - change.before_bytes)
            if change.restored:
                restored.add(change.url_id)
        comparison = Comparison([*versions.values(), *new])
        turned = _select_turned(comparison, versions)
        cluster.members = {url_id: readable for url_id, readable in turned.items() if url_id not in restored}
        # Those that an earlier process put back were too many.
        cluster.turned = max(cluster.turned, len(turned), FREE_DOCUMENTS + 1 if restored else 0)
        return comparison

    def _read_both(self, change: former_table.FormerDocument) -> list[PageWords | None]:
        def find_again(place: int) -> Place | None:
            found = self._run.read(former_table.find_changes, [change.url_id])
            return (found[0].before, found[0].now)[place] if found else None

        places = (change.before, change.now)
        return [self._read_words(change.url, at, partial(find_again, place)) for place, at in enumerate(places)]

    def _find_earlier(self, url_id: int) -> Place | None:
        return self._run.read(former_table.find_earlier, [url_id])[url_id][0]

    def _read_words(self, url: str, place: Place | None, find_again: Callable[[], Place | None]) -> PageWords | None:
        """The words of a record; None where it was given up. It may have been moved since its place was read."""
        words = self._read_record(url, place)
        if words is None and place is not None and (now := find_again()) != place:
            words = self._read_record(url, now)
        return words

    def _read_record(self, url: str, place: Place | None) -> PageWords | None:
        if place is None:
            return None
        try:
            fields = self._cache.read_fields(place, url=url)
        except DamagedRecord:
            # Given up, or damaged: whoever needs the record finds that out, and fetches the page again.
            return None
        return PageWords.of(url, str(fields.get("title") or ""), str(fields.get("content") or ""))

    # The transaction of the group

    def keep(self, transaction: Transaction, watched: Watched) -> None:
        """Keeps the documents that the group changes as they are; called before they are stored."""
        run = self._run
        former_table.note_held(transaction, run.source_id, run.id, watched.first_held)
        if not watched.sketches:
            return
        former_table.keep(transaction, run.source_id, run.id, watched.sketches)
        self._kept += len(watched.sketches)
        if self._kept >= _KEPT_PER_LOOK:
            self._kept = 0
            former_table.forget_oldest(transaction, run.source_id)

    def note_back(self, transaction: Transaction, group: Group) -> None:
        """Gives the rows of documents that were put back the code 965: their visits failed, and changed nothing."""
        run = self._run
        rows = {
            row.url_id: count_failure(
                Code.SENTINEL,
                run.source,
                failed_runs=row.failed_runs,
                failures=row.failures,
                after_run=run.row.after_run,
            )
            for row in group.restored
        }
        error = f"put back: more than {FREE_DOCUMENTS} known pages of the host had the same new text"
        former_table.note_failed(transaction, rows, code=Code.SENTINEL, rule=RULE, error=error)
        for row in group.restored:
            # Another run has counted its visits itself.
            if row.run_id == run.id:
                group.counts.update({"changed": -1, "duplicates": -row.was_copy})


def _select_turned(comparison: Comparison, pages: Mapping[int, Version]) -> dict[int, bool]:
    """The pages that have turned, each with whether the cache still has its earlier text."""
    return {url_id: page.before is not None for url_id, page in pages.items() if comparison.has_turned(page)}
