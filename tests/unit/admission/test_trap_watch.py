"""What pages bring cuts their pattern, in force once it is committed, and remembered (L8, F5)."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.admission.trap_watch import MAX_URLS, TRAP_AFTER, TrapWatch
from searchcrawl.items import Claim, Document, Page
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table
from searchcrawl.store.urls import pattern_table
from tests.factories import claim, document

SITE = "http://a.test"
AFTER = 40
WORDS = ("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "ledge")


@pytest.fixture
def database(tmp_path: Path, store_url: str) -> Iterator[Database]:
    database = Database(store_url, tmp_path)
    with database.write_once() as transaction:
        run_table.find_or_add_source(transaction, "demo")
    yield database
    database.close()


def watch(database: Database, *, after: int = AFTER, most: int = 0, recount: bool = False) -> TrapWatch:
    """What a new process knows."""
    opened = TrapWatch(1, trap_after=after, max_urls_per_pattern=most, file="sources/demo.toml")
    with database.write_once() as transaction:
        opened.open(transaction, recount=recount)
    return opened


def page(path: str, text: str, **values: Any) -> Document:
    visited = claim(url=SITE + path, **values)
    return document(text, claim=visited, page=Page(title="title", text=text))


def see(database: Database, tested: TrapWatch, pages: Iterable[Document], *, group: int = 8) -> None:
    """Commits pages in groups."""
    waiting = list(pages)
    for start in range(0, len(waiting), group):
        tested.observe(waiting[start : start + group])
        with database.write_once() as transaction:
            tested.store(transaction)
        tested.note_commit()


def empty_days(first: int, number: int) -> list[Document]:
    return [page(f"/day/{one}", f"There is nothing on {one}") for one in range(first, first + number)]


def articles(first: int, number: int, *, below: str = "/article") -> list[Document]:
    chances = {one: random.Random(f"{below}{one}") for one in range(first, first + number)}
    return [page(f"{below}/{one}", " ".join(chance.choices(WORDS, k=60))) for one, chance in chances.items()]


def refused(tested: TrapWatch, path: str, **values: Any) -> str | None:
    decision = tested.refuse(claim(url=SITE + path, **values))
    return None if decision is None else f"{decision.key}: {decision.rule}"


def test_pattern_when_its_last_pages_bring_nothing_then_what_was_not_fetched_is_refused(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    tested = watch(database)
    before = refused(tested, "/day/999")

    with caplog.at_level(logging.WARNING):
        see(database, tested, empty_days(1, 2 * AFTER))

    rule = f"{TRAP_AFTER}: {SITE}/day/{{n}}"
    assert (before, refused(tested, "/day/999"), refused(tested, "/night/999")) == (None, rule, None)
    # A start URL, and one that was fetched before.
    assert (refused(tested, "/day/999", depth=0), refused(tested, "/day/9", code=200)) == (None, None)
    # One whose document is known, and that a rule refused for a while.
    assert (refused(tested, "/day/9", code=955, is_known=True), refused(tested, "/day/9", code=955)) == (None, rule)
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [
        f"URL looping: {SITE}/day/{{n}} is cut"
    ]


def test_pattern_when_it_is_cut_then_after_the_pages_that_were_asked_for(database: Database) -> None:
    tested = watch(database)
    cut_after = 0
    for number in range(1, 3 * AFTER):
        see(database, tested, empty_days(number, 1))
        if not cut_after and tested.active:
            cut_after = number

    assert AFTER <= cut_after <= AFTER + AFTER // 4


def test_pattern_when_each_page_brings_text_then_it_is_never_cut(database: Database) -> None:
    tested = watch(database, after=20)

    see(database, tested, articles(1, 1500), group=64)

    assert not tested.active


def test_pattern_when_pages_are_known_or_unchanged_then_they_count_for_nothing(database: Database) -> None:
    tested = watch(database)

    known = [page(f"/day/{one}", "nothing", fields_digest=b"x", code=200) for one in range(2 * AFTER)]
    unchanged = [document("nothing", claim=claim(url=f"{SITE}/day/{one}"), page=None) for one in range(2 * AFTER)]
    see(database, tested, known + unchanged)

    assert not tested.active


def test_pattern_when_off_then_nothing_is_cut(database: Database) -> None:
    tested = watch(database, after=0)

    see(database, tested, empty_days(1, 300))

    assert not tested.active


def test_cut_when_a_new_process_begins_then_it_is_remembered(database: Database) -> None:
    see(database, watch(database), empty_days(1, 2 * AFTER))

    assert refused(watch(database), "/day/999") == f"{TRAP_AFTER}: {SITE}/day/{{n}}"


@pytest.mark.parametrize("after", [AFTER + 1, 0])
def test_cut_when_the_limit_was_edited_then_it_is_forgiven(database: Database, after: int) -> None:
    see(database, watch(database), empty_days(1, 2 * AFTER))

    edited = watch(database, after=after)

    assert not edited.active
    with database.read_once() as transaction:
        assert pattern_table.find_cut(transaction, 1) == []


def test_ratios_when_processes_end_before_there_are_enough_then_the_next_ones_go_on(database: Database) -> None:
    first = 0
    while first < 4 * AFTER and not watch(database).active:
        see(database, watch(database), empty_days(first, AFTER // 2), group=1)
        first += AFTER // 2

    assert first < 3 * AFTER


def test_facets_when_no_set_of_parameters_has_many_pages_then_they_are_cut_together(database: Database) -> None:
    tested = watch(database)
    names = [f"{one}{two}" for one in "abcdef" for two in "uvwxyz"]
    lamps = [f"{one} {two} lamp" for one in WORDS for two in WORDS]

    def listing(number: int) -> Document:
        chance = random.Random(number)
        chosen = sorted(chance.sample(names, 3))
        query = "&".join(f"{name}={number}" for name in chosen)
        return page(f"/shop?{query}", "\n".join(chance.sample(lamps[:40], 10)))

    see(database, tested, [listing(number) for number in range(20 * AFTER)])

    assert refused(tested, "/shop?new=1&unseen=2") == f"{TRAP_AFTER}: {SITE}/shop?*"
    assert refused(tested, "/shop/7") is None


def maze(number: int) -> Document:
    chance = random.Random(number)
    path = "/".join("".join(chance.choices(WORDS, k=3)) for _ in range(3))
    return page(f"/{path}", f"Sorry, there is no /{path}")


def test_maze_when_words_lead_to_the_same_text_then_its_host_is_cut_and_good_branches_are_spared(
    database: Database,
) -> None:
    tested = watch(database, after=20)
    good = articles(1, 60)

    pages = [maze(number) for number in range(900)]
    see(database, tested, [one for start in range(60) for one in (*pages[15 * start : 15 * start + 15], good[start])])

    again = watch(database, after=20)
    assert [refused(one, "/quite/other/words") is None for one in (tested, again)] == [False, False]
    assert [refused(one, "/article/999") for one in (tested, again)] == [None, None]


def test_hosts_when_each_has_the_same_page_then_their_numbers_are_one_pattern(database: Database) -> None:
    tested = watch(database)

    see(database, tested, [document("same", claim=claim(url=f"http://h{one}.a.test/")) for one in range(2 * AFTER)])

    decision = tested.find_cut("http://h999.a.test/")
    assert decision is not None
    assert decision.rule == "http://h{n}.a.test/"


def test_number_when_a_pattern_has_as_many_urls_as_allowed_then_more_are_refused_and_named(database: Database) -> None:
    urls = [f"{SITE}/day/{number}" for number in range(5)]
    verdicts = []
    for tested in (watch(database, most=3), watch(database, most=3)):
        with database.write_once() as transaction:
            tested.prepare(transaction, urls)
            verdicts.append([tested.admit(url) for url in urls[:4]])
            tested.store(transaction)
        tested.note_commit()

    over = f"max_urls_per_pattern = 3 of {SITE}/day/{{n}}"
    assert [[decision.rule if decision else None for decision in found] for found in verdicts] == [
        [None, None, None, over],
        [over] * 4,
    ]
    with database.read_once() as transaction:
        (row,) = pattern_table.find_cut(transaction, 1)
    assert (row.text, row.cut, row.cut_limit) == (f"{SITE}/day/{{n}}", MAX_URLS, 3)


def test_number_when_the_transaction_is_given_up_then_nothing_is_counted(database: Database) -> None:
    tested = watch(database, most=2)
    for _ in range(3):
        tested.note_rollback()
        with database.write_once() as transaction:
            tested.prepare(transaction, [f"{SITE}/day/1", f"{SITE}/day/2"])
            found = [tested.admit(f"{SITE}/day/{number}") for number in (1, 2)]

    assert found == [None, None]


def test_number_when_what_it_refused_is_claimed_again_then_it_is_counted_up_to_the_limit(database: Database) -> None:
    tested = watch(database, most=2)
    claims = [claim(url=f"{SITE}/day/{number}", code=961) for number in range(4)]
    claims += [claim(url=f"{SITE}/day/9", code=0), claim(url=f"{SITE}/day/8", code=200)]

    with database.write_once() as transaction:
        kept, refused_claims = tested.split_refused(transaction, claims)

    assert [_name(one) for one in kept] == ["0", "1", "9", "8"]
    assert [_name(one) for one, _ in refused_claims] == ["2", "3"]


def invoices(archive: str, number: int, **values: Any) -> list[Document]:
    return [page(f"{archive}!/invoice-{one}.txt", f"The same words, {one} of them", **values) for one in range(number)]


def test_files_in_an_archive_when_they_are_alike_then_none_is_refused(database: Database) -> None:
    tested = watch(database)
    unnamed = [replace(one, etag='"!/1234"') for one in invoices("/download/5", 3 * AFTER)]

    see(database, tested, [*invoices("/inv.zip", 3 * AFTER), *unnamed])

    assert not tested.active
    see(database, tested, [replace(one, etag='"!/sent by a server"') for one in empty_days(0, 2 * AFTER)])
    assert tested.active
    assert refused(watch(database), "/inv.zip!/invoice-999.txt") is None


def test_files_in_an_archive_when_pages_of_its_branch_are_cut_then_none_is_refused(database: Database) -> None:
    tested = watch(database)

    # Their last segments have no numbers: the pattern that is cut is that of the folder, with all that lies below.
    see(database, tested, [page(f"/day/{''.join(name)}", "nothing") for name in permutations("abcde")])

    assert (refused(tested, "/day/other"), refused(tested, "/day/inv.zip!/1.txt")) == (
        f"{TRAP_AFTER}: {SITE}/day/*",
        None,
    )


def test_number_when_urls_are_those_of_files_in_archives_then_they_are_not_counted(database: Database) -> None:
    tested = watch(database, most=3)
    files = [f"{SITE}/inv.zip!/invoice-{number}.txt" for number in range(9)]

    with database.write_once() as transaction:
        tested.prepare(transaction, files)
        admitted = [tested.admit(url) for url in files]
        tested.store(transaction)
        again, full = tested.split_refused(transaction, [claim(url=url, code=961) for url in files])
    counted = pattern_counts(database)

    assert (admitted, len(again), full, counted) == ([None] * 9, 9, [], 0)


def pattern_counts(database: Database) -> int:
    with database.write_once() as transaction:
        return sum(pattern_table.count_urls(transaction, 1, [f"{SITE}/inv.zip!/invoice-{{n}}.txt"]).values())


def _name(one: Claim) -> str:
    return one.url.rpartition("/")[2]
