"""Our engine does for each URL what Scrapy's does: the same calls and signals in the same order."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import scrapy

from searchcrawl.engine.visit_engine import KNOWN_RELEASES


def run(engine: str, components: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.engine_run", engine, components]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("components", ["plain", "own"])
def test_visits_when_in_one_task_then_each_url_meets_the_same_as_with_scrapys_engine(components: str) -> None:
    expected, found = run("scrapy", components), run("ours", components)

    assert found == expected
    assert found["reasons"] == ["finished"]
    # Each kind of URL is there twice, and so are the targets of redirects.
    assert len(found["seen"]) == 38


def test_visit_when_a_component_raises_what_is_no_exception_or_forgets_the_row_then_it_ends_and_the_others_go_on() -> (
    None
):
    found = run("ours", "hard")

    assert found["reasons"] == ["finished"]
    # With the targets of what a middleware requests in the place of a page.
    assert len(found["seen"]) == 40
    assert found["seen"]["http://site.test/elsewhere/17"][-1] == "spider_error"
    assert found["seen"]["http://site.test/page/0"][-2:] == ["pipeline", "spider_error"]


def test_engine_when_scrapy_is_raised_then_somebody_reads_its_engine_again() -> None:
    assert scrapy.version_info[:2] in KNOWN_RELEASES
