"""Pages of many megabytes: memory does not rise with their number (X-R13, E6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, source
from tests.acceptance.test_hostile_pages import PROBE
from tests.live_pages import document
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST = "large.acme.test"
#: About so many bytes a page; the process holds some of them at once, with their texts.
SIZE = 24_000_000
PAGES = 6
MOST_MEGABYTES = 330


def test_memory_when_many_pages_are_large_then_does_not_rise_with_their_number(tmp_path: Path) -> None:
    with SiteProcess() as site:
        paths = [f"/{number}.html" for number in range(PAGES)]
        for number, path in enumerate(paths):
            text = document(number)
            site.set_page(HOST, path, (text + f"<p>{text[-200:]}" * (SIZE // 200)).encode()[:SIZE])
        site.set_page(HOST, "/", page("start", *paths))
        project = new_project(tmp_path, site, **source(site, HOST, timeout_seconds=30, concurrency=1))
        probe = tmp_path / "probe.json"

        ended = project.crawl("-s", PROBE, "-s", f"PROBE_FILE={probe}")

        assert ended.exit_code == 0
        assert set(project.codes().values()) == {200}
        assert json.loads(probe.read_text("utf-8"))["peak_megabytes"] < MOST_MEGABYTES
