"""How often a query finds the page that it was taken from: ``python -m benchmarks.known_items``.

The queries are titles, index terms and texts of links of four manuals, each of which names one page alone. No one judges
answers: the page is known. Half of the queries (``tuning``) may be looked at while the order of hits is worked on, the
other half (``held out``) only counts. Beside both indexes: Solr's edismax with its defaults on the fields title and content
of the same core, and SQLite FTS5 with its defaults (porter stems) on the same texts, which are those of the main content.

A crawl indexes the texts of links, too. With them the queries that were taken from such texts are easier than others: so both
indexes are asked once more without the texts that are queries themselves.

It needs Java, and the packages of the benchmark (``benchmarks.material``).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sqlite3
import tempfile
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from benchmarks.material import package_names, prepare_site
from searchcrawl.delivery.anchors import LinkCounts, select_anchors
from searchcrawl.delivery.documents import build_indexed_document
from searchcrawl.documents.language import judge_languages
from searchcrawl.html.context import ConversionContext, TextRules
from searchcrawl.html.page import parse_html
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import Batch, SearchIndex, SearchQuery
from searchcrawl.index.solr.receiver import SolrReceiver
from searchcrawl.items import IndexedDocument, Link
from searchcrawl.store.batch_table import BatchDocument

_ROOT: Final = Path(__file__).resolve().parent
_HOST: Final = "http://manuals.test/"
#: So many queries of each kind are taken from each manual, as far as it has them.
_EACH: Final = 26
_MOST_RANKS: Final = 10
_BATCH: Final = 500
#: What stands in many links, and in titles beside what is their own.
_NO_TEXT: Final = re.compile(r"(?:next|prev(?:ious)?|up|home|index|modules|source|permalink)\b.*", re.IGNORECASE)
_OF_MANUAL: Final = re.compile(r" — .*$|^(?:Chapter |Appendix |Part )?[0-9A-Z]+(?:\.[0-9]+)*\.\s+")
_WORD: Final = re.compile(r"\w+(?:[._-]\w+)*")

Search = Callable[[str], list[str]]


class Page(NamedTuple):
    """A page of a manual."""

    url: str
    manual: str
    title: str
    text: str
    language: str
    headings: tuple[str, ...]
    links: tuple[Link, ...]


class Query(NamedTuple):
    """A query, and the one page that it was taken from."""

    kind: str
    manual: str
    words: str
    url: str


class Score(NamedTuple):
    """Success at the first rank, and the mean of 1/rank within ten."""

    first: float
    reciprocal: float


#: Kind of a query, its text, and the URL of the page that it names.
Named = tuple[str, str, str]


def read_pages(site: Path) -> Iterator[tuple[Page, list[Named]]]:
    """The pages of the manuals, each with what it names."""
    for manual in package_names():
        for path in sorted((site / manual).rglob("*.html")):
            body = path.read_bytes()
            url = _HOST + path.relative_to(site).as_posix()
            page = parse_html(
                body,
                ConversionContext(
                    url=url,
                    headers=((b"Content-Type", b"text/html"),),
                    default_charset="utf-8",
                    user_agent="x",
                    text_rules=TextRules(main=True),
                ),
            )
            language = judge_languages(page.text, (page.language,), page.parts).main
            read = Page(url, manual, page.title, page.text, language, page.headings, page.links)
            tree = LexborHTMLParser(body)
            yield read, [*_read_title(read), *_read_index(read, tree), *_read_links(read, tree)]


def collect_queries(found: Sequence[tuple[Page, list[Named]]]) -> list[Query]:
    """The queries, each kind of each manual in equal parts, in an order that is always the same."""
    pages = {page.url: page for page, _ in found}
    named: dict[tuple[str, str], set[str]] = defaultdict(set)
    for page, names in found:
        for kind, text, url in names:
            words = " ".join(_WORD.findall(text))
            if url in pages and pages[url].manual == page.manual and 4 <= len(words) <= 80:
                named[kind, words.lower()].add(url)
    titles = {words for kind, words in named if kind == "title"}
    kinds: dict[tuple[str, str], list[Query]] = defaultdict(list)
    for (kind, words), urls in sorted(named.items()):
        # What is a title is no query of another kind.
        if len(urls) == 1 and (kind == "title" or words not in titles):
            url = next(iter(urls))
            kinds[kind, pages[url].manual].append(Query(kind, pages[url].manual, words, url))
    chance = random.Random(14)
    return [query for several in kinds.values() for query in chance.sample(several, min(_EACH, len(several)))]


def _read_title(page: Page) -> Iterator[Named]:
    if not _NO_TEXT.match(page.title):
        yield "title", _OF_MANUAL.sub("", page.title), page.url


def _read_index(page: Page, tree: LexborHTMLParser) -> Iterator[Named]:
    """The terms of a general index, of Sphinx or DocBook, with the pages that they lead to."""
    if "genindex" in page.url:
        for link in tree.css("table.genindextable a"):
            if not (text := link.text().strip()).startswith("("):
                # Behind the term stands what it is: abs() (built-in function).
                yield "index term", re.sub(r"\s*\(.*", "", text), _resolve(page, link.attributes.get("href"))
    elif "bookindex" in page.url:
        for term in tree.css("dt"):
            first = term.css_first("a")
            if first is not None:
                yield "index term", term.text().partition(",")[0], _resolve(page, first.attributes.get("href"))


def _read_links(page: Page, tree: LexborHTMLParser) -> Iterator[Named]:
    """The texts of links of two words or more to other pages."""
    if "index" in page.url.rpartition("/")[2]:
        return
    for link in tree.css("p a, dd a, li a"):
        text, url = link.text().strip(), _resolve(page, link.attributes.get("href"))
        if len(text.split()) > 1 and url != page.url and not _NO_TEXT.match(text):
            yield "link", _OF_MANUAL.sub("", text), url


def _resolve(page: Page, href: str | None) -> str:
    return urllib.parse.urljoin(page.url, href or "").partition("#")[0]


def count_other_languages(pages: Sequence[Page]) -> tuple[int, int]:
    """How many of the pages, all of them English, have another language; and how many if none declared its own."""
    detected = [judge_languages(page.text).main for page in pages]
    return sum(page.language[:2] != "en" for page in pages), sum(language != "en" for language in detected)


def collect_anchors(pages: Sequence[Page]) -> dict[str, list[str]]:
    """The texts of links to each page by its URL, as a completed run freezes them."""
    ids = {page.url: number for number, page in enumerate(pages)}
    with LinkCounts() as links:
        for page in pages:
            links.add_document(ids[page.url], page.title)
            for link in page.links:
                for text in link.texts if link.url in ids else ():
                    links.add_link(ids[link.url], text, 1)
        return {pages[number].url: texts.split("\n") for number, texts in select_anchors(links, {1: len(pages)})}


def leave_out(queries: Sequence[Query], anchors: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The texts of links without those that are queries themselves."""
    asked = {(query.url, query.words) for query in queries}
    return {
        url: [text for text in texts if (url, " ".join(_WORD.findall(text)).lower()) not in asked]
        for url, texts in anchors.items()
    }


def build_documents(pages: Sequence[Page], anchors: Mapping[str, Sequence[str]]) -> list[IndexedDocument]:
    """The pages as documents of the index, as a delivery builds them."""
    return [
        build_indexed_document(
            BatchDocument(
                url_id=number, url=page.url, depth=1, segment=1, record_offset=0, response_bytes=0, fields_bytes=0,
                fields_digest=bytes(32), mimetype="text/html", content_length=1, last_modified=None, first_seen_ms=0,
                last_fetched_ms=0,
            ),
            {"title": page.title, "content": page.text, "language": page.language, "headings": page.headings},
            source="manuals",
            duplicates=(),
            anchors=anchors.get(page.url, ()),
        )
        for number, page in enumerate(pages)
    ]  # fmt: skip


def deliver(index: SearchIndex, documents: Sequence[IndexedDocument]) -> None:
    """Delivers all documents."""
    for number, start in enumerate(range(0, len(documents), _BATCH), start=1):
        batch = Batch(number=number, source="manuals", crawl_version=1, documents=documents[start : start + _BATCH])
        assert all(receipt.accepted for receipt in index.deliver(batch))
    index.commit()


def search_with(index: SearchIndex) -> Search:
    """The search of one of our indexes."""
    return lambda words: [str(hit.fields["url"]) for hit in index.search(SearchQuery(words=words)).hits]


def search_edismax(core: str) -> Search:
    """Solr's edismax with its defaults, on title and content."""

    def search(words: str) -> list[str]:
        asked = {
            "defType": "edismax",
            "qf": "title content",
            "q.op": "OR",
            "fl": "url",
            "rows": _MOST_RANKS,
            "q": words,
        }
        with urllib.request.urlopen(f"{core}/select?{urllib.parse.urlencode(asked)}", timeout=60) as answer:
            return [hit["url"] for hit in json.load(answer)["response"]["docs"]]

    return search


def search_fts5(pages: Sequence[Page], operator: str) -> Search:
    """SQLite FTS5 with its defaults; ``operator`` is AND, which is its own, or OR."""
    database = sqlite3.connect(":memory:")
    database.execute(
        "CREATE VIRTUAL TABLE pages USING fts5(url UNINDEXED, title, content, tokenize='porter unicode61')"
    )
    database.executemany("INSERT INTO pages VALUES (?, ?, ?)", [(page.url, page.title, page.text) for page in pages])

    def search(words: str) -> list[str]:
        asked = f" {operator} ".join(f'"{word}"' for word in words.split())
        rows = database.execute("SELECT url FROM pages WHERE pages MATCH ? ORDER BY rank LIMIT ?", (asked, _MOST_RANKS))
        return [url for (url,) in rows]

    return search


def measure(search: Search, queries: Sequence[Query]) -> Score:
    """How well a search finds the pages of queries."""
    ranks = [urls.index(query.url) + 1 if query.url in (urls := search(query.words)) else 0 for query in queries]
    return Score(sum(rank == 1 for rank in ranks) / len(ranks), sum(1 / rank for rank in ranks if rank) / len(ranks))


def split(queries: Sequence[Query]) -> Mapping[str, list[Query]]:
    """Both halves of the queries, and each kind of the half that only counts."""
    halves: dict[str, list[Query]] = {"tuning": [*queries[::2]], "held out": [*queries[1::2]]}
    for query in halves["held out"].copy():
        halves.setdefault(f"held out, {query.kind}", []).append(query)
    return halves


def compare(searches: Mapping[str, Search], queries: Sequence[Query]) -> list[dict[str, Any]]:
    """A row for each search and part of the queries."""
    return [
        {"search": name, "queries": part, "count": len(several), **measure(search, several)._asdict()}
        for part, several in split(queries).items()
        for name, search in searches.items()
    ]


def build_others(core: str, pages: Sequence[Page]) -> dict[str, Search]:
    """The searches that ours are compared with."""
    return {
        "Solr edismax, defaults": search_edismax(core),
        "SQLite FTS5": search_fts5(pages, "AND"),
        "SQLite FTS5, any word": search_fts5(pages, "OR"),
    }


def main() -> None:
    """Builds the indexes, asks the queries, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=_ROOT / "out", help="where the manuals are unpacked")
    work: Path = parser.parse_args().work
    from tests.solr_server import start_solr  # noqa: PLC0415  # builds the server

    found = list(read_pages(prepare_site(work)))
    queries = collect_queries(found)
    pages = [page for page, _ in found]
    anchors = collect_anchors(pages)
    given = {"": anchors, ", without these texts of links": leave_out(queries, anchors)}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, start_solr(Path(folder) / "solr") as server:
        for number, (name, texts) in enumerate(given.items()):
            core = server.create_core(f"manuals{number}")
            local, solr = LocalReceiver(Path(folder) / f"index{number}"), SolrReceiver(core)
            with closing(local), closing(solr):
                for index in (local, solr):
                    deliver(index, build_documents(pages, texts))
                searches = {
                    f"searchcrawl, embedded index{name}": search_with(local),
                    f"searchcrawl, Solr{name}": search_with(solr),
                }
                rows += compare(searches if name else searches | build_others(core, pages), queries)
    labels, detected = count_other_languages(pages)
    print(f"Pages with another language than English: {labels}; by their texts alone: {detected}\n")
    print(f"{len(pages)} pages, {len(queries)} queries\n\n| queries | search | success@1 | MRR@10 |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row['queries']} ({row['count']}) | {row['search']} | {row['first']:.3f} | {row['reciprocal']:.3f} |")


if __name__ == "__main__":
    main()
