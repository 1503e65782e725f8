"""What grows by itself is visited last, and ended where its pages have no text of their own (L8, L12, F5)."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import pytest

from searchcrawl.admission.trap_watch import MAX_URLS, TRAP_AFTER, TrapWatch
from searchcrawl.items import Claim, Document, Page
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import pattern_table
from tests.factories import claim, document

SITE = "http://a.test"
AFTER = 40
WORDS = ("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "ledge")


def watch(database: Database, *, after: int = AFTER, most: int = 0, recount: bool = False) -> TrapWatch:
    """What a new process knows."""
    opened = TrapWatch(1, trap_after=after, max_urls_per_pattern=most, file="sources/demo.toml")
    with database.write_once() as transaction:
        opened.open(transaction, recount=recount)
        # Nothing else is left to visit.
        opened.split_claims(transaction, [], at_last=True)
    return opened


def page(path: str, text: str, **values: Any) -> Document:
    visited = claim(url=SITE + path, **values)
    return document(text, claim=visited, page=Page(title="title", text=text))


#: A page, and the paths that it is the first to name.
Seen = tuple[Document, list[str]]


def see(database: Database, tested: TrapWatch, pages: Iterable[Seen], *, group: int = 8) -> None:
    """Commits pages in groups, with the URLs that they name."""
    waiting = list(pages)
    for start in range(0, len(waiting), group):
        part = waiting[start : start + group]
        tested.observe([seen for seen, _ in part])
        with database.write_once() as transaction:
            for seen, named in part:
                for path in named:
                    tested.note_named(SITE + path, seen.claim.url_id)
            tested.store(transaction)
        tested.note_commit()


def empty_days(first: int, number: int, *, names: bool = True) -> list[Seen]:
    """Days on which nothing is; each names the one after it."""
    return [
        (page(f"/day/{one}", f"There is nothing on {one}", url_id=one + 1), [f"/day/{one + 1}"] if names else [])
        for one in range(first, first + number)
    ]


def articles(first: int, number: int, *, below: str = "/article") -> list[Seen]:
    """Pages with text of their own; each names the one after it."""
    chances = {one: random.Random(f"{below}{one}") for one in range(first, first + number)}
    return [
        (
            page(f"{below}/{one}", " ".join(chance.choices(WORDS, k=60)) + f" thing{one}x", url_id=100_000 + one),
            [f"{below}/{one + 1}"],
        )
        for one, chance in chances.items()
    ]


def refused(tested: TrapWatch, path: str, **values: Any) -> str | None:
    decision = tested.refuse(claim(url=SITE + path, **values))
    return None if decision is None else f"{decision.key}: {decision.rule}"


def laps(tested: TrapWatch, *paths: str) -> list[int]:
    return [tested.find_lap(SITE + path) for path in paths]


def test_trap_when_it_goes_on_then_it_is_visited_last_and_then_what_was_not_fetched_is_refused(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    tested = watch(database)
    before = (refused(tested, "/day/999"), *laps(tested, "/day/999"))

    see(database, tested, empty_days(1, AFTER // 2))
    meanwhile = (refused(tested, "/day/999"), *laps(tested, "/day/999", "/night/999"))
    with caplog.at_level(logging.WARNING):
        see(database, tested, empty_days(AFTER // 2 + 1, 2 * AFTER))

    rule = f"{TRAP_AFTER}: {SITE}/day/{{n}}"
    assert (before, meanwhile) == ((None, 0), (None, 1, 0))
    assert (refused(tested, "/day/999"), refused(tested, "/night/999")) == (rule, None)
    # A start URL, one that a sitemap lists, and one that was fetched before.
    spared = [{"depth": 0}, {"sitemap_id": 1}, {"code": 200}]
    assert [refused(tested, "/day/9", **values) for values in spared] == [None] * 3
    # One whose document is known, and that a rule refused for a while.
    assert (refused(tested, "/day/9", code=955, is_known=True), refused(tested, "/day/9", code=955)) == (None, rule)
    warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [message.partition(":  ")[0].partition(": v")[0] for message in warned] == [
        f"URL looping: {SITE}/day/{{n}} is ended"
    ]


def test_trap_when_it_is_ended_then_after_as_many_pages_as_said(database: Database) -> None:
    tested = watch(database)
    last_after = ended_after = 0
    for number in range(1, 4 * AFTER):
        see(database, tested, empty_days(number, 1))
        last_after = last_after or (number if tested.find_last(f"{SITE}/day/999") else 0)
        ended_after = ended_after or (number if refused(tested, "/day/999") else 0)

    assert 0 < last_after <= AFTER // 2
    assert AFTER <= ended_after - last_after <= AFTER + 1


def test_room_when_a_pattern_is_about_to_be_ended_then_it_is_what_is_left(database: Database) -> None:
    tested = watch(database)
    rooms = [tested.room_at_last]
    see(database, tested, empty_days(1, AFTER // 2))
    for number in range(3 * AFTER):
        if tested.has_ended:
            break
        see(database, tested, empty_days(AFTER + number, 1))
        rooms.append(tested.room_at_last)

    assert tested.has_ended
    # Of the first pages some may come before it is put off.
    assert rooms[0] == AFTER
    assert rooms[-12:] == [11, 10, 9, *[8] * 8, AFTER]


def test_trap_when_other_urls_are_still_visited_then_it_is_not_ended(database: Database) -> None:
    tested = TrapWatch(1, trap_after=AFTER, max_urls_per_pattern=0)

    see(database, tested, empty_days(1, 8 * AFTER))

    assert (refused(tested, "/day/999"), *laps(tested, "/day/999")) == (None, 1)


def test_laps_when_two_patterns_are_visited_last_then_they_take_turns(database: Database) -> None:
    tested = watch(database)
    see(database, tested, empty_days(1, AFTER // 2))
    see(database, tested, [(one, [f"/night/{number + 1}"]) for number, one in enumerate(nights(AFTER // 2))])

    of_days = laps(tested, *(f"/day/{number}" for number in range(900, 970)))
    of_nights = laps(tested, *(f"/night/{number}" for number in range(900, 970)))

    assert of_days == of_nights == sorted(of_days)
    assert of_days[0] == 1
    assert of_days[-1] > 1


def nights(number: int) -> list[Document]:
    return [page(f"/night/{one}", f"Dark on {one}", url_id=5_000 + one) for one in range(number)]


def test_pattern_when_one_page_names_all_of_it_then_nothing_is_put_off_or_refused(database: Database) -> None:
    """A list of pages without text: it is finite, whatever they hold."""
    tested = watch(database)
    names = [f"/day/{one}" for one in range(2, 20 * AFTER)]

    see(database, tested, [(page("/day/1", "Days", url_id=1), names), *empty_days(2, 20 * AFTER, names=False)])

    assert not tested.active


def test_pattern_when_pages_have_text_and_name_each_other_then_it_is_visited_last_and_never_ended(
    database: Database,
) -> None:
    tested = watch(database)

    see(database, tested, articles(1, 20 * AFTER), group=64)

    assert (refused(tested, "/article/9999"), *laps(tested, "/article/9999")) == (None, 1)


def test_pattern_when_other_pages_name_it_at_last_then_it_is_not_ended(database: Database) -> None:
    tested = watch(database)
    see(database, tested, empty_days(1, AFTER // 2))

    for number in range(AFTER, 4 * AFTER):
        listing = page(f"/list-{'x' * (number % 7)}", "A list", url_id=9_000 + number)
        see(database, tested, [(listing, [f"/day/{number + 1}"]), *empty_days(number, 1, names=False)])

    assert refused(tested, "/day/999") is None


def test_patterns_when_they_feed_each_other_then_both_are_ended(database: Database) -> None:
    tested = watch(database)
    pages: list[Seen] = []
    for number in range(8 * AFTER):
        pages += [
            (page(f"/odd/{number}", f"Nothing odd on {number}", url_id=2 * number), [f"/even/{number}"]),
            (page(f"/even/{number}", f"Nothing even on {number}", url_id=2 * number + 1), [f"/odd/{number + 1}"]),
        ]

    see(database, tested, pages)

    assert [refused(tested, path) is None for path in ("/odd/9999", "/even/9999")] == [False, False]


def test_pages_when_they_have_no_text_of_their_own_then_they_are_told(database: Database) -> None:
    tested = watch(database)
    see(database, tested, empty_days(1, 3))

    bare = tested.observe([page("/day/7", "There is nothing on 7", url_id=7), articles(3, 1)[0][0]])

    assert bare == {7}


def test_documents_when_their_pattern_is_ended_then_they_are_to_be_withheld_once(database: Database) -> None:
    tested = watch(database)
    see(database, tested, empty_days(1, AFTER))
    before = tested.take_withholding()

    see(database, tested, empty_days(AFTER + 1, AFTER))

    assert [before, tested.take_withholding(), tested.take_withholding()] == [False, True, False]
    assert watch(database).take_withholding()


def test_pattern_when_pages_are_known_or_unchanged_then_they_count_for_nothing(database: Database) -> None:
    tested = watch(database)

    known = [(page(f"/day/{one}", "nothing", fields_digest=b"x", code=200), []) for one in range(2 * AFTER)]
    unchanged = [
        (document("nothing", claim=claim(url=f"{SITE}/day/{one}"), page=None), [f"/day/{one + 1}"])
        for one in range(2 * AFTER)
    ]
    see(database, tested, [*known, *unchanged])

    assert not tested.active


def test_pattern_when_off_then_nothing_is_put_off_or_refused(database: Database) -> None:
    tested = watch(database, after=0)

    see(database, tested, empty_days(1, 300))

    assert not tested.active


def test_end_when_a_new_process_begins_then_it_is_remembered(database: Database) -> None:
    see(database, watch(database), empty_days(1, 2 * AFTER))

    assert refused(watch(database), "/day/999") == f"{TRAP_AFTER}: {SITE}/day/{{n}}"


@pytest.mark.parametrize("after", [AFTER + 1, 0])
@pytest.mark.parametrize("pages", [AFTER, 2 * AFTER])
def test_end_when_the_limit_was_edited_then_it_is_forgiven(database: Database, after: int, pages: int) -> None:
    see(database, watch(database), empty_days(1, pages))

    edited = watch(database, after=after)

    assert not edited.active
    assert [row for row in database.read(pattern_table.load, 1) if row.cut] == []


def test_growth_when_processes_end_before_it_is_enough_then_the_next_ones_go_on(database: Database) -> None:
    first = 0
    while first < 6 * AFTER and refused(watch(database), "/day/9999") is None:
        see(database, watch(database), empty_days(first, AFTER // 2), group=1)
        first += AFTER // 2

    assert first < 5 * AFTER


def test_facets_when_no_set_of_parameters_has_many_pages_then_they_are_ended_together(database: Database) -> None:
    tested = watch(database)
    names = [f"{one}{two}" for one in "abcdef" for two in "uvwxyz"]
    lamps = [f"{one} {two} lamp" for one in WORDS for two in WORDS]

    def listing(number: int) -> Seen:
        chance = random.Random(number)
        chosen = sorted(chance.sample(names, 3))
        query = "&".join(f"{name}={number}" for name in chosen)
        named = [f"/shop?{query}&more={one}" for one in range(3)]
        return page(f"/shop?{query}", "\n".join(chance.sample(lamps[:40], 10)), url_id=number + 1), named

    see(database, tested, [listing(number) for number in range(20 * AFTER)])

    assert refused(tested, "/shop?new=1&unseen=2") == f"{TRAP_AFTER}: {SITE}/shop?*"
    assert refused(tested, "/shop/7") is None


def maze(number: int) -> Seen:
    chance = random.Random(number)
    path = "/".join("".join(chance.choices(WORDS, k=3)) for _ in range(3))
    return page(f"/{path}", "Sorry, it is not here", url_id=10_000 + number), [f"/{path}/{chance.choice(WORDS)}"]


def test_maze_when_words_lead_to_the_same_text_then_its_host_is_ended_and_good_branches_are_spared(
    database: Database,
) -> None:
    tested = watch(database, after=20)
    good = articles(1, 60)

    pages = [maze(number) for number in range(900)]
    see(database, tested, [one for start in range(60) for one in (*pages[15 * start : 15 * start + 15], good[start])])

    again = watch(database, after=20)
    # Another run may find other pages there.
    assert [refused(one, "/quite/other/words") is None for one in (tested, again)] == [False, True]
    assert laps(again, "/quite/other/words") == [1]
    assert [refused(one, "/article/999") for one in (tested, again)] == [None, None]


def test_branch_when_it_is_ended_then_what_is_visited_last_in_it_by_itself_is_not(database: Database) -> None:
    tested = watch(database)
    see(database, tested, [(page(f"/in/day/{one}", "no", url_id=one), [f"/in/day/{one + 1}"]) for one in range(1, 11)])
    names = ["".join(each) for each in permutations("abcdef", 4)]

    see(
        database,
        tested,
        [(page(f"/in/{one}", "no", url_id=100 + number), [f"/in/{one}/x"]) for number, one in enumerate(names)],
    )
    again = watch(database)

    assert refused(tested, "/in/other") is not None
    assert [refused(one, "/in/day/999") for one in (tested, again)] == [None, None]
    assert laps(again, "/in/day/999") == [1]


def test_hosts_when_each_has_the_same_page_then_their_numbers_are_one_pattern(database: Database) -> None:
    tested = watch(database)

    for one in range(3 * AFTER):
        seen = document("same", claim=claim(url=f"http://h{one}.a.test/", url_id=one + 1))
        tested.observe([seen])
        with database.write_once() as transaction:
            tested.note_named(f"http://h{one + 1}.a.test/", one + 1)
            tested.store(transaction)
        tested.note_commit()

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
    (row,) = database.read(pattern_table.load, 1)
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

    kept, refused_claims, _ = database.write(tested.split_claims, claims, at_last=False)

    assert [_name(one) for one in kept] == ["0", "1", "9", "8"]
    assert [_name(one) for one, _ in refused_claims] == ["2", "3"]


def invoices(archive: str, number: int, **values: Any) -> list[Document]:
    return [page(f"{archive}!/invoice-{one}.txt", f"The same words, {one} of them", **values) for one in range(number)]


def naming(pages: Iterable[Document]) -> list[Seen]:
    """Pages that each name another one beside them."""
    return [
        (replace(one, claim=replace(one.claim, url_id=number)), [f"{one.claim.url.removeprefix(SITE)}{number}"])
        for number, one in enumerate(pages, 1)
    ]


def test_files_in_an_archive_when_they_are_alike_then_none_is_refused(database: Database) -> None:
    tested = watch(database)
    unnamed = [replace(one, etag='"!/1234"') for one in invoices("/download/5", 3 * AFTER)]

    see(database, tested, naming([*invoices("/inv.zip", 3 * AFTER), *unnamed]))

    assert not tested.active
    see(database, tested, [(replace(one, etag='"!/sent by a server"'), to) for one, to in empty_days(0, 2 * AFTER)])
    assert tested.active
    assert refused(watch(database), "/inv.zip!/invoice-999.txt") is None


def test_files_in_an_archive_when_pages_of_its_branch_are_ended_then_none_is_refused(database: Database) -> None:
    tested = watch(database)

    # Their last segments have no numbers: the pattern that is ended is that of the folder, with all that lies below.
    see(database, tested, naming(page(f"/day/{''.join(name)}", "nothing") for name in permutations("abcde")))

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
        claims = [claim(url=url, code=961) for url in files]
        again, full, _ = tested.split_claims(transaction, claims, at_last=False)
    counted = pattern_counts(database)

    assert (admitted, len(again), full, counted) == ([None] * 9, 9, [], 0)


def pattern_counts(database: Database) -> int:
    return sum(database.write(pattern_table.count_urls, 1, [f"{SITE}/inv.zip!/invoice-{{n}}.txt"]).values())


def _name(one: Claim) -> str:
    return one.url.rpartition("/")[2]


def test_patterns_when_there_are_more_than_are_remembered_then_pages_go_on_being_counted(database: Database) -> None:
    tested = watch(database)
    # Names without numbers: each is a pattern of its own.
    names = ["".join(each) for each in permutations("abcdefgh", 5)]
    paths = [f"/{name}/{other}/x" for name, other in product(names, "ab")]

    see(database, tested, [(page(path, "no", url_id=number), []) for number, path in enumerate(paths, 1)], group=700)
    see(database, tested, empty_days(20_000, AFTER))

    assert laps(tested, "/day/99999") == [1]
