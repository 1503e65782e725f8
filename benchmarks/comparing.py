"""Whether the index holds what wget reached: each page once, as a duplicate, or with a code that says why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pysolr
import requests

from searchcrawl import urls
from searchcrawl.codes import Code

#: Codes that explain why a page that wget reached is not in the index.
EXPLAINED = frozenset({Code.EMPTY, Code.NOT_INDEXED, Code.META_REFRESH, Code.MOVED, Code.NOT_CANONICAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The difference between wget's pages and the index; equal means that the first three are empty."""

    missing: list[str]
    doubled: list[str]
    extra: list[str]
    indexed: int
    duplicates: int
    explained: Mapping[int, int]

    @property
    def equal(self) -> bool:
        """Whether each page is accounted for, once, and no other page is in the index."""
        return not (self.missing or self.doubled or self.extra)


def documents_of(core_url: str) -> list[dict[str, Any]]:
    """All documents of a core, with what identifies them."""
    solr = pysolr.Solr(core_url, timeout=60)
    fields = "id,url,access_url,duplicates,mimetype"
    return list(solr.search("*:*", fl=fields, sort="id asc", rows=1000, cursorMark="*"))


def document_count(core_url: str) -> int:
    """How many documents a search for everything finds."""
    hits: int = pysolr.Solr(core_url, timeout=60).search("*:*", rows=0).hits
    return hits


def documents_received(core_url: str) -> int:
    """How many documents the core has been sent since it was loaded, whatever became of them."""
    server, _, core = core_url.rpartition("/")
    parameters = {"group": "core", "prefix": "UPDATE.updateHandler.cumulativeAdds", "wt": "json"}
    answer = requests.get(f"{server}/admin/metrics", params=parameters, timeout=30).json()
    counter = answer["metrics"][f"solr.core.{core}"]["UPDATE.updateHandler.cumulativeAdds"]
    return int(counter["count"])


def compare(
    pages: set[str], documents: Iterable[Mapping[str, Any]], list_urls: Iterable[Mapping[str, Any]]
) -> Comparison:
    """Compares the HTML pages that wget reached with the index and the URL table."""
    html = [document for document in documents if document.get("mimetype", "text/html") == "text/html"]
    indexed = Counter(document["access_url"] for document in html)
    duplicates = Counter(url for document in html for url in document.get("duplicates", ()))
    codes = {row["access_url"]: row["code"] for row in list_urls if row["code"] in EXPLAINED}
    known = indexed + duplicates
    return Comparison(
        missing=sorted(pages - known.keys() - codes.keys()),
        doubled=sorted(url for url, count in known.items() if count > 1),
        extra=sorted(known.keys() - pages),
        indexed=len(indexed),
        duplicates=len(duplicates),
        explained=dict(Counter(code for url, code in codes.items() if url in pages and url not in known)),
    )


def compare_plain(pages: set[str], documents: Iterable[Mapping[str, Any]]) -> Comparison:
    """Compares wget's pages with the documents of a peer, which knows neither copies nor codes."""
    found = Counter(urls.parse(document["url"].partition("#")[0]).href for document in documents)
    return Comparison(
        missing=sorted(pages - found.keys()),
        doubled=sorted(url for url, count in found.items() if count > 1),
        extra=sorted(found.keys() - pages),
        indexed=len(found),
        duplicates=0,
        explained={},
    )
