"""Which known pages have turned into one text, and which have only changed (L9, X-R17)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

import pytest

from searchcrawl.rules import turned_pages
from searchcrawl.rules.turned_pages import Cluster, Clusters, Comparison, PageWords, Sketch, Version

HOST: Final = "http://a.test"
PAGES: Final = 12
ANIMALS: Final = ("heron", "otter", "lynx", "adder", "shrew", "stoat", "crane", "newt", "boar", "tern", "smelt", "elk")
#: Text that each page of a site has.
MENU: Final = "Home Products Services About us Contact Imprint Privacy Careers Press Downloads Support "
TRACE: Final = "Fatal error: uncaught exception in the module of the database, connection refused, stack trace follows."
#: A page: its title and its text, by its number.
Make = Callable[[int], tuple[str, str]]


def url(number: int) -> str:
    return f"{HOST}/pages/{ANIMALS[number]}-{number}.html"


def words(number: int, title: str, text: str) -> PageWords:
    return PageWords.of(url(number), title, text)


def clusters_of(make: Make) -> set[int]:
    """How many pages each cluster has."""
    clusters, found = Clusters(), set[Cluster]()
    for number in range(PAGES):
        cluster = clusters.find_or_add(HOST, Sketch.of(words(number, *make(number))))
        cluster.pages += 1
        found.add(cluster)
    return {cluster.pages for cluster in found}


def turned(before: Make | None, now: Make, *, length_change: int = 500) -> int:
    """How many of the pages have turned."""
    versions = [
        Version(None if before is None else words(number, *before(number)), words(number, *now(number)), length_change)
        for number in range(PAGES)
    ]
    comparison = Comparison(versions)
    return sum(map(comparison.has_turned, versions))


def own_words(number: int, seed: str = "", count: int = 30) -> str:
    chance = random.Random(f"{seed}{number}")
    return " ".join("".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(count))


def soon(number: int) -> tuple[str, str]:
    return "ACME", "We are back soon"


PLACEHOLDERS: Final[dict[str, Make]] = {
    "same": soon,
    "time": lambda number: ("ACME", f"We are back soon, 12:{number:02}"),
    "date": lambda number: ("ACME", f"We are back soon. {number + 1} March 2026, 0{number}:17:33 UTC"),
    "URL": lambda number: ("ACME", f"We are back soon. You asked for {url(number)}"),
    "title": lambda number: (f"The {ANIMALS[number]} and its relatives", "We are back soon"),
    "title in text": lambda number: (f"The {ANIMALS[number]}", f"The {ANIMALS[number]} We are back soon"),
    "token": lambda number: ("ACME", f"Please sign in. Reference {own_words(number, 'token', 1)}"),
    "trace": lambda number: (
        "Error",
        f"{TRACE} #0 {ANIMALS[-number]}.php({number}): open_{ANIMALS[number]}()",
    ),
    "menu": lambda number: (f"The {ANIMALS[number]}", MENU + "Sign in User name Password"),
    "CJK": lambda number: ("ACME", f"システムメンテナンス中です。{number}分後にお試しください。"),
    "number": lambda number: (f"The {ANIMALS[number]}", f"{number} {number * 7}"),
}


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_texts_when_they_differ_by_a_token_a_date_or_the_url_then_are_one_cluster(name: str) -> None:
    assert clusters_of(PLACEHOLDERS[name]) == {PAGES}


@pytest.mark.parametrize("name", [name for name in PLACEHOLDERS if name != "number"])
@pytest.mark.parametrize(
    "before",
    [
        lambda number: ("Sheet", own_words(number)),
        lambda number: ("Sheet", MENU + own_words(number, count=4)),
        lambda number: ("Sheet", f"text of page{number:02}"),
        lambda number: (f"The {ANIMALS[number]}", f"The {ANIMALS[number]}"),
        lambda number: ("Sheet", f"phrase number {number} of this house"),
        lambda number: ("Sheet", str(4711 + number)),
        None,
    ],
    ids=["words", "words in a template", "tokens", "titles", "numbers", "numbers alone", "given up"],
)
def test_pages_when_they_lose_their_text_for_a_placeholder_then_have_turned(name: str, before: Make | None) -> None:
    assert turned(before, PLACEHOLDERS[name]) == PAGES


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (
            lambda number: ("Station", f"Station {number} measured 1{number}.5 degrees on 1 March 2026"),
            lambda number: ("Station", f"Station {number} measured 2{number}.1 degrees on 2 March 2026"),
        ),
        (
            lambda number: ("Station", f"Station {ANIMALS[number]}: rain, 12 degrees, wind from the west"),
            lambda number: ("Station", f"Station {ANIMALS[number]}: sun, 22 degrees, wind from the west"),
        ),
        (
            lambda number: ("Article", f"Article no. {number}, in stock, 17.20 EUR, as of Monday"),
            lambda number: ("Article", f"Article no. {number}, in stock, 18.90 EUR, as of Tuesday"),
        ),
        (lambda number: ("", f"{number}.5"), lambda number: ("", f"{number}.7")),
        (
            lambda number: ("Sheet", own_words(number, count=5)),
            lambda number: ("Sheet", MENU * 5 + own_words(number, count=5)),
        ),
        (
            lambda number: ("Sheet", MENU + own_words(number, "before")),
            lambda number: ("Sheet", MENU + "Our new design. " + own_words(number, "now")),
        ),
        (
            lambda number: (
                "Parts",
                " ".join(f"{name}{number * 61 + place}" for place, name in enumerate(ANIMALS * 5)),
            ),
            lambda number: (
                "Parts",
                " ".join(f"{name}{number * 67 + place}x" for place, name in enumerate(ANIMALS * 5)),
            ),
        ),
    ],
    ids=["readings", "weather", "prices", "numbers", "new template", "new text", "part numbers"],
)
def test_pages_when_they_change_and_stay_what_they_are_then_have_not_turned(before: Make, now: Make) -> None:
    assert turned(before, now) == 0


def test_pages_when_the_earlier_text_is_gone_and_the_length_stays_then_have_not_turned() -> None:
    assert turned(None, soon, length_change=-3) == 0


@pytest.mark.parametrize("shared", [0, 20, 200])
def test_texts_when_each_page_has_its_own_then_are_clusters_of_one_page(shared: int) -> None:
    template = own_words(-1, "template", shared)

    assert clusters_of(lambda number: ("Sheet", f"{template} {own_words(number)}")) == {1}


def test_sketch_when_packed_then_comes_back() -> None:
    sketch = Sketch.of(words(3, "The adder", "All about the adder, which is no otter"))

    assert Sketch.unpack(sketch.pack()) == sketch
    assert Sketch.unpack(Sketch.of(words(3, "", "")).pack()) == Sketch.of(words(3, "", ""))


def test_hosts_when_they_have_the_same_text_then_have_clusters_of_their_own() -> None:
    clusters, sketch = Clusters(), Sketch.of(words(0, *soon(0)))

    assert clusters.find_or_add("http://a.test", sketch) is not clusters.find_or_add("http://b.test", sketch)


def test_clusters_when_there_are_many_then_the_small_and_old_ones_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turned_pages, "_MOST_CLUSTERS", 10)
    clusters, sketch = Clusters(), Sketch.of(words(0, *soon(0)))
    large = clusters.find_or_add(HOST, sketch)
    large.pages = 5
    sketches = [Sketch.of(words(0, "", own_words(number))) for number in range(30)]
    for each in sketches:
        clusters.find_or_add(HOST, each).pages = 1

    assert clusters.find_or_add(HOST, sketch) is large
    assert clusters.find_or_add(HOST, sketches[-1]).pages == 1
    assert clusters.find_or_add(HOST, sketches[0]).pages == 0


def hostile_texts(pages: int) -> Sequence[str]:
    """Texts that share all words by which they are found, and are near to no other."""
    shared = own_words(0, "shared", 400)
    return [f"{shared} {own_words(number, 'own', 400)}" for number in range(pages)]


def test_comparisons_when_hostile_pages_share_much_of_their_text_then_grow_no_faster_than_the_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0
    is_near = Sketch.is_near

    def count(one: Sketch, other: Sketch) -> bool:
        nonlocal compared
        compared += 1
        return is_near(one, other)

    monkeypatch.setattr(Sketch, "is_near", count)
    clusters = Clusters()
    for number, text in enumerate(hostile_texts(200)):
        sketch = Sketch.of(PageWords.of(f"{HOST}/{number}", "", text))
        assert len(sketch.pack()) <= 4 * (2 * 64 + 1)
        clusters.find_or_add(HOST, sketch).pages += 1

    # A page is compared with at most three clusters for each of its eight keys.
    assert compared <= 200 * 24


def test_words_when_a_text_is_endless_then_are_those_of_its_beginning() -> None:
    page = words(0, "t " * 10**6, "a b " * 10**6 + "late")

    assert "late" not in page.words
