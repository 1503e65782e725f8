"""Duplicate resolution: which document is indexed in place of which others (F2, F3, A4).

Documents are duplicates by their display URL, their canonical link or what is indexed of them (text, title and all other fields). The result depends on the
documents alone, not on the order in which they came:

0. Which document is better is said by ``rules.copy_order``: one that answers itself, whose URL fits it, and so on.
1. Of good documents with the same display URL the best one is shown. The others are not indexed (956).
2. A shown document that names another shown one as canonical, which answers itself, is a duplicate of that one (964).
   Chains of canonical links are followed, up to MAX_HOPS links. Documents whose links form a circle are no duplicates of each other.
3. Of the documents that are left, the best one is the survivor of all with the same content: it is indexed,
   and the others are its copies (909). It may be one of another source, which is changed by that source alone.

A change affects few documents, however many copies there are: only those whose result may change are read, and
those on the chains between them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from searchcrawl.codes import COPIES, Code
from searchcrawl.rules.copy_order import CopyOrder, build_order
from searchcrawl.store.documents.duplicate_key_table import DuplicateKeys, KeyedDocument
from searchcrawl.store.states import REMOVALS, DocumentState

#: Longer chains of canonical links are ignored, as are longer chains of redirects.
MAX_HOPS: Final = 10


class ResolvedDocument(NamedTuple):
    """The new code, survivor and state of a document; with the state None its state stays."""

    url_id: int
    code: int
    duplicate_of: int | None
    state: DocumentState | None


@dataclass(slots=True)
class Resolution:
    """What one resolution changes in the stored results.

    ``changes`` are the documents that get another code, state or survivor. ``moved`` are pairs (old survivor, new
    survivor): all duplicates of the old one become duplicates of the new one, except those in ``changes``. ``resend``
    are survivors whose list of duplicates has changed: the list is part of the indexed document, so they are sent
    again. ``duplicates`` are documents that are duplicates now and were none before.
    """

    changes: list[ResolvedDocument] = field(default_factory=list)
    moved: list[tuple[int, int]] = field(default_factory=list)
    resend: set[int] = field(default_factory=set)
    duplicates: set[int] = field(default_factory=set)


def resolve(
    before: Mapping[int, KeyedDocument],
    after: Mapping[int, KeyedDocument],
    lookup: DuplicateKeys,
    *,
    canonicals: bool = True,
) -> Resolution:
    """Finds what changes for all documents of a source when some of them change.

    ``before`` and ``after`` are the changed documents by row id; new ones are in ``after`` only. ``lookup`` sees the
    documents as they are in ``after``. ``canonicals`` tells whether any document of the source names another one.
    """
    return _Resolution(before, after, lookup, canonicals=canonicals).run()


def _select_best(documents: Iterable[KeyedDocument]) -> KeyedDocument:
    return min(documents, key=build_order_of)


def build_order_of(document: KeyedDocument) -> CopyOrder:
    """The place of a document among its copies."""
    return build_order(document.url, redirected=document.redirected, url_fit=document.url_fit, place=document.place)


class _Resolution:
    """One call of ``resolve``: the documents that were read so far, and their new results as far as they are known."""

    def __init__(
        self,
        before: Mapping[int, KeyedDocument],
        after: Mapping[int, KeyedDocument],
        lookup: DuplicateKeys,
        *,
        canonicals: bool,
    ) -> None:
        self._lookup = lookup
        self._canonicals = canonicals
        self._before = before
        self._touched = after.keys()
        self._documents = dict(after)
        #: documents whose result is computed anew
        self._affected = {url_id for url_id, document in after.items() if document.is_good}
        #: by the id of a document: the document that is shown with its display URL; None if it is that document itself
        self._shown_instead: dict[int, int | None] = dict.fromkeys(after)
        #: by the key of a URL: its document
        self._targets: dict[int, int | None] = {}
        #: by the id of a shown document: where its chain of canonical links ends
        self._ends: dict[int, int] = {}
        #: by content: the new survivor, and those that are stored as survivors
        self._survivors: dict[bytes, int] = {}
        self._known_survivors: dict[bytes, set[int]] = {}
        #: Documents by what was done with them: the pages that name them as canonical, directly or by a chain, were
        #: added; they are no survivor any more; their copies were added.
        self._chains_added: set[int] = set()
        self._without_copies: set[int] = set()
        self._copies_added: set[int] = set()

    def run(self) -> Resolution:
        if self._stand_alone():
            return Resolution()
        self._decide_displays()
        self._add_chains(self._find_changed_links())
        while True:
            self._find_ends()
            self._find_survivors()
            if not self._add_affected():
                return self._build_changes()

    def _stand_alone(self) -> bool:
        """Whether no other document has what these have, or had: then nothing changes, as for most groups.

        Each was, and is, the only one with its content; none names another page, or is shown by another URL; and none
        leaves copies behind.
        """
        good = [self._documents[url_id] for url_id in self._affected]
        touched = (*self._before.values(), *good)
        # One that was put back may name another page where none did before.
        if self._canonicals or any({one.canonical_key, one.display_key, one.duplicate_of} != {None} for one in touched):
            return False
        digests = [one.copy_digest for one in good if one.copy_digest is not None]
        if any(one.code != 200 for one in good) or len(set(digests)) < len(digests):
            return False
        # Each is the end of its chain of canonical links.
        self._ends = {url_id: url_id for url_id in self._affected}
        lost = {url_id for url_id in self._touched if self._has_lost_copies(url_id)}
        before = (self._before[url_id].copy_digest for url_id in lost)
        self._load_known_survivors({*digests, *(digest for digest in before if digest is not None)})
        known = set[int]().union(*(self._known_survivors[digest] for digest in digests))
        return known <= self._affected and not (lost and self._lookup.find_copies(lost))

    # The documents as they were, and as they are

    def _find_old(self, url_id: int) -> KeyedDocument | None:
        return self._before.get(url_id) if url_id in self._touched else self._documents[url_id]

    def _find_old_survivor(self, url_id: int) -> int | None:
        """The document that was indexed in place of this one, or itself; None if neither was indexed."""
        old = self._find_old(url_id)
        if old is None or not _was_shown(old):
            return None
        return url_id if old.duplicate_of is None else old.duplicate_of

    def _is_shown(self, url_id: int) -> bool:
        document = self._documents[url_id]
        if url_id in self._shown_instead:
            return document.is_good and self._shown_instead[url_id] is None
        return _was_shown(document)

    def _note(self, documents: Iterable[KeyedDocument]) -> list[int]:
        """Remembers documents; returns their ids."""
        found = []
        for document in documents:
            self._documents.setdefault(document.url_id, document)
            found.append(document.url_id)
        return found

    # Step 1: display URLs

    def _decide_displays(self) -> None:
        touched = (*self._before.values(), *(self._documents[url_id] for url_id in self._touched))
        keys = {document.display_key for document in touched if document.display_key is not None}
        if not keys:
            return
        groups: dict[int, list[KeyedDocument]] = {}
        for url_id in self._note(self._lookup.find_by_display_url(keys)):
            document = self._documents[url_id]
            if document.display_key is not None:
                groups.setdefault(document.display_key, []).append(document)
        for documents in groups.values():
            winner = _select_best(documents)
            for document in documents:
                shown = document is winner
                self._shown_instead[document.url_id] = None if shown else winner.url_id
                if shown != _was_shown(document) or not (shown or document.duplicate_of == winner.url_id):
                    self._affected.add(document.url_id)

    # Step 2: canonical links

    def _find_changed_links(self) -> list[int]:
        """Finds the documents with a canonical link, of or to them, that counts only now, or no longer."""
        changed = []
        for url_id in self._affected | set(self._touched):
            old, new = self._find_old(url_id), self._documents[url_id]
            was_shown = old is not None and _was_shown(old)
            if was_shown != self._is_shown(url_id) or (
                old is not None and (old.canonical_key, old.redirected) != (new.canonical_key, new.redirected)
            ):
                changed.append(url_id)
        return changed

    def _add_chains(self, url_ids: Iterable[int], *, levels: int = MAX_HOPS + 1) -> bool:
        """Adds the documents whose chains of canonical links pass through these; returns whether any is new."""
        frontier = set(url_ids)
        grown = False
        for _ in range(levels if self._canonicals else 0):
            frontier -= self._chains_added
            if not frontier:
                break
            self._chains_added |= frontier
            keys = [self._documents[url_id].key for url_id in frontier]
            frontier = set(self._note(self._lookup.find_by_canonical_url(keys)))
            grown |= not frontier <= self._affected
            self._affected |= frontier
        return grown

    def _find_ends(self) -> None:
        shown = [url_id for url_id in self._affected if self._is_shown(url_id)]
        self._load_targets(shown)
        self._ends = {url_id: self._find_end(url_id) for url_id in shown}

    def _load_targets(self, url_ids: Iterable[int]) -> None:
        frontier = [self._documents[url_id] for url_id in url_ids]
        for _ in range(MAX_HOPS + 1):
            keys = {document.canonical_key for document in frontier if document.canonical_key is not None}
            wanted = keys - self._targets.keys()
            if not keys:
                return
            if wanted:
                self._targets.update(dict.fromkeys(wanted))
                for url_id in self._note(self._lookup.find_by_url(wanted)):
                    self._targets[self._documents[url_id].key] = url_id
            targets = (self._targets[key] for key in keys)
            frontier = [self._documents[target] for target in targets if target is not None]

    def _find_target(self, url_id: int) -> int | None:
        """The shown document that a document names as canonical; None for a URL that only redirects."""
        key = self._documents[url_id].canonical_key
        target = None if key is None else self._targets.get(key)
        if target is None or self._documents[target].redirected or not self._is_shown(target):
            return None
        return target

    def _find_end(self, url_id: int) -> int:
        """The end of the chain of canonical links from a document.

        That is the document itself where its links form a circle, or the chain is too long.
        """
        passed = [url_id]
        for _ in range(MAX_HOPS):
            target = self._find_target(passed[-1])
            if target is None:
                return passed[-1]
            if target in passed:
                return target
            passed.append(target)
        return passed[-1] if self._find_target(passed[-1]) is None else url_id

    # Step 3: copies

    def _find_survivors(self) -> None:
        classes: dict[bytes, set[int]] = {}
        for url_id, end in self._ends.items():
            digest = self._documents[url_id].copy_digest
            if end == url_id and digest is not None:
                classes.setdefault(digest, set()).add(url_id)
        self._without_copies = {
            url_id for url_id in self._affected | set(self._touched) if self._has_lost_copies(url_id)
        }
        self._load_known_survivors(
            {*classes, *(digest for digest in map(self._find_old_digest, self._without_copies) if digest is not None)}
        )
        for digest, documents in classes.items():
            others = {other for other in self._known_survivors[digest] if other not in self._affected}
            self._survivors[digest] = _select_best(self._documents[url_id] for url_id in documents | others).url_id

    def _find_old_digest(self, url_id: int) -> bytes | None:
        old = self._find_old(url_id)
        return None if old is None else old.copy_digest

    def _has_lost_copies(self, url_id: int) -> bool:
        """Whether a document was the survivor of its copies, and is not any more, or may not be."""
        if self._find_old_survivor(url_id) != url_id:
            return False
        old = self._find_old(url_id)
        if old is not None and self._documents[url_id].redirected and not old.redirected:
            return True
        same_content = self._find_old_digest(url_id) == self._documents[url_id].copy_digest
        return not (same_content and self._ends.get(url_id) == url_id)

    def _load_known_survivors(self, digests: Collection[bytes]) -> None:
        wanted = [digest for digest in digests if digest not in self._known_survivors]
        if wanted:
            self._known_survivors.update({digest: set() for digest in wanted})
            for url_id in self._note(self._lookup.find_survivors(wanted)):
                digest = self._documents[url_id].copy_digest
                if digest is not None:
                    self._known_survivors[digest].add(url_id)

    def _find_survivor(self, url_id: int) -> int:
        """The document that is indexed now in place of a shown one, or itself."""
        end = self._ends.get(url_id, url_id)
        stored = self._documents[end]
        if end not in self._affected and stored.duplicate_of is not None:
            # The end of the chain is a copy that is not affected: its stored survivor counts, or the survivor of that
            # one.
            end = stored.duplicate_of
        if end not in self._affected:
            return end
        digest = self._documents[end].copy_digest
        return end if digest is None else self._survivors[digest]

    def _find_replacement(self, url_id: int | None) -> int | None:
        """The survivor that the duplicates of an old survivor get in its place.

        The old one stays, if nothing changed for it or if it is no longer shown.
        """
        if url_id is None or url_id not in self._affected or not self._is_shown(url_id):
            return url_id
        return self._find_survivor(url_id) if self._find_old_survivor(url_id) == url_id else url_id

    def _add_affected(self) -> bool:
        """Adds the documents that are affected by the results so far; returns whether any is new."""
        losing = {
            other
            for digest, survivor in self._survivors.items()
            for other in self._known_survivors[digest]
            if other != survivor and other not in self._affected
        }
        # That of another source loses its copies here; what becomes of it is decided there.
        foreign = {other for other in losing if self._documents[other].place}
        losing -= foreign
        survivors = (self._without_copies | foreign) - self._copies_added
        self._copies_added |= survivors
        copies = set(self._note(self._lookup.find_copies(survivors))) if survivors else set()
        grown = not (losing | copies) <= self._affected
        self._affected |= losing | copies
        if grown or not self._canonicals:
            return grown
        changed = [
            url_id
            for url_id in self._ends
            if self._find_survivor(url_id) != self._find_replacement(self._find_old_survivor(url_id))
        ]
        return self._add_chains(changed, levels=1)

    # The result

    def _build_changes(self) -> Resolution:
        found = Resolution()
        for url_id in self._affected:
            self._add_change(self._documents[url_id], found)
        for url_id in set(self._touched) - self._affected:
            survivor = self._find_old_survivor(url_id)
            if survivor is not None and survivor != url_id:
                found.resend.add(survivor)
        found.resend -= {change.url_id for change in found.changes}
        return found

    def _add_change(self, document: KeyedDocument, found: Resolution) -> None:
        url_id = document.url_id
        winner = self._shown_instead.get(url_id, document.duplicate_of)
        survivor = None if not self._is_shown(url_id) else self._find_survivor(url_id)
        old_survivor = self._find_old_survivor(url_id)
        if survivor != old_survivor:
            found.resend |= {other for other in (survivor, old_survivor) if other is not None and other != url_id}
        if old_survivor == url_id and survivor not in (None, url_id):
            found.moved.append((url_id, survivor))
        if survivor == url_id:
            code, other = 200, None
        elif survivor is not None:
            code, other = (Code.DUPLICATE if self._ends[url_id] == url_id else Code.NOT_CANONICAL), survivor
            old = self._find_old(url_id)
            if old is None or old.code not in COPIES:
                found.duplicates.add(url_id)
        else:
            code, other = Code.DISPLAY_URL_CLASH, winner
        if (code, other) != (document.code, document.duplicate_of):
            found.changes.append(ResolvedDocument(url_id, code, other, _choose_state(document, code)))


def _was_shown(document: KeyedDocument) -> bool:
    return document.is_good and document.code != Code.DISPLAY_URL_CLASH


def _choose_state(document: KeyedDocument, code: int) -> DocumentState | None:
    """The new state of a document whose result changes; None if its state stays."""
    if code == 200:
        # Without a record in the cache, the page has to be fetched again.
        return DocumentState.CACHED if document.cached else DocumentState.RECORD_LOST
    leaves = document.duplicate_of is not None and document.state in REMOVALS
    if leaves or (document.code == code == Code.DISPLAY_URL_CLASH):
        return None
    return DocumentState.WITHHELD
