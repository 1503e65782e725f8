"""Pages of many megabytes: memory does not rise with their number (X-R13, E6)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, source
from tests.live_pages import document
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST: Final = "large.acme.test"
#: About so many bytes a page; the process holds some of them at once, with their texts.
SIZE: Final = 12_000_000
#: Both numbers are large enough for pages to be fetched, written and delivered at the same time.
FEW, MANY = 4, 16
#: What the bodies of the other pages, with their texts, would take at least is twice as much.
MOST_MORE_MEGABYTES: Final = 140


def test_memory_when_many_pages_are_large_then_does_not_rise_with_their_number(
    site: SiteProcess, tmp_path: Path
) -> None:
    few, many = (measure_peak(site, tmp_path / str(number), number) for number in (FEW, MANY))

    assert many < few + MOST_MORE_MEGABYTES, (few, many)


def measure_peak(site: SiteProcess, folder: Path, number: int) -> int:
    """The most megabytes that a crawl of so many large pages has at once."""
    paths = [f"/{each}.html" for each in range(number)]
    for each, path in enumerate(paths):
        text = document(each)
        site.set_page(HOST, path, (text + f"<p>{text[-200:]}" * (SIZE // 200)).encode()[:SIZE])
    site.set_page(HOST, "/", page("start", *paths))
    folder.mkdir()
    # Each page fills a batch.
    project = {"cache": {"threshold_mb": SIZE / 2_000_000}}
    crawled = new_project(folder, site, **source(site, HOST, timeout_seconds=30, concurrency=1), project=project)

    ended, measured = crawled.crawl_measured()

    assert ended.exit_code == 0
    assert {*crawled.codes().values()} == {200}
    peak: int = measured["peak_megabytes"]
    return peak
