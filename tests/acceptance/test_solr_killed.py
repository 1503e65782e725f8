"""A real Solr that dies or loses an answer in the middle of a crawl: nothing is lost, nothing doubled (X-I2, X-I7, X-I8)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess, configure
from tests.solr_relay import Break, SolrRelay
from tests.solr_server import RunningSolr

pytestmark = pytest.mark.solr

HOST: Final = "killed.acme.test"
PAGES: Final = 60
#: Solr starts in a few seconds; on a busy machine it takes longer.
PATIENT: Final = ("-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=240")


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    names = [f"p{number}" for number in range(PAGES)]
    pages(site, HOST, **{name: page(name, text=f"common {name} " * 300) for name in names})
    return site


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    return new_project(tmp_path, site, **source(site, HOST))


def use(project: CrawlProject, url: str) -> None:
    # About 6 KB a page: several batches.
    configure(project.folder, index={"type": "solr", "url": url}, cache={"threshold_mb": 0.1})


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "at",
    [
        pytest.param(Break.KILL_IN_DOCUMENTS, id="i7-killed-in-documents"),
        pytest.param(Break.KILL_BEFORE_COMMIT, id="i8-killed-before-commit"),
        pytest.param(Break.RESET_BEFORE_DOCUMENTS, id="i7-reset-before"),
        pytest.param(Break.RESET_AFTER_DOCUMENTS, id="i7-reset-after"),
    ],
)
def test_i7_i8_crawl_when_solr_breaks_off_then_all_documents_are_in_once(
    project: CrawlProject, solr_server: RunningSolr, solr_core: str, at: Break
) -> None:
    with SolrRelay(solr_server, solr_core.rpartition("/")[2], at) as relay:
        use(project, relay.url)
        ended = project.crawl(*PATIENT)
    use(project, solr_core)
    verified = project.ask("verify", "demo")
    found = project.ask("search", "common", "--rows", "1")
    again = project.crawl(*PATIENT)

    assert relay.broken
    assert (ended.exit_code, ended.status["waiting"], ended.status["documents"]) == (0, 0, PAGES + 1)
    assert ended.counts["indexed"] == PAGES + 1
    assert verified["ok"]
    assert found["total"] == PAGES
    assert (again.exit_code, again.counts["indexed"]) == (0, 0)
