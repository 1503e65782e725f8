"""A site that was crawled: what of it is in the index, what was refused, and how right its documents are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from benchmarks.decisions.crawl import CrawledSite
from benchmarks.decisions.languages import tell_language
from benchmarks.decisions.measure import Figures, Measuring, Stored, find_common_words
from benchmarks.decisions.pages import COMMON_PAGES
from benchmarks.decisions.sites import Manual
from benchmarks.decisions.survivors import Group, find_groups
from benchmarks.decisions.truth import Truth, read_truth
from searchcrawl.urls import parse

#: What a page has that was taken for one of a trap.
TRAP: Final = 961
_HTML: Final = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteResult:
    """The figures of a site; ``codes`` are those of pages that wget reached and the index lacks, 0 for pages not found."""

    name: str
    part: str
    generator: str
    reached: int
    indexed: int
    codes: Mapping[int, int]
    of_code: Mapping[int, Sequence[str]] = field(repr=False)
    figures: Figures
    groups: Sequence[Group] = field(repr=False)
    seconds: float
    cpu_seconds: float

    @property
    def refused(self) -> int:
        """Pages of this finite site that were taken for a trap."""
        return self.codes.get(TRAP, 0)

    @property
    def wrong_survivors(self) -> int:
        """Groups of copies for which certainly the wrong page stands."""
        return sum(1 for group in self.groups if group.wrong)

    def as_dict(self) -> dict[str, Any]:
        """For a file of JSON: the counts, without the pages."""
        figures = self.figures
        return {
            "name": self.name,
            "part": self.part,
            "generator": self.generator,
            "reached": self.reached,
            "indexed": self.indexed,
            "codes": {str(code): number for code, number in self.codes.items()},
            "pages": figures.pages,
            "titled": figures.titled,
            "with_words": figures.with_words,
            "with_language": figures.with_language,
            "lost": len(figures.lost),
            "navigation": len(figures.navigation),
            "titles": len(figures.titles),
            "languages": len(figures.languages),
            "own_words": figures.own_words,
            "own_words_lost": figures.own_words_lost,
            "groups": len(self.groups),
            "wrong_survivors": self.wrong_survivors,
            "seconds": round(self.seconds, 1),
            "cpu_seconds": round(self.cpu_seconds, 1),
        }

    def write_groups(self, path: Path) -> None:
        """All groups of copies, for a person to judge."""
        path.write_text(json.dumps([asdict(group) for group in self.groups], ensure_ascii=False, indent=1), "utf-8")


def measure_site(
    name: str, folder: Path, manual: Manual, crawled: CrawledSite, reached: Sequence[str], *, most: int = 0
) -> SiteResult:
    """Compares what a crawl left behind with what wget reached and with the pages themselves.

    Text and language are compared for about ``most`` pages, spread over all; for each of them with 0.
    """
    figures, documents = _measure_documents(folder, manual, crawled, most)
    states = {_path(row["url"]): row for row in crawled.read_urls()}
    of_code: dict[int, list[str]] = {}
    indexed = 0
    for path in reached:
        row = states.get(_path(f"http://host{path}"))
        if row is not None and row["in_index"]:
            indexed += 1
        else:
            of_code.setdefault(0 if row is None else int(row["code"] or 0), []).append(path)
    facts = crawled.read_facts()
    return SiteResult(
        name=name,
        part=manual.part.value,
        generator=manual.generator,
        reached=len(reached),
        indexed=indexed,
        codes={code: len(paths) for code, paths in sorted(of_code.items())},
        of_code=of_code,
        figures=figures,
        groups=find_groups(states.values(), documents),
        seconds=facts["seconds"],
        cpu_seconds=facts["cpu_seconds"],
    )


def _measure_documents(
    folder: Path, manual: Manual, crawled: CrawledSite, most: int
) -> tuple[Figures, dict[str, tuple[str, str]]]:
    """The figures of all HTML documents, and of those that stand for copies the title and the true language."""
    survivors = {row["duplicate_of"] for row in crawled.read_urls() if row["duplicate_of"]}
    sample: list[Truth] = []
    count = _count_documents(crawled)
    step = max(1, count // COMMON_PAGES)
    for number, row in enumerate(crawled.read_documents()):
        if number % step == 0 and (truth := _truth_of(row, folder, manual)) is not None:
            sample.append(truth)
    measuring = Measuring(find_common_words(sample))
    documents: dict[str, tuple[str, str]] = {}
    step = max(1, round(count / most)) if most else 1
    for number, row in enumerate(crawled.read_documents()):
        stored = Stored(row["url"], row.get("title", ""), row.get("content", ""), row.get("language", ""))
        if row.get("mimetype") in _HTML:
            measuring.add_title(stored)
        is_survivor = stored.url in survivors
        truth = _truth_of(row, folder, manual) if is_survivor or number % step == 0 else None
        if truth is not None and number % step == 0:
            measuring.add(stored, truth)
        if is_survivor:
            language = tell_language(truth.prose) if truth else ""
            documents[stored.url] = (stored.title, language)
    return measuring.finish(), documents


def _count_documents(crawled: CrawledSite) -> int:
    with crawled.documents.open("rb") as file:
        return sum(1 for _ in file)


def _truth_of(row: Mapping[str, Any], folder: Path, manual: Manual) -> Truth | None:
    """The truth of a document; None where it is no page of the site's own files."""
    if row.get("mimetype") not in _HTML:
        return None
    path = folder / unquote(urlsplit(row["url"]).path).lstrip("/")
    if path.is_dir():
        path /= "index.html"
    return read_truth(path.read_bytes(), manual) if path.is_file() else None


def _path(url: str) -> str:
    """The path and query of a URL as the crawl spells them."""
    parts = urlsplit(parse(url).href)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
