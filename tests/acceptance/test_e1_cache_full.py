"""A full cache is pushed to the index beside the crawl (E1)."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Final

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

HOST: Final = "cache.acme.test"
PAGE_BYTES: Final = 100_000
#: With the start page a little over 3.5 MB, of 1,048,576 bytes each.
PAGES: Final = 37


def deliveries(project: CrawlProject) -> Counter[int]:
    """How many documents went with each delivery, by its number."""
    rows = project.lines("urls", project.name)
    return Counter(row["batch"] for row in rows)


def test_e1_crawl_when_the_limit_is_1_mb_and_pages_have_3_5_mb_then_the_cache_is_flushed_four_times(
    site: SiteProcess, tmp_path: Path
) -> None:
    texts = {f"p{number}": random.Random(number).randbytes(PAGE_BYTES // 2).hex() for number in range(PAGES)}
    pages(site, HOST, **{name: page(name, text=text) for name, text in texts.items()})
    project = new_project(tmp_path, site, **source(site, HOST), project={"cache": {"threshold_mb": 1}})

    ended = project.crawl()

    sent = deliveries(project)
    assert (ended.exit_code, ended.counts["indexed"]) == (0, PAGES + 1)
    # Eleven pages fill it, and the small start page lies in it besides.
    assert sorted(sent.values()) == [4, 11, 11, 12]
    assert sorted(Counter(project.versions().values()).values()) == sorted(sent.values())
