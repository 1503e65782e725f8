"""The quick mode: pages from the disk, each by itself, without a crawl.

What depends on other pages of a host (``docs/explanation/decisions/site-blocks.md``) is not in it, neither are links.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.decisions.measure import Figures, Measuring, Stored, find_common_words
from benchmarks.decisions.roots import list_pages
from benchmarks.decisions.sites import Manual
from benchmarks.decisions.truth import read_truth
from searchcrawl.documents.document_pipeline import complete_page
from searchcrawl.html.context import ConversionContext, TextRules
from searchcrawl.html.page import parse_html
from tests.factories import document

_CONTENT_TYPE: Final = "text/html"
_MOST_BYTES: Final = 3_000_000
#: From so many pages the words are found that a site repeats.
COMMON_PAGES: Final = 300
_SEED: Final = 42


def measure_pages(name: str, folder: Path, manual: Manual, *, most: int) -> Figures:
    """The figures of up to ``most`` pages of a site, drawn at random, the same each time; all with 0."""
    paths = [path for path in list_pages(folder, manual) if path.stat().st_size <= _MOST_BYTES]
    random.Random(_SEED).shuffle(paths)
    sample = paths[:COMMON_PAGES]
    measuring = Measuring(find_common_words([read_truth(path.read_bytes(), manual) for path in sample]))
    for path, stored in _read_pages(name, folder, sorted(paths[: most or len(paths)])):
        measuring.add_title(stored)
        measuring.add(stored, read_truth(path.read_bytes(), manual))
    return measuring.finish()


def _read_pages(name: str, folder: Path, paths: list[Path]) -> Iterator[tuple[Path, Stored]]:
    rules = TextRules(main=True)
    for path in paths:
        url = f"http://{name}.test/{path.relative_to(folder).as_posix()}"
        page = parse_html(
            path.read_bytes(),
            ConversionContext(
                url=url,
                headers=((b"Content-Type", _CONTENT_TYPE.encode()),),
                default_charset="utf-8",
                user_agent="bench",
                text_rules=rules,
            ),
        )
        # As a crawl does it, but for what the host usually has.
        page = complete_page(page, document(), None)
        yield path, Stored(url, page.title, page.text, page.language)
