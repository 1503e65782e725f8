"""The runs: (a) the peer, (b) searchcrawl to Solr, (c) to the local index, (d) again, (e) to (h) other peers.

(p) is (b) with several processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparing import Comparison, compare, compare_plain, document_count, documents_of, documents_received
from benchmarks.measured import PYTHON, Cost, run_measured
from benchmarks.nginx_server import Asked, Site
from benchmarks.searchcrawl_project import Project
from benchmarks.wget_pages import html_pages, identity
from tests.solr_server import RunningSolr


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A measured run; ``pages`` are distinct HTML pages answered with 200 or 304, ``received`` what Solr was sent.

    ``repeated`` counts the answers with a page that had been fetched before in the run.
    """

    name: str
    cost: Cost
    pages: int
    requests: int
    documents: int
    received: int = 0
    repeated: int = 0
    comparison: Comparison | None = None
    bodies: int = 0

    @property
    def pages_per_second(self) -> float:
        """Of the whole process, from start to exit."""
        return self.pages / self.cost.wall_seconds

    @property
    def cpu_ms_per_page(self) -> float:
        """User and system time of the process and its children."""
        return self.cost.cpu_seconds * 1000 / max(self.pages, 1)


class Bench:
    """One round over ``site`` with ``solr``; ``pages`` is wget's set, ``folder`` takes projects and logs."""

    def __init__(
        self, *, site: Site, solr: RunningSolr, pages: set[str], folder: Path, number: int, in_flight: int
    ) -> None:
        self.site = site
        self.solr = solr
        self.pages = pages
        self.folder = folder
        self.number = number
        self.in_flight = in_flight
        self._project: Project | None = None
        self._core_url = ""

    def plain_scrapy(self) -> Run:
        """(a) Plain Scrapy into a core of its own."""
        return self.peer("a", "plain Scrapy + pysolr", [PYTHON, "-m", "benchmarks.plain_scrapy"])

    def peer(self, letter: str, name: str, command: Sequence[str]) -> Run:
        """A peer into a core of its own, which is removed afterwards; a failing one ends the benchmark."""
        core = f"peer_{letter}{self.number}"
        core_url = self.solr.create_core(core)
        own_folder = self.folder / letter
        own_folder.mkdir()
        mark = self.site.mark()
        arguments = [self.site.root_url, core_url, str(self.in_flight), str(own_folder)]
        output = self.folder / f"{letter}.out"
        cost = run_measured([*command, *arguments], cwd=own_folder, output=output)
        if cost.exit_code != 0:
            errors = output.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
            raise SystemExit(f"bench: {name} ended with {cost.exit_code}\n{errors[-2000:]}")
        asked = self.site.asked_since(mark)
        run = Run(
            name=f"{letter}  {name}",
            cost=cost,
            pages=len(html_pages(self.site, asked)),
            requests=len(asked),
            documents=document_count(core_url),
            received=documents_received(core_url),
            repeated=self._repeated(asked),
            comparison=compare_plain(self.pages, documents_of(core_url)),
        )
        self.solr.delete_core(core)
        return run

    def searchcrawl_to_solr(self) -> Run:
        """(b) Everything on, into a core of its own, compared with wget's pages."""
        self._core_url = self.solr.create_core(f"searchcrawl{self.number}")
        self._project = self._project_of("b", self._core_url)
        return self._crawl("b", "searchcrawl to Solr", self._project, self._core_url)

    def searchcrawl_in_processes(self, processes: int) -> Run:
        """(p) The same with several processes, into a core that is removed afterwards."""
        core = f"processes{self.number}"
        core_url = self.solr.create_core(core)
        project = self._project_of("p", core_url)
        run = self._crawl("p", f"searchcrawl to Solr, {processes} processes", project, core_url, processes=processes)
        self.solr.delete_core(core)
        return run

    def _crawl(self, letter: str, name: str, project: Project, core_url: str, *, processes: int = 1) -> Run:
        mark = self.site.mark()
        crawled = project.crawl(self.folder / f"{letter}.out", processes=processes)
        asked = self.site.asked_since(mark)
        return Run(
            name=f"{letter}  {name}",
            cost=crawled.cost,
            pages=len(html_pages(self.site, asked)),
            requests=len(asked),
            documents=document_count(core_url),
            received=documents_received(core_url),
            repeated=self._repeated(asked),
            comparison=compare(self.pages, documents_of(core_url), project.list_urls()),
        )

    def searchcrawl_to_local(self) -> Run:
        """(c) The same into the embedded index."""
        project = self._project_of("c", None)
        mark = self.site.mark()
        crawled = project.crawl(self.folder / "c.out")
        asked = self.site.asked_since(mark)
        return Run(
            name="c  searchcrawl to the local index",
            cost=crawled.cost,
            pages=len(html_pages(self.site, asked)),
            requests=len(asked),
            documents=crawled.status["documents"],
            repeated=self._repeated(asked),
        )

    def searchcrawl_again(self) -> Run:
        """(d) A second run of (b): conditional requests alone, nothing sent."""
        if self._project is None:
            raise SystemExit("bench: (d) is a second run of (b)")
        received = documents_received(self._core_url)
        mark = self.site.mark()
        crawled = self._project.crawl(self.folder / "d.out")
        asked = self.site.asked_since(mark)
        return Run(
            name="d  searchcrawl again, nothing changed",
            cost=crawled.cost,
            pages=len({identity(self.site, one) for one in asked if one.status == 304} & self.pages),
            requests=len(asked),
            documents=document_count(self._core_url),
            received=documents_received(self._core_url) - received,
            comparison=compare(self.pages, documents_of(self._core_url), self._project.list_urls()),
            bodies=self._page_bodies(asked),
        )

    def _project_of(self, letter: str, core_url: str | None) -> Project:
        return Project.create(
            self.folder / letter, start_url=self.site.root_url, core_url=core_url, in_flight=self.in_flight
        )

    def _repeated(self, asked: list[Asked]) -> int:
        """Answers with an HTML page beyond the first of each."""
        answers = sum(one.status == 200 and one.mime_type == "text/html" for one in asked)
        return answers - len(html_pages(self.site, asked))

    def _page_bodies(self, asked: list[Asked]) -> int:
        """Answers that carried a page's body."""
        return sum(one.status != 304 and identity(self.site, one) in self.pages for one in asked)
