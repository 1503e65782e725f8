"""C1: fetching and delivering are decoupled: an index that stalls stops no fetching until the cache is full."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson
import pytest

from searchcrawl.index.solr.receiver import REQUIRED_FIELDS
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, source
from tests.crawl_forks import Forks, Running, started
from tests.scripted_solr import Exchange, Received, ScriptedSolr, good
from tests.site.client import SiteProcess, configure

pytestmark = pytest.mark.extended

PAGES: Final = 40
LAST: Final = 12
HOST: Final = "chain.acme.test"
#: How long nothing is asked for before it counts as waiting.
_STILL_SECONDS: Final = 1.0


@dataclass(slots=True)
class StalledSolr:
    """A core that takes its first documents and does not answer until it is released."""

    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def __call__(self, exchange: Exchange, request: Received) -> None:
        if request.path.endswith("/schema/fields"):
            fields = [{"name": name} for name in REQUIRED_FIELDS]
            exchange.send(200, orjson.dumps({"responseHeader": {"status": 0}, "fields": fields}))
            return
        if isinstance(request.body, list):
            self.reached.set()
            self.released.wait(100)
        good(exchange, request)


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        # Each page leads to the next, so that rows are claimed one by one.
        for number in range(PAGES):
            site.set_page(HOST, f"/{number or ''}", page(f"page {number}", f"/{number + 1}"))
        site.set_page(HOST, f"/{PAGES}", page("last"))
        yield site


@pytest.fixture
def stalled() -> Iterator[tuple[StalledSolr, str]]:
    step = StalledSolr()
    with ScriptedSolr(script=[step]) as solr:
        yield step, solr.core_url
        step.released.set()


def begun(forks: Forks, project: CrawlProject, url: str, **cache: float) -> Running:
    configure(project.folder, index={"type": "solr", "url": url}, cache=cache)
    return forks.start(project.folder, "crawl", "demo")


def test_c1_index_when_it_stalls_then_fetching_goes_on_to_the_end(
    forks: Forks, site: SiteProcess, stalled: tuple[StalledSolr, str], tmp_path: Path
) -> None:
    step, url = stalled
    project = new_project(tmp_path, site, **source(site, HOST))

    with started(begun(forks, project, url, threshold_mb=0.001)) as running:
        running.until(step.reached.is_set)
        running.until(lambda: len(site.requested()) == PAGES + 1)
        unanswered = not step.released.is_set()
        step.released.set()
        code = running.wait()

    assert unanswered
    assert code == 0
    assert {row["indexed_version"] is not None for row in project.rows().values()} == {True}


def test_c1_index_when_it_stalls_and_the_cache_is_full_then_fetching_waits_for_it(
    forks: Forks, site: SiteProcess, stalled: tuple[StalledSolr, str], tmp_path: Path
) -> None:
    step, url = stalled
    # Each page waits for a delivery then: the end of the chain is enough.
    project = new_project(tmp_path, site, **source(site, HOST, f"/{PAGES - LAST}"))

    with started(begun(forks, project, url, threshold_mb=0.001, max_gb=0.000001)) as running:
        running.until(step.reached.is_set)
        count = -1
        while count != len(site.requested()):
            count = len(site.requested())
            threading.Event().wait(_STILL_SECONDS)
        step.released.set()
        code = running.wait()

    assert 0 < count <= LAST
    assert code == 0
    assert len(site.requested()) == LAST + 1
    assert set(project.codes().values()) == {200}
