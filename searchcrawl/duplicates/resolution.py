"""Which document stands for which others: copies, canonical links and display URLs, decided by rule (F2, F3, A4).

What comes out depends on the documents alone, not on the order in which they came:

1. Of good documents with one display URL the one of best rank is shown, the others are not indexed (956).
2. A shown document that names another shown one as canonical is a duplicate of it (964). Chains are
   followed, up to MAX_HOPS links; who stands in a circle stands for itself.
3. Of those left, the one of best rank stands for all with the same body (909).

A change reaches few documents, whatever the number of copies: only those whose standing changes are
looked at, and what stands between them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from searchcrawl.codes import COPIES, Code
from searchcrawl.store.documents.duplicate_key_table import Member
from searchcrawl.store.states import DocumentState

#: Longer chains of canonical links are ignored, as are longer chains of redirects.
MAX_HOPS: Final = 10


class Lookup(Protocol):
    """What can be asked of the stored documents of a source, as they are now; only good ones are answered."""

    def heads(self, digests: Collection[bytes]) -> Iterable[Member]:
        """Documents with these bodies for which no other one stands."""

    def copies(self, survivors: Collection[int]) -> Iterable[Member]:
        """Those known as copies (909) of these."""

    def named(self, keys: Collection[int]) -> Iterable[Member]:
        """The documents of the URLs with these keys."""

    def naming(self, keys: Collection[int]) -> Iterable[Member]:
        """Documents that name one of these URLs as canonical."""

    def displayed(self, display_keys: Collection[int]) -> Iterable[Member]:
        """Documents with these display URLs."""


class Change(NamedTuple):
    """What becomes of a document; ``state`` None leaves it where it is on its way."""

    url_id: int
    code: int
    duplicate_of: int | None
    state: DocumentState | None


@dataclass(slots=True)
class Changes:
    """What a group of visits changes in the standing of documents.

    ``moved`` are (old, new): all that the old one stood for, and ``changes`` do not name, are now the
    new one's. ``resent`` stand for other documents than before, which is indexed. ``duplicates`` are
    those that have become one.
    """

    changes: list[Change] = field(default_factory=list)
    moved: list[tuple[int, int]] = field(default_factory=list)
    resent: set[int] = field(default_factory=set)
    duplicates: set[int] = field(default_factory=set)


def rank(url: str) -> tuple[bool, int, int, str]:
    """The best of several URLs has the smallest rank: no query, few segments, short, first by alphabet."""
    return ("?" in url, url.count("/"), len(url), url)


def resolve(
    before: Mapping[int, Member], after: Mapping[int, Member], lookup: Lookup, *, canonicals: bool = True
) -> Changes:
    """What follows from the change of documents, given as they were and as they are, by row id.

    ``before`` lacks the new ones; ``lookup`` sees them as they are in ``after``. Without
    ``canonicals`` no document of the source names another one.
    """
    return _Resolution(before, after, lookup, canonicals=canonicals).run()


def _best(members: Iterable[Member]) -> Member:
    return min(members, key=lambda member: rank(member.url))


class _Resolution:
    """One call of ``resolve``: the documents looked at so far, and what is known of their new standing."""

    def __init__(
        self, before: Mapping[int, Member], after: Mapping[int, Member], lookup: Lookup, *, canonicals: bool
    ) -> None:
        self._lookup = lookup
        self._canonicals = canonicals
        self._before = before
        self._touched = after.keys()
        self._nodes = dict(after)
        #: whose standing is decided anew
        self._affected = {url_id for url_id, member in after.items() if member.good}
        #: who has its display URL, by the id of each that was asked about
        self._display: dict[int, int | None] = dict.fromkeys(after)
        self._targets: dict[int, int | None] = {}
        self._roots: dict[int, int] = {}
        self._survivors: dict[bytes, int] = {}
        self._heads: dict[bytes, set[int]] = {}
        self._descended: set[int] = set()
        self._left: set[int] = set()
        self._copies_of: set[int] = set()

    def run(self) -> Changes:
        self._decide_displays()
        self._descend(self._turned())
        while True:
            self._find_roots()
            self._find_survivors()
            if not self._grow():
                return self._changes()

    # How things were, and are

    def _old(self, url_id: int) -> Member | None:
        return self._before.get(url_id) if url_id in self._touched else self._nodes[url_id]

    def _old_final(self, url_id: int) -> int | None:
        """Who stood for a document; None where nobody did."""
        old = self._old(url_id)
        if old is None or not _was_shown(old):
            return None
        return url_id if old.duplicate_of is None else old.duplicate_of

    def _shown(self, url_id: int) -> bool:
        member = self._nodes[url_id]
        if url_id in self._display:
            return member.good and self._display[url_id] is None
        return _was_shown(member)

    def _add(self, members: Iterable[Member]) -> list[int]:
        """Takes note of documents; their ids."""
        found = []
        for member in members:
            self._nodes.setdefault(member.url_id, member)
            found.append(member.url_id)
        return found

    # 1 display URLs

    def _decide_displays(self) -> None:
        touched = (*self._before.values(), *(self._nodes[url_id] for url_id in self._touched))
        keys = {member.display_key for member in touched if member.display_key is not None}
        if not keys:
            return
        groups: dict[int, list[Member]] = {}
        for url_id in self._add(self._lookup.displayed(keys)):
            member = self._nodes[url_id]
            if member.display_key is not None:
                groups.setdefault(member.display_key, []).append(member)
        for members in groups.values():
            winner = _best(members)
            for member in members:
                shown = member is winner
                self._display[member.url_id] = None if shown else winner.url_id
                if shown != _was_shown(member) or not (shown or member.duplicate_of == winner.url_id):
                    self._affected.add(member.url_id)

    # 2 canonical links

    def _turned(self) -> list[int]:
        """Documents whose links, or links to them, count now and did not before, or the reverse."""
        turned = []
        for url_id in self._affected | set(self._touched):
            old, new = self._old(url_id), self._nodes[url_id]
            was_shown = old is not None and _was_shown(old)
            if was_shown != self._shown(url_id) or (old is not None and old.canonical_key != new.canonical_key):
                turned.append(url_id)
        return turned

    def _descend(self, url_ids: Iterable[int], *, levels: int = MAX_HOPS + 1) -> bool:
        """Has those decided anew whose chains lead through these documents; whether there are new ones."""
        frontier = set(url_ids)
        grown = False
        for _ in range(levels if self._canonicals else 0):
            frontier -= self._descended
            if not frontier:
                break
            self._descended |= frontier
            keys = [self._nodes[url_id].key for url_id in frontier]
            frontier = set(self._add(self._lookup.naming(keys)))
            grown |= not frontier <= self._affected
            self._affected |= frontier
        return grown

    def _find_roots(self) -> None:
        shown = [url_id for url_id in self._affected if self._shown(url_id)]
        self._load_targets(shown)
        self._roots = {url_id: self._root(url_id) for url_id in shown}

    def _load_targets(self, url_ids: Iterable[int]) -> None:
        frontier = [self._nodes[url_id] for url_id in url_ids]
        for _ in range(MAX_HOPS + 1):
            keys = {member.canonical_key for member in frontier if member.canonical_key is not None}
            wanted = keys - self._targets.keys()
            if not keys:
                return
            if wanted:
                self._targets.update(dict.fromkeys(wanted))
                for url_id in self._add(self._lookup.named(wanted)):
                    self._targets[self._nodes[url_id].key] = url_id
            targets = (self._targets[key] for key in keys)
            frontier = [self._nodes[target] for target in targets if target is not None]

    def _target(self, url_id: int) -> int | None:
        """The shown document that a document names as canonical."""
        key = self._nodes[url_id].canonical_key
        target = None if key is None else self._targets.get(key)
        return target if target is not None and self._shown(target) else None

    def _root(self, url_id: int) -> int:
        """The end of the chain of canonical links; the document itself where it is in a circle, or the chain too long."""
        passed = [url_id]
        for _ in range(MAX_HOPS):
            target = self._target(passed[-1])
            if target is None:
                return passed[-1]
            if target in passed:
                return target
            passed.append(target)
        return passed[-1] if self._target(passed[-1]) is None else url_id

    # 3 copies

    def _find_survivors(self) -> None:
        classes: dict[bytes, set[int]] = {}
        for url_id, root in self._roots.items():
            digest = self._nodes[url_id].body_digest
            if root == url_id and digest is not None:
                classes.setdefault(digest, set()).add(url_id)
        self._left = {url_id for url_id in self._affected | set(self._touched) if self._has_left(url_id)}
        self._load_heads({*classes, *(digest for digest in map(self._old_digest, self._left) if digest is not None)})
        for digest, members in classes.items():
            others = {head for head in self._heads[digest] if head not in self._affected}
            self._survivors[digest] = _best(self._nodes[url_id] for url_id in members | others).url_id

    def _old_digest(self, url_id: int) -> bytes | None:
        old = self._old(url_id)
        return None if old is None else old.body_digest

    def _has_left(self, url_id: int) -> bool:
        """Whether a document that stood for its copies has left them."""
        if self._old_final(url_id) != url_id:
            return False
        same_body = self._old_digest(url_id) == self._nodes[url_id].body_digest
        return not (same_body and self._roots.get(url_id) == url_id)

    def _load_heads(self, digests: Collection[bytes]) -> None:
        wanted = [digest for digest in digests if digest not in self._heads]
        if wanted:
            self._heads.update({digest: set() for digest in wanted})
            for url_id in self._add(self._lookup.heads(wanted)):
                digest = self._nodes[url_id].body_digest
                if digest is not None:
                    self._heads[digest].add(url_id)

    def _final(self, url_id: int) -> int:
        """Who stands for a shown document now."""
        root = self._roots.get(url_id, url_id)
        stored = self._nodes[root]
        if root not in self._affected and stored.duplicate_of is not None:
            # A copy that nothing happened to: whoever stands for the one it knows.
            root = stored.duplicate_of
        if root not in self._affected:
            return root
        digest = self._nodes[root].body_digest
        return root if digest is None else self._survivors[digest]

    def _moved(self, url_id: int | None) -> int | None:
        """Who took the place of a document that stood for others, where it is still shown."""
        if url_id is None or url_id not in self._affected or not self._shown(url_id):
            return url_id
        return self._final(url_id) if self._old_final(url_id) == url_id else url_id

    def _grow(self) -> bool:
        """Takes in what the changes found so far reach; whether there is any."""
        losing = {
            head
            for digest, survivor in self._survivors.items()
            for head in self._heads[digest]
            if head != survivor and head not in self._affected
        }
        left = self._left - self._copies_of
        self._copies_of |= left
        copies = set(self._add(self._lookup.copies(left))) if left else set()
        grown = not (losing | copies) <= self._affected
        self._affected |= losing | copies
        if grown or not self._canonicals:
            return grown
        changed = [url_id for url_id in self._roots if self._final(url_id) != self._moved(self._old_final(url_id))]
        return self._descend(changed, levels=1)

    # What comes of it

    def _changes(self) -> Changes:
        found = Changes()
        for url_id in self._affected:
            self._change(self._nodes[url_id], found)
        for url_id in set(self._touched) - self._affected:
            standing = self._old_final(url_id)
            if standing is not None and standing != url_id:
                found.resent.add(standing)
        found.resent -= {change.url_id for change in found.changes}
        return found

    def _change(self, member: Member, found: Changes) -> None:
        url_id = member.url_id
        winner = self._display.get(url_id, member.duplicate_of)
        final = None if not self._shown(url_id) else self._final(url_id)
        old_final = self._old_final(url_id)
        if final != old_final:
            found.resent |= {other for other in (final, old_final) if other is not None and other != url_id}
        if old_final == url_id and final not in (None, url_id):
            found.moved.append((url_id, final))
        if final == url_id:
            code, other = 200, None
        elif final is not None:
            code, other = (Code.DUPLICATE if self._roots[url_id] == url_id else Code.NOT_CANONICAL), final
            old = self._old(url_id)
            if old is None or old.code not in COPIES:
                found.duplicates.add(url_id)
        else:
            code, other = Code.DISPLAY_URL_CLASH, winner
        if (code, other) != (member.code, member.duplicate_of):
            found.changes.append(Change(url_id, code, other, _state(member, code)))


def _was_shown(member: Member) -> bool:
    return member.good and member.code != Code.DISPLAY_URL_CLASH


def _state(member: Member, code: int) -> DocumentState | None:
    """Where a document goes when its standing changes."""
    if code == 200:
        # Without a record it is fetched again.
        return DocumentState.CACHED if member.cached else DocumentState.WANTED
    under_way = member.code in COPIES and member.state == DocumentState.REMOVING
    if under_way or (member.code == code == Code.DISPLAY_URL_CLASH):
        return None
    return DocumentState.WITHHELD
