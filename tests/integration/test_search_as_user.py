"""Searches as a user, on both indexes: nothing of what he may not see is in hits, counts, facets, snippets, copies and suggestions."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import pytest

from searchcrawl.access import MOST_LEVELS, Access, build_access, judge
from searchcrawl.answer_headers import Level, Permissions
from searchcrawl.index.receiver import SearchIndex, SearchQuery
from searchcrawl.items import IndexedDocument
from searchcrawl.queries.search import search
from tests.index_documents import found, page, put

pytestmark = pytest.mark.solr

ALL: Final = frozenset({"everyone", "authenticated"})
GROUPS: Final = ("group:staff", "group:hr", "group:Vertrieb, Süd", "gid:60", "sid:S-1-5-21-7")
#: Twelve users: their principals.
USERS: Final = tuple(
    ALL | {f"user:{number}", *groups}
    for number, groups in enumerate(
        [
            *([group] for group in GROUPS),
            *(list(pair) for pair in itertools.combinations(GROUPS[:3], 2)),
            [],
            GROUPS,
            ["nobody"],
            ["group:other"],
        ]
    )
)
DOCUMENTS: Final = 200


def some_access(chance: random.Random) -> Access | None:
    names = [*ALL, *GROUPS, *(f"user:{number}" for number in range(len(USERS))), "nobody"]

    def some(least: int, most: int) -> tuple[str, ...]:
        return tuple(chance.sample(names, chance.randint(least, most)))

    levels = tuple(Level(some(2, 6), some(0, 1)) for _ in range(chance.choice((0, 0, 1, 3))))
    return build_access(Permissions(some(1, 4), some(0, 1), levels))


def made(number: int, access: Access | None, **record: Any) -> IndexedDocument:
    found = {} if access is None else {"access": [*access]}
    return page(number, **{"title": f"title{number}", "content": f"plain word{number}x", **record}, **found)


def ask(index: SearchIndex, words: str, user: frozenset[str] | None, **asked: Any) -> dict[str, Any]:
    return search(index, SearchQuery(words=words, principals=user, **asked), collapses=lambda _: True)


def test_documents_when_they_are_for_some_then_each_user_finds_those_that_he_may_see_and_counts_no_other(
    index: SearchIndex,
) -> None:
    chance = random.Random(48)
    accesses = [some_access(chance) for _ in range(DOCUMENTS)]
    put(
        index,
        *(
            made(number, access, author=f"author{number % 7}", attributes={"kind_s": f"k{number}"})
            for number, access in enumerate(accesses)
        ),
    )

    assert ask(index, "plain", None, rows=0)["total"] == DOCUMENTS
    for user in USERS:
        mine = {number for number, access in enumerate(accesses) if judge(access, user).sees}
        assert 0 < len(mine) < DOCUMENTS
        answer = ask(index, "plain", user, rows=1000, facets=["kind_s", "author"])
        assert answer["total"] == len(mine)
        assert {hit["url"] for hit in answer["hits"]} == {f"http://site.test/{number}" for number in mine}
        assert answer["facets"]["author"] == Counter(f"author{number % 7}" for number in mine)
        kinds = ask(index, "*", user, rows=0, facets=["kind_s"], filters=[("author", "author3")])["facets"]["kind_s"]
        assert kinds == {f"k{number}": 1 for number in mine if number % 7 == 3}
        assert len(found(index, "*", principals=user, sort="-title")) == len(mine)


def test_document_when_a_user_may_not_see_it_then_no_query_tells_of_it(index: SearchIndex) -> None:
    secret = Access(("group:hr",))
    put(index, made(1, secret, content="merger zeppelin", title="Merger plan"), made(2, None, content="lunch menu"))
    user, other = ALL | {"user:anna"}, ALL | {"user:bob", "group:hr"}

    assert ask(index, "merger", other)["hits"][0]["snippet"]
    for words in (
        "merger",
        '"merger zeppelin"',
        "zepp*",
        "title:merger",
        "-lunch",
        "url:1",
        "zeppelin OR merger",
        "depth:0..1 merger",
    ):
        answer = ask(index, words, user, facets=["title", "acl_allow"])
        assert (answer["total"], answer["hits"]) == (0, [])
        assert answer["facets"] == {"title": {}, "acl_allow": {}}
        assert "merger plan" not in str(answer).lower()
    # Words that are spelled alike, and why nothing is found.
    assert ask(index, "zepelin", other)["suggestion"] == "zeppelin"
    assert ask(index, "zepelin", user)["suggestion"] is None
    assert ask(index, "lunch zeppelin", user)["suggestion"] == "lunch"
    assert ask(index, "luch", user)["suggestion"] == "lunch"
    assert ask(index, "*", user, filters=[("title", "Merger plan")])["notes"] == [
        "the user may see no document with title Merger plan"
    ]


def test_near_copies_when_a_user_may_see_one_of_them_then_no_hit_names_the_others(index: SearchIndex) -> None:
    text = " ".join(f"word{number} further" for number in range(200))
    hr, staff = Access(("group:hr",)), Access(("group:staff",))
    copies = [(1, None, "a"), (2, hr, "b"), (3, hr, "c"), (4, staff, "d")]
    put(index, *(made(number, access, content=f"{text} {last}") for number, access, last in copies))

    def listed(user: frozenset[str] | None) -> Sequence[tuple[str, list[str]]]:
        answer = ask(index, "word7", user, sort="url")
        return [(hit["url"][-1], [url[-1] for url in hit["duplicates"]]) for hit in answer["hits"]]

    assert listed(ALL | {"user:anna"}) == [("1", [])]
    assert listed(ALL | {"user:anna", "group:hr"}) == [("1", []), ("2", ["3"])]
    assert listed(None) == [("1", []), ("2", ["3"]), ("4", [])]


def test_document_when_an_earlier_release_sent_it_then_no_user_sees_it(index: SearchIndex) -> None:
    document = made(1, None)
    bare = {name: value for name, value in document.fields.items() if not name.startswith("acl_")}
    half = {**bare, "acl_allow": ["everyone"]}
    put(index, IndexedDocument(id="site:1", fields=bare), IndexedDocument(id="site:2", fields=half))

    assert found(index, "plain") == {"site:1", "site:2"}
    assert found(index, "plain", principals=ALL | {"user:anna"}) == set()


def test_permissions_when_they_alone_change_then_the_next_query_follows(index: SearchIndex) -> None:
    user = ALL | {"user:anna", "group:b"}
    put(index, made(1, None))
    assert len(found(index, "plain", principals=user)) == 1
    put(index, made(1, Access(("everyone",), (), (("group:a",), ("group:b",)))), version=2)

    assert found(index, "plain", principals=user) == set()
    put(index, made(1, Access(("user:anna",))), version=3)
    assert len(found(index, "plain", principals=user)) == 1


def test_user_when_he_has_thousands_of_groups_then_he_is_answered(index: SearchIndex) -> None:
    put(
        index,
        made(1, Access(("group:1999",))),
        made(2, Access(("everyone",), ("group:7",))),
        made(3, Access(("group:2000",))),
    )
    user = ALL | {"user:anna", *(f"group:{number}" for number in range(2_000))}

    assert [hit["url"][-1] for hit in ask(index, "plain", user)["hits"]] == ["1"]


def test_user_when_a_document_has_many_levels_then_he_needs_each_however_many_groups_he_has(index: SearchIndex) -> None:
    levels = tuple((f"group:{number}",) for number in range(MOST_LEVELS))
    put(
        index,
        made(1, Access(("everyone",), (), levels)),
        made(2, Access(("everyone",), (), (*levels[1:], ("group:other",)))),
        made(3, Access(("everyone",), (), (("group:other", "group:7"),))),
    )
    user = ALL | {"user:anna", *(f"group:{number}" for number in range(2_000))}

    assert {url[-1] for url in found_urls(index, user)} == {"1", "3"}
    assert {url[-1] for url in found_urls(index, user - {"group:63"})} == {"3"}
    assert found_urls(index, ALL | {"group:7"}) == found_urls(index, user - {"group:63"})
    assert found_urls(index, ALL) == []


@pytest.mark.parametrize("sort", ["title", "-title"])
def test_hits_when_they_are_sorted_then_a_user_has_those_that_he_may_see_in_that_order(
    index: SearchIndex, sort: str
) -> None:
    accesses = (None, Access(("group:a",)), Access(("group:hidden",)))
    put(index, *(made(number, accesses[number % 3], title=f"title {number // 2:02}") for number in range(60)))
    user = ALL | {"user:anna", "group:a"}

    def expected() -> list[str]:
        seen = [hit for hit in ask(index, "plain", None, rows=100)["hits"] if int(hit["url"].rsplit("/")[-1]) % 3 < 2]
        first = sorted(seen, key=lambda hit: page(int(hit["url"].rsplit("/")[-1])).id)
        return [hit["url"] for hit in sorted(first, key=lambda hit: str(hit["title"]), reverse=sort[0] == "-")]

    assert [hit["url"] for hit in ask(index, "plain", user, sort=sort, rows=100)["hits"]] == expected()
    assert [hit["url"] for hit in ask(index, "plain", user, sort=sort, rows=7, start=5)["hits"]] == expected()[5:12]


def found_urls(index: SearchIndex, user: frozenset[str]) -> list[str]:
    return sorted(hit["url"] for hit in ask(index, "plain", user)["hits"])
