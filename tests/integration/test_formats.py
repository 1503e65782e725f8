"""One known text in four languages, in all formats that are read: its words and its title are found (C8, C9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import pytest

from searchcrawl.convert.conversion_pool import ConversionPool
from searchcrawl.convert.registry import Registry
from searchcrawl.html.context import ConversionContext
from searchcrawl.items import Headers, Page
from tests.office_corpus import TEXTS, OfficeMissing, open_corpus

pytestmark = pytest.mark.extended

RECALL: Final = 0.95
ORIGINS: Final = frozenset({"meta:created", "meta:modified"})
#: Formats without a title: that of the file is its name.
UNTITLED: Final = frozenset({"txt", "csv", "tsv", "yaml", "jsonl"})
#: Formats whose author and dates are read.
WITH_AUTHOR: Final = frozenset(
    {"docx", "dotx", "odt", "ott", "rtf", "doc", "epub", "pdf", "html", "ods", "ots", "xlsx", "xls", "odp", "otp"}
    | {"pptx", "potx", "ppt", "eml", "msg", "fb2", "org", "adoc"}
)
WITH_DATE: Final = frozenset(
    {"docx", "dotx", "odt", "ott", "rtf", "doc", "ods", "ots", "xlsx", "xls", "odp", "otp", "pptx", "potx", "ppt"}
)
LEAST_FORMATS: Final = 30


class Read(NamedTuple):
    """What was read from a file: its language, its format, the converter and the page."""

    language: str
    form: str
    converter: str
    page: Page

    @property
    def recall(self) -> float:
        text = TEXTS[self.language]
        words = set(re.findall(r"\w+", " ".join([text.title, *text.lines])))
        found = f"{self.page.title}\n{self.page.text}"
        return sum(word in found for word in words) / len(words)


@pytest.fixture(scope="module")
def corpus(part_missing: Callable[[str], NoReturn]) -> Path:
    try:
        return open_corpus()
    except OfficeMissing as error:
        part_missing(str(error))


@pytest.fixture(scope="module")
def pool() -> Iterator[ConversionPool]:
    pool = ConversionPool()
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def reads(corpus: Path, pool: ConversionPool) -> list[Read]:
    return [read(pool, path) for path in sorted(corpus.iterdir())]


def read(pool: ConversionPool, path: Path, headers: Headers = ()) -> Read:
    registry, body = Registry(), path.read_bytes()
    url = f"http://a.test/{path.name}"
    mimetype = registry.find_mimetype(body, headers, url)
    converter = registry.choose(mimetype, body, headers)
    context = ConversionContext(url=url, headers=headers, mimetype=mimetype, attribute_origins=ORIGINS)
    page = pool.submit(converter, body, context).result(60)
    return Read(path.name[:2], path.suffix[1:], converter.name, page)


def test_c8_formats_when_read_then_known_words_are_found(reads: list[Read]) -> None:
    worst: dict[str, float] = {}
    for each in reads:
        worst[each.form] = min(worst.get(each.form, 1.0), each.recall)
    print(*(f"{form} {recall:.2f}" for form, recall in sorted(worst.items())))

    assert {form: recall for form, recall in worst.items() if recall < RECALL} == {}
    assert len(worst) >= LEAST_FORMATS
    assert len(reads) == len(worst) * len(TEXTS)


def test_c8_formats_when_they_have_a_title_then_it_is_read(reads: list[Read]) -> None:
    wrong = {
        (each.language, each.form): each.page.title
        for each in reads
        if each.form not in UNTITLED and each.page.title != TEXTS[each.language].title
    }

    assert wrong == {}


def test_c8_formats_when_they_have_author_and_dates_then_they_are_read(reads: list[Read]) -> None:
    authors = {each.form for each in reads if each.page.author == TEXTS[each.language].author}
    wrong = {each.form for each in reads if each.page.author not in {"", TEXTS[each.language].author}}
    dates = {each.form for each in reads if any("2024-03-05" in values[0] for _, values in each.page.found)}

    assert wrong == set()
    assert WITH_AUTHOR - authors == set()
    assert WITH_DATE - dates == set()


def test_c8_links_when_a_file_has_some_then_none_is_followed(reads: list[Read]) -> None:
    assert [each.form for each in reads if each.page.links] == []
