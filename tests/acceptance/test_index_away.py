"""An index that is down, stalled, no Solr, or that refuses a document: nothing is lost, nothing fetched again (C1, X-I1-I7)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from searchcrawl import urls
from searchcrawl.index.solr.receiver import REQUIRED_FIELDS, SolrReceiver
from tests.acceptance.support_project import CrawlProject, absent_index, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.crawl_forks import Forks, Running, started
from tests.scripted_solr import Exchange, Received, ScriptedSolr, Step, good, status, tolerant
from tests.site.client import SiteProcess, configure
from tests.solr_server import free_port

HOST: Final = "index.acme.test"
NAMES: Final = ("alpha", "beta", "gamma", "delta")
DOCUMENTS: Final = {f"{HOST}/", *(f"{HOST}/{name}.html" for name in NAMES)}
CHAIN: Final = 20
STALLED: Final = "stalled.acme.test"
PAGES: Final = 40
LAST: Final = 12
#: How long nothing is asked for before it counts as waiting.
_STILL_SECONDS: Final = 1.0
HURRY: Final = ("-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=2")


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    site.clear_behaviours()
    site.clear_log()
    pages(site, HOST, **{name: page(f"page {name}") for name in NAMES})
    return new_project(tmp_path, site, **source(site, HOST))


def use(project: CrawlProject, url: str) -> None:
    configure(project.folder, index={"type": "solr", "url": url})


def set_chain(site: SiteProcess, host: str, count: int) -> None:
    """Each page leads to the next, so that rows are claimed one by one."""
    for number in range(count):
        site.set_page(host, f"/{number or ''}", page(f"page {number}", f"/{number + 1}"))
    site.set_page(host, f"/{count}", page("last"))


def in_solr(core: str) -> list[str]:
    with closing(SolrReceiver(core, timeout_seconds=30)) as index:
        return sorted(entry.id for entry in index.scan("demo"))


def ids(project: CrawlProject) -> list[str]:
    return sorted(urls.document_id("demo", row["url"]) for row in project.rows().values())


@pytest.mark.solr
def test_i1_crawl_when_solr_is_down_then_exit_6_and_the_next_run_delivers_without_fetching_again(
    project: CrawlProject, solr_core: str
) -> None:
    address = f"http://127.0.0.1:{free_port()}/solr/pages"
    use(project, address)

    down = project.crawl(*HURRY)
    waiting = project.rows()
    project.site.clear_log()
    use(project, solr_core)
    up = project.crawl()

    assert (down.exit_code, down.status["state"]) == (6, "partially_failed")
    assert (down.status["documents"], down.status["waiting"], down.counts["indexed"]) == (0, 5, 0)
    assert address in down.errors
    assert {url: (row["code"], row["indexed_version"]) for url, row in waiting.items()} == dict.fromkeys(
        DOCUMENTS, (200, None)
    )
    assert {entry["status"] for entry in project.site.log(robots=False)} == {304}
    assert (up.exit_code, up.errors, up.status["waiting"], up.status["documents"]) == (0, "", 0, 5)
    assert (up.counts["not_modified"], up.counts["indexed"]) == (5, 5)
    assert in_solr(solr_core) == ids(project)


@pytest.mark.solr
def test_i6_crawl_when_solr_answers_html_then_exit_6_with_its_url_and_the_documents_wait(
    project: CrawlProject, scripted_solr: ScriptedSolr, solr_core: str
) -> None:
    scripted_solr.script = [status(200, b"<!DOCTYPE html><title>Log in</title>", Content_Type="text/html")]
    use(project, scripted_solr.core_url)

    html = project.crawl(*HURRY)
    use(project, solr_core)
    up = project.crawl()

    assert (html.exit_code, html.status["waiting"]) == (6, 5)
    assert html.errors.startswith(
        f"ERROR: documents wait for the index: searchcrawl.toml: index.url: {scripted_solr.core_url}"
    )
    assert len(html.errors.splitlines()) == 1
    assert (up.exit_code, up.status["waiting"]) == (0, 0)
    assert in_solr(solr_core) == ids(project)


def test_i3_crawl_when_solr_rejects_a_document_then_it_is_set_aside_with_its_reason_and_the_others_are_in(
    project: CrawlProject, scripted_solr: ScriptedSolr
) -> None:
    bad = project.site.url(HOST, "/beta.html")
    scripted_solr.script = [_solr(tolerant({urls.document_id("demo", bad): "the field is immense"}))]
    use(project, scripted_solr.core_url)

    first, second = project.crawl(), project.crawl()
    failed = project.lines("urls", "demo", "--state", "failed")
    project.site.set_page(HOST, "/beta.html", page("page beta", text="shorter"))
    scripted_solr.script = [_solr(good)]
    mended = project.crawl()

    assert (first.exit_code, first.status["documents"], first.counts["indexed"]) == (0, 4, 4)
    assert (second.exit_code, second.counts["indexed"]) == (0, 0)
    assert [(row["url"], row["in_index"]) for row in failed] == [(bad, False)]
    assert "the field is immense" in failed[0]["error"]
    assert (mended.exit_code, mended.status["documents"], mended.counts["indexed"]) == (0, 5, 1)


def test_i3_crawl_when_a_new_version_is_refused_then_the_known_one_stays_and_resend_tries_again(
    project: CrawlProject, scripted_solr: ScriptedSolr
) -> None:
    bad = project.site.url(HOST, "/beta.html")
    scripted_solr.script = [_solr(good)]
    use(project, scripted_solr.core_url)
    project.crawl()
    project.site.set_page(HOST, "/beta.html", page("page beta", text="immense"))
    scripted_solr.script = [_solr(tolerant({urls.document_id("demo", bad): "the field is immense"}))]

    refused, again = project.crawl(), project.crawl()
    row = next(each for each in project.lines("urls", "demo") if each["url"] == bad)
    scripted_solr.script = [_solr(good)]
    resent = project.ask("resend", "demo")
    warnings = project.ask("status", "demo")["warnings"]

    # That the scripted index has no documents to show is said as well.
    assert (refused.exit_code, refused.status["documents"], again.counts["indexed"]) == (0, 5, 0)
    assert [warning["code"] for warning in refused.status["warnings"]] == ["index_unusable", "refused"]
    assert (row["state"], row["in_index"]) == ("failed", True)
    assert "the field is immense" in row["error"]
    assert (resent["documents"], resent["failed"]) == (5, 0)
    assert [warning["code"] for warning in warnings] == ["index_unusable"]


def test_i1_crawl_when_the_cache_is_full_and_solr_stays_away_then_it_ends_and_the_next_run_goes_on(
    site: SiteProcess, tmp_path: Path
) -> None:
    set_chain(site, "chain.acme.test", CHAIN)
    project = new_project(tmp_path, site, **source(site, "chain.acme.test"))
    full = {"threshold_mb": 0.001, "max_gb": 0.000001}
    away = absent_index()
    configure(tmp_path, index=away, cache=full)

    ended = project.crawl(*HURRY)
    configure(tmp_path)
    back = project.crawl()

    assert (ended.exit_code, ended.status["run"]["end_reason"]) == (6, "index_away")
    assert 0 < ended.status["waiting"] < CHAIN
    assert (back.exit_code, back.status["waiting"], back.status["documents"]) == (0, 0, CHAIN + 1)


def _solr(*steps: Step) -> Step:
    """A core of ours that answers its n-th update with documents by the n-th of ``steps``, all further by the last."""
    left = list(steps)

    def answer(exchange: Exchange, request: Received) -> None:
        if request.path.endswith("/schema/fields"):
            fields = [{"name": name} for name in REQUIRED_FIELDS]
            exchange.send(200, orjson.dumps({"responseHeader": {"status": 0}, "fields": fields}))
        elif isinstance(request.body, list):
            (left.pop(0) if len(left) > 1 else left[0])(exchange, request)
        else:
            good(exchange, request)

    return answer


def damage(project: CrawlProject) -> str:
    next((project.folder / "var" / "index").glob("*.store")).unlink()
    return "index.path"


def name_no_index(project: CrawlProject) -> str:
    """Names an address at which a web site is, and no Solr."""
    use(project, f"http://127.0.0.1:{project.site.port}/solr/search")
    return "index.url"


def name_nothing(project: CrawlProject) -> str:
    """Names an address at which nothing answers: it may do so again soon."""
    use(project, f"http://127.0.0.1:{free_port()}/solr/search")
    return ""


def warned(status: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["code"], each["message"]) for each in status["warnings"]]


@pytest.mark.parametrize("happens", [damage, name_no_index, name_nothing])
def test_run_when_it_has_nothing_to_send_and_the_index_is_none_then_it_and_status_warn(
    project: CrawlProject, happens: Callable[[CrawlProject], str]
) -> None:
    before = project.crawl()

    key = happens(project)
    after = project.crawl()
    status = project.ask("status", project.name)

    assert warned(before.status) == []
    assert after.exit_code == 0
    assert warned(after.status) == warned(status)
    assert [code for code, _ in warned(status)] == ["index_unusable"] * bool(key)
    assert all(key in message for _, message in warned(status))


@dataclass(slots=True)
class StalledSolr:
    """A core that takes its first documents and does not answer until it is released."""

    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def __call__(self, exchange: Exchange, request: Received) -> None:
        self.reached.set()
        self.released.wait(100)
        good(exchange, request)


@pytest.fixture
def stalled() -> Iterator[tuple[StalledSolr, str]]:
    step = StalledSolr()
    with ScriptedSolr(script=[_solr(step)]) as solr:
        yield step, solr.core_url
        step.released.set()


def begun(forks: Forks, project: CrawlProject, url: str, **cache: float) -> Running:
    configure(project.folder, index={"type": "solr", "url": url}, cache=cache)
    project.site.clear_log()
    return forks.start(project.folder, "crawl", "demo")


@pytest.mark.extended
def test_c1_index_when_it_stalls_then_fetching_goes_on_to_the_end(
    forks: Forks, site: SiteProcess, stalled: tuple[StalledSolr, str], tmp_path: Path
) -> None:
    step, url = stalled
    set_chain(site, STALLED, PAGES)
    project = new_project(tmp_path, site, **source(site, STALLED))

    with started(begun(forks, project, url, threshold_mb=0.001)) as running:
        running.until(step.reached.is_set)
        running.until(lambda: len(site.requested()) == PAGES + 1)
        unanswered = not step.released.is_set()
        step.released.set()
        code = running.wait()

    assert unanswered
    assert code == 0
    assert {row["indexed_version"] is not None for row in project.rows().values()} == {True}


@pytest.mark.extended
def test_c1_index_when_it_stalls_and_the_cache_is_full_then_fetching_waits_for_it(
    forks: Forks, site: SiteProcess, stalled: tuple[StalledSolr, str], tmp_path: Path
) -> None:
    step, url = stalled
    # Each page waits for a delivery then: the end of the chain is enough.
    set_chain(site, STALLED, PAGES)
    project = new_project(tmp_path, site, **source(site, STALLED, f"/{PAGES - LAST}"))

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
