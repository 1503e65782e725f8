"""Near copies among the hits of a query: listed with the best of them, page after page (F6, G2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.index.receiver import SearchAnswer, SearchHit, SearchQuery
from searchcrawl.queries.search import read_collapses, search, search_grouped
from searchcrawl.rules.near_copies import sign
from searchcrawl.sources.loading import load_project
from tests.unit.queries.test_search import Oracle
from tests.unit.rules.test_near_copies import edited, words

#: By its first letter the text that a hit has, nearly.
TEXTS = {letter: words(number) for number, letter in enumerate("abc")}


class Ranked(Oracle):
    """A search index that finds these hits for every query; ``rows`` are those that it was asked for."""

    def __init__(
        self, *names: str, sources: dict[str, str] | None = None, duplicates: dict[str, str] | None = None
    ) -> None:
        super().__init__()
        self.rows: list[int] = []
        self.asked: list[tuple[int, int, bool]] = []
        self._hits = [
            SearchHit(
                id=name,
                score=1.0 - place / 10_000,
                snippet="",
                fields={
                    "url": name,
                    "source": (sources or {}).get(name, "demo"),
                    **({"text_signature": signature(name)} if name[0] in TEXTS else {}),
                    **({"duplicates": [duplicates[name]]} if duplicates and name in duplicates else {}),
                },
            )
            for place, name in enumerate(names)
        ]

    def search(self, query: SearchQuery) -> SearchAnswer:
        self.rows.append(query.rows)
        self.asked.append((query.start, query.rows, query.has_snippets))
        return SearchAnswer(total=len(self._hits), hits=self._hits[query.start : query.start + query.rows])


def signature(name: str) -> str:
    return sign(" ".join(edited(TEXTS[name[0]], int(name[1:]), 1)))


def ask(index: Ranked, **query: int) -> list[tuple[str, list[str]]]:
    answer = search_grouped(index, SearchQuery(words="word", **query), lambda source: source != "apart")  # type: ignore[arg-type]  # numbers
    return [(hit.id, list(hit.fields.get("duplicates", ()))) for hit in answer.hits]


def test_hits_when_some_are_near_copies_then_the_best_lists_the_others_and_their_copies() -> None:
    index = Ranked("a1", "b1", "x1", "a2", "x2", "a3", duplicates={"a1": "copy-of-a1", "a3": "a2"})

    assert ask(index) == [("a1", ["copy-of-a1", "a2", "a3"]), ("b1", []), ("x1", []), ("x2", [])]
    # Their fields without it are what they were.
    assert index.rows == [15]


def test_hits_when_they_are_of_other_sources_or_the_source_says_so_then_each_is_one() -> None:
    index = Ranked("a1", "a2", "a3", "b1", "b2", sources={"a2": "other", "b1": "apart", "b2": "apart"})

    assert ask(index) == [("a1", ["a3"]), ("a2", []), ("b1", []), ("b2", [])]


def test_pages_when_hits_are_near_copies_then_none_is_shown_twice_and_none_is_missing() -> None:
    names = [f"{letter}{number}" for number in range(1, 30) for letter in "abx"]
    shown = [("a1", 28), ("b1", 28), *((f"x{number}", 0) for number in range(1, 30))]

    pages = [ask(Ranked(*names), start=start, rows=5) for start in range(0, 40, 5)]

    assert [name for page in pages for name, _ in page] == [name for name, _ in shown]
    # What is listed does not depend on the page.
    assert [(name, len(listed)) for page in pages for name, listed in page] == shown


def test_hits_when_near_copies_come_after_those_that_are_shown_then_they_are_listed_without_their_texts() -> None:
    others = [f"x{number}" for number in range(900)]
    index = Ranked("a1", "b1", *others, "a2", *others[:97], "b2", sources={"b1": "apart", "b2": "apart"})

    assert ask(index, rows=2) == [("a1", ["a2"]), ("b1", [])]
    assert index.asked == [(0, 7, True), (7, 993, False)]
    # No text that is shown has a signature.
    assert ask(Ranked(*others), start=2, rows=1) == [("x2", [])]


def test_hits_when_thousands_are_near_copies_then_so_many_are_looked_at_and_the_next_ones_follow() -> None:
    index = Ranked(*(f"a{number % 50}" for number in range(1000)), *(f"y{number}" for number in range(2000)))

    assert [name for name, _ in ask(index, rows=3)] == ["a0", "y0", "y1"]
    assert index.rows == [8, 16, 32, 64, 128, 256, 512, 1000, 2]


@pytest.mark.parametrize("rows", [30, 300, 1000])
def test_pages_when_they_go_on_after_the_groups_then_each_hit_is_on_one(rows: int) -> None:
    # 400 of the first 1,000 are near copies; so are some of the others, which are hits of their own.
    first = [f"a{number}" if number % 5 < 2 else f"x{number}" for number in range(1000)]
    others = [f"a{number}" if number % 50 == 0 else f"x{number}" for number in range(1000, 1500)]
    shown = ["a0", *(name for name in first if name.startswith("x")), *others]
    index = Ranked(*first, *others)

    pages = [[name for name, _ in ask(index, start=at, rows=rows)] for at in range(0, 1500, rows)]

    assert [name for page in pages for name in page] == shown
    assert [len(page) for page in pages[: len(shown) // rows]] == [rows] * (len(shown) // rows)


def test_search_when_no_rows_are_wanted_or_nothing_says_otherwise_then_the_index_is_asked_as_it_was() -> None:
    index = Ranked("a1", "a2")

    counted = search(index, SearchQuery(words="word", rows=0), collapses=lambda _: True)
    plain = search(index, SearchQuery(words="word"))
    grouped = search(index, SearchQuery(words="word"), collapses=lambda _: True)

    assert (counted["total"], counted["hits"], [hit["url"] for hit in plain["hits"]]) == (2, [], ["a1", "a2"])
    assert [(hit["url"], hit["duplicates"]) for hit in grouped["hits"]] == [("a1", ["a2"])]
    assert index.rows == [0, 10, 15]


def test_options_when_a_source_file_says_so_or_cannot_be_read_then_near_copies_are_left_or_brought_together(
    tmp_path: Path,
) -> None:
    (tmp_path / "searchcrawl.toml").write_text('contact = "me@a.example"\n')
    (tmp_path / "sources").mkdir()
    for name, table in (("plain", ""), ("apart", '[copies]\nnear = "off"\n'), ("broken", "[copies]\nnear = 3\n")):
        (tmp_path / f"sources/{name}.toml").write_text(
            f'[start]\nurls = ["http://a.example/"]\n[scope]\ninclude_hosts = ["a.example"]\n{table}'
        )
    collapses = read_collapses(load_project(tmp_path))

    assert [collapses(name) for name in ("plain", "apart", "broken", "gone")] == [True, False, True, True]
