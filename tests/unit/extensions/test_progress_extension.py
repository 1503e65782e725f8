"""The text of the progress line, and where it is drawn."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scrapy.exceptions import NotConfigured

from searchcrawl.extensions.progress_extension import Meter, ProgressExtension
from searchcrawl.stages import Stages


def counts(fetched: int, failures: int = 0) -> dict[str, int]:
    return {"fetched": fetched, "fetch_failures": failures, "conversion_failures": 0}


def test_line_when_asked_first_then_no_rate_is_known() -> None:
    assert Meter().line(counts(5), 7, 100.0) == "5 pages, 0.0 pages/s, 7 in the queue, 0 errors"


def test_line_when_pages_come_then_the_rate_is_theirs_with_the_errors() -> None:
    meter = Meter()
    meter.line(counts(0), 9, 100.0)

    line = meter.line(counts(8, failures=2), 3, 104.0)

    assert line == "10 pages, 2.5 pages/s, 3 in the queue, 2 errors"


def test_line_when_the_crawl_gets_slower_then_old_pages_count_no_more() -> None:
    meter = Meter()
    meter.line(counts(0), 0, 100.0)
    meter.line(counts(1000), 0, 101.0)
    meter.line(counts(1000), 0, 110.0)

    assert meter.line(counts(1010), 0, 112.0).split(", ")[1] == "5.0 pages/s"


def test_extension_when_there_is_no_terminal_then_off() -> None:
    # Its stage is composed for a terminal only.
    crawler = SimpleNamespace(spider=SimpleNamespace(stages=Stages()))

    with pytest.raises(NotConfigured, match="standard error is no terminal"):
        ProgressExtension.from_crawler(crawler)  # type: ignore[arg-type]  # as much of a crawler as it asks
