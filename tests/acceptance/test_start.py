"""What a run loads: nothing of what its source does not use, and with nothing to request neither client nor parser."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests import backends
from tests.acceptance.support_project import CrawlProject, new_project, run_apart
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

HOST: Final = "start.acme.test"
#: What a source without login, rendering, schedule or feeds has no use for; and each store and index but its own.
UNUSED: Final = (
    *("playwright", "searchcrawl.kinds.web.login", "searchcrawl.render.browser", "searchcrawl.render.renderer"),
    *("searchcrawl.render.render_middleware", "searchcrawl.render.crawl_wall", "searchcrawl.render.browser_request"),
    *(
        "psycopg",
        "sqlalchemy.dialects.postgresql",
        "pysolr",
        "requests",
        "urllib3",
        "searchcrawl.index.solr",
    ),
    # Formats of files, and what finds encodings that nobody declared.
    *("xberg", "pypdfium2", "olefile", "pyarrow", "chardet", "numpy"),
    *("cronsim", "smtplib", "scrapyd", "searchcrawl.operations.notifying", "searchcrawl.scheduling.scrapyd_client"),
    *("searchcrawl.selftest", "searchcrawl.queries.explain", "argcomplete", "IPython"),
)
#: What a run without requests has no use for.
OF_REQUESTS: Final = (
    "aiohttp",
    "searchcrawl.http.download_handler",
    "searchcrawl.html.page",
    "searchcrawl.kinds.web.sitemaps",
)

_NAMES: Final = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
sys.argv = ["searchcrawl", "crawl", "demo", "--json"]
from searchcrawl.__main__ import main
main()
"""


def crawl(project: CrawlProject) -> tuple[dict[str, int], set[str]]:
    """The counters of a run, and the names of the modules that its process has loaded."""
    ended = run_apart(project.folder, sys.executable, "-c", _NAMES)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)["counts"], set(json.loads(ended.stderr.splitlines()[-1]))


def loaded(modules: set[str], names: tuple[str, ...]) -> list[str]:
    return sorted(
        module for module in modules if any(module == name or module.startswith(f"{name}.") for name in names)
    )


@pytest.mark.skipif(not backends.asks_for_default(os.environ), reason="it is about SQLite and the local index")
def test_plain_source_when_crawled_then_nothing_is_loaded_of_what_it_does_not_use(
    site: SiteProcess, tmp_path: Path
) -> None:
    quiet: dict[str, Any] = {"start": {"sitemaps": "off"}, "lifecycle": {"recrawl_every_hours": 24}}
    pages(site, HOST, one=page("one"), two=page("two"))
    project = new_project(tmp_path, site, **source(site, HOST))

    counts, modules = crawl(project)

    assert counts["fetched"] == 3
    assert loaded(modules, UNUSED) == []
    assert loaded(modules, OF_REQUESTS) != []

    given = source(site, HOST)
    project.edit(**{**given, **quiet, "start": {**given.get("start", {}), **quiet["start"]}})
    crawl(project)
    site.clear_log()
    counts, modules = crawl(project)

    assert (counts["fetched"], counts["not_modified"], site.requested()) == (0, 0, [])
    assert loaded(modules, (*UNUSED, *OF_REQUESTS)) == []
