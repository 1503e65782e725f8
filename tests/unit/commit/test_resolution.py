"""Which document is indexed in place of which others, step by step and all at once (F2, F3, A4)."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import permutations

import pytest

from searchcrawl import urls
from searchcrawl.commit.resolution import MAX_HOPS, Resolution, resolve
from searchcrawl.rules.copy_order import UNKNOWN_FIT, rank
from searchcrawl.store.documents.duplicate_key_table import KeyedDocument
from searchcrawl.store.states import DocumentState

SITE = "http://a.test/"
Result = tuple[int, str | None]
#: The id of a document of another source.
FOREIGN = 1000


def key(name: str | None) -> int | None:
    return None if name is None else urls.key(SITE + name)


@dataclass
class Table:
    """Documents in memory, by name; ids are given in order of arrival."""

    members: dict[int, KeyedDocument] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    #: how many documents were read
    read: int = 0
    #: how well the URLs of names fit contents; of others nothing is known
    fits: dict[tuple[str, str | None], int] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)

    def find_survivors(self, digests: Collection[bytes]) -> list[KeyedDocument]:
        return self._good(m for m in self._all() if m.copy_digest in digests and m.duplicate_of is None)

    def find_copies(self, survivors: Collection[int]) -> list[KeyedDocument]:
        return self._good(m for m in self._all() if m.code == 909 and m.duplicate_of in survivors)

    def find_by_url(self, keys: Collection[int]) -> list[KeyedDocument]:
        return self._good(m for m in self._all() if m.key in keys)

    def find_by_canonical_url(self, keys: Collection[int]) -> list[KeyedDocument]:
        return self._good(m for m in self._all() if m.canonical_key in keys)

    def find_by_display_url(self, display_keys: Collection[int]) -> list[KeyedDocument]:
        return self._good(m for m in self._all() if m.display_key in display_keys)

    def visit(self, *pages: tuple[str, str | None, str | None, str | None]) -> Resolution:
        """Stores documents of (name, body, canonical, display URL); without a body they are gone, ``~`` is a redirect."""
        ids = [self.ids.setdefault(name, len(self.ids) + 1) for name, *_ in pages]
        before = {url_id: self.members[url_id] for url_id in ids if url_id in self.members}
        after = {}
        for url_id, (name, body, canonical, display) in zip(ids, pages, strict=True):
            after[url_id] = KeyedDocument(
                url_id=url_id,
                url=SITE + name,
                copy_digest=None if body is None else body.rstrip("~").encode(),
                canonical_key=None if canonical == name else key(canonical),
                display_key=key(display),
                code=200,
                duplicate_of=None,
                state=DocumentState.NONE if body is None else DocumentState.CACHED,
                leaving=0,
                cached=True,
                redirected=body is not None and body.endswith("~"),
                url_fit=self.fits.get((name, body)),
            )
        self.members |= after
        canonicals = any(m.canonical_key is not None for m in (*before.values(), *self._all()))
        changes = resolve(before, after, self, canonicals=canonicals)
        self._apply(changes)
        return changes

    def results(self) -> dict[str, Result]:
        names = {number: name for name, number in self.ids.items()}
        return {
            names[m.url_id]: (m.code, None if m.duplicate_of is None else names[m.duplicate_of])
            for m in self._all()
            if m.is_good
        }

    def _apply(self, changes: Resolution) -> None:
        for change in changes.changes:
            member = self.members[change.url_id]
            state = member.state if change.state is None else change.state
            self.members[change.url_id] = member._replace(
                code=change.code, duplicate_of=change.duplicate_of, state=state
            )
        for old, new in changes.moved:
            for member in self._all():
                if member.duplicate_of == old and member.code in (909, 964):
                    self.members[member.url_id] = member._replace(duplicate_of=new)

    def _all(self) -> list[KeyedDocument]:
        return list(self.members.values())

    def _good(self, members: Iterable[KeyedDocument]) -> list[KeyedDocument]:
        found = [member for member in members if member.is_good]
        self.read += len(found)
        return found


def better(member: KeyedDocument) -> tuple[bool, int, tuple[bool, int, int, str]]:
    return member.redirected, UNKNOWN_FIT if member.url_fit is None else member.url_fit, rank(member.url)


def from_scratch(table: Table) -> dict[str, Result]:
    """The rules of the module's docstring, applied to all documents at once."""
    good = {m.url_id: m for m in table.members.values() if m.is_good}
    clashing: dict[int, int] = {}
    for member in good.values():
        same = [m for m in good.values() if m.display_key is not None and m.display_key == member.display_key]
        best = min(same or [member], key=better)
        if best is not member:
            clashing[member.url_id] = best.url_id
    shown = {url_id: m for url_id, m in good.items() if url_id not in clashing}
    by_key = {m.key: m.url_id for m in shown.values() if not m.redirected}

    def root(start: int) -> int:
        passed = [start]
        while (target := by_key.get(shown[passed[-1]].canonical_key or 0)) is not None:
            if target in passed:
                return target
            if len(passed) > MAX_HOPS:
                return start
            passed.append(target)
        return passed[-1]

    roots = {url_id: root(url_id) for url_id in shown}
    survivors: dict[bytes | None, KeyedDocument] = {}
    for url_id, end in roots.items():
        if url_id == end:
            old = survivors.get(shown[url_id].copy_digest, shown[url_id])
            survivors[shown[url_id].copy_digest] = min(old, shown[url_id], key=better)
    names = {number: name for name, number in table.ids.items()}
    found: dict[str, Result] = {names[loser]: (956, names[winner]) for loser, winner in clashing.items()}
    for url_id, end in roots.items():
        final = survivors[shown[end].copy_digest].url_id
        code = 200 if final == url_id else 909 if end == url_id else 964
        found[names[url_id]] = (code, None if final == url_id else names[final])
    return found


def visited(*pages: tuple[str, str | None, str | None]) -> Table:
    """Pages of (name, body, canonical) that came one after the other."""
    table = Table()
    for page in pages:
        table.visit((*page, None))
    return table


@pytest.mark.parametrize("order", list(permutations([0, 1, 2, 3])))
def test_resolve_when_pages_come_in_any_order_then_the_same_ones_stand(order: tuple[int, ...]) -> None:
    pages = [("a", "body", None), ("bb", "body", None), ("print", "other", "bb"), ("ccc", "last", "print")]

    results = visited(*(pages[number] for number in order)).results()

    assert results == {"a": (200, None), "bb": (909, "a"), "print": (964, "a"), "ccc": (964, "a")}


@pytest.mark.parametrize("order", list(permutations([0, 1, 2])))
def test_resolve_when_a_url_redirects_then_it_stands_for_no_page_that_answers_itself(order: tuple[int, ...]) -> None:
    pages = [("t", "body~", None), ("its-target", "body", None), ("names-it", "other", "t")]
    table = visited(*(pages[number] for number in order))
    redirecting = table.results()

    # It answers itself from now on, and then redirects again.
    table.visit(("t", "body", None, None))
    answering = table.results()
    table.visit(("t", "body~", None, None))

    assert redirecting == {"t": (909, "its-target"), "its-target": (200, None), "names-it": (200, None)}
    assert answering == {"t": (200, None), "its-target": (909, "t"), "names-it": (964, "t")}
    assert table.results() == redirecting


def test_resolve_when_a_copy_is_named_as_canonical_then_it_survives_whatever_its_rank() -> None:
    table = visited(("a", "body", "long-name"), ("b", "body", "long-name"), ("long-name", "body", "long-name"))

    assert table.results() == {"a": (964, "long-name"), "b": (964, "long-name"), "long-name": (200, None)}


@pytest.mark.parametrize("order", list(permutations([0, 1, 2, 3])))
def test_resolve_when_canonical_links_form_a_circle_then_they_are_ignored(order: tuple[int, ...]) -> None:
    pages = [("a", "1", "b"), ("b", "2", "c"), ("c", "3", "a"), ("tail", "4", "b")]

    results = visited(*(pages[number] for number in order)).results()

    assert results == {"a": (200, None), "b": (200, None), "c": (200, None), "tail": (964, "b")}


def test_resolve_when_the_canonical_page_was_not_fetched_then_the_page_stands_for_itself() -> None:
    assert visited(("a", "1", "missing")).results() == {"a": (200, None)}


def test_resolve_when_the_canonical_page_is_gone_then_the_page_is_back() -> None:
    table = visited(("a", "1", "b"), ("b", "2", None))

    changes = table.visit(("b", None, None, None))

    assert table.results() == {"a": (200, None)}
    assert [(change.url_id, change.state) for change in changes.changes] == [(1, DocumentState.CACHED)]


def test_resolve_when_a_record_is_gone_then_who_takes_the_place_is_wanted() -> None:
    table = visited(("a", "1", None), ("bb", "1", None))
    table.members[2] = table.members[2]._replace(cached=False)

    changes = table.visit(("a", None, None, None))

    assert [(change.url_id, change.state) for change in changes.changes] == [(2, DocumentState.RECORD_LOST)]


def test_resolve_when_a_copy_comes_or_goes_then_its_survivor_is_sent_again() -> None:
    table = visited(("a", "1", None))

    came = table.visit(("bb", "1", None, None))
    went = table.visit(("bb", "2", None, None))

    assert came.resend == went.resend == {1}
    assert (came.duplicates, went.duplicates) == ({2}, set())


def test_resolve_when_nothing_differs_then_nothing_is_written_or_sent() -> None:
    table = visited(("a", "1", None), ("bb", "1", None), ("c", "2", "a"))

    again = table.visit(("a", "1", None, None))

    assert (again.changes, again.moved, again.resend, again.duplicates) == ([], [], set(), set())


def test_resolve_when_display_urls_clash_then_the_best_access_url_is_shown_and_the_other_waits() -> None:
    table = Table()
    for page in (("longer", "1", None, "shown"), ("ab", "2", None, "shown"), ("shown", "3", None, "shown")):
        table.visit(page)

    first = table.results()
    table.visit(("ab", None, None, None))

    assert first == {"longer": (956, "ab"), "ab": (200, None), "shown": (956, "ab")}
    assert table.results() == {"longer": (956, "shown"), "shown": (200, None)}


@pytest.mark.parametrize("copies", [50, 5000])
def test_resolve_when_copies_are_many_then_a_new_one_costs_no_more_reading(copies: int) -> None:
    table = Table()
    table.visit(*((f"p{number:05}", "same", None, None) for number in range(copies)))
    table.read = 0

    changes = table.visit(("x00001", "same", None, None))
    better = table.visit(("a", "same", None, None))

    # Each time the new one and the survivor, which a better one moves in one statement.
    assert table.read <= 6
    assert (len(changes.changes), len(better.changes), len(better.moved)) == (1, 1, 1)
    assert table.results() == from_scratch(table)


@pytest.mark.parametrize("seed", range(150))
def test_resolve_when_pages_come_change_and_go_at_random_then_it_is_as_if_decided_at_once(seed: int) -> None:
    chance = random.Random(seed)
    names = [name * length for name in "abcdefg" for length in (1, 2)][: chance.choice([3, 5, 8, 14])]
    bodies = [body + mark for body in "12345"[: chance.choice([1, 2, 5])] for mark in chance.choice([[""], ["", "~"]])]
    linked, displayed = chance.choice([0, 0.3, 0.9]), chance.choice([0, 0, 0.5])
    table = Table()
    fitting = chance.choice([0, 0.7])
    table.fits = {
        (name, body): chance.choice([0, 6, 11]) for name in names for body in bodies if chance.random() < fitting
    }

    for _ in range(40):
        group = chance.sample(names, chance.randint(1, min(4, len(names))))
        table.visit(
            *(
                (
                    name,
                    None if chance.random() < 0.2 else chance.choice(bodies),
                    chance.choice(names) if chance.random() < linked else None,
                    chance.choice("xyz") if chance.random() < displayed else None,
                )
                for name in group
            )
        )

        assert table.results() == from_scratch(table)


def test_resolve_when_a_chain_is_longer_than_allowed_then_its_far_end_stands_for_itself() -> None:
    names = [f"n{number:02}" for number in range(MAX_HOPS + 4)]
    forward = [(name, name, names[number - 1] if number else None) for number, name in enumerate(names)]

    tables = [visited(*forward), visited(*forward[::-1])]
    for table in tables:
        table.visit(("n02", "n02", None, None))

    assert tables[0].results() == tables[1].results() == from_scratch(tables[0])


@dataclass
class SharedTable(Table):
    """Documents of one source, and one of another source with the text "same"."""

    foreign: KeyedDocument | None = None

    def find_survivors(self, digests: Collection[bytes]) -> list[KeyedDocument]:
        others = [] if self.foreign is None or b"same" not in digests else [self.foreign]
        return [*super().find_survivors(digests), *others]


def foreign(name: str, *, place: int, redirected: bool = False) -> KeyedDocument:
    return KeyedDocument(
        url_id=FOREIGN,
        url=SITE + name,
        copy_digest=b"same",
        canonical_key=None,
        display_key=None,
        code=200,
        duplicate_of=None,
        state=DocumentState.PRESENT,
        leaving=0,
        cached=True,
        redirected=redirected,
        place=place,
    )


@pytest.mark.parametrize(
    ("other", "survivor"),
    [
        (foreign("a", place=1), FOREIGN),
        (foreign("b/long", place=-1), None),
        # The same URL: the name of the source decides.
        (foreign("b", place=-1), FOREIGN),
        (foreign("b", place=1), None),
        (foreign("a", place=-1, redirected=True), None),
    ],
)
def test_document_when_another_source_has_its_text_then_the_better_one_stands_and_the_other_is_left_to_its_source(
    other: KeyedDocument, survivor: int | None
) -> None:
    table = SharedTable(foreign=other)
    table.ids["foreign"] = FOREIGN
    changes = table.visit(("b", "same", None, None), ("c/deep", "same", None, None))

    found = {name: (m.code, m.duplicate_of) for name in ("b", "c/deep") for m in [table.members[table.ids[name]]]}
    stands = table.ids["b"] if survivor is None else survivor
    assert found["b"] == ((200, None) if survivor is None else (909, FOREIGN))
    assert found["c/deep"] == (909, stands)
    assert FOREIGN not in {change.url_id for change in changes.changes}
    # It lists its copies, once it has any.
    assert (FOREIGN in changes.resend) == (survivor is not None)


def test_copies_when_a_better_one_than_that_of_another_source_comes_then_they_follow_it() -> None:
    table = SharedTable(foreign=foreign("b", place=1))
    table.ids["foreign"] = FOREIGN
    table.visit(("c", "same", None, None))
    named = table.visit(("named", "other", "c", None))
    assert table.members[table.ids["named"]].duplicate_of == FOREIGN
    assert FOREIGN in named.resend

    changes = table.visit(("a", "same", None, None))

    assert table.results() == {"a": (200, None), "c": (909, "a"), "named": (964, "a")}
    assert FOREIGN in changes.resend
