"""One crawl through the fetch stage alone, as a process (``tests.crawl_forks``): a job as JSON on stdin, what came of it on stdout.

The job: ``urls`` (each visited as a claimed row, as written or, with ``resolve_first``, as its
identity), ``dns`` (host → addresses, for all others DNS
fails), and ``fetch`` and ``robots`` with keys of a source file.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import Response
from twisted.python.failure import Failure

from searchcrawl import urls
from searchcrawl.addon import COMPONENTS
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.composition import add_fetching
from searchcrawl.convert.archive_middleware import ArchiveMiddleware
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.http.replay_middleware import ReplayMiddleware
from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.items import Claim
from searchcrawl.kind import WEB
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.rewriting import Rewriting
from searchcrawl.sources.config import Fetch, Keep, Robots, Scope, Start
from searchcrawl.sources.fetch_tables import Login, Render
from searchcrawl.sources.project import Project
from searchcrawl.stages import Stages

#: Of this process; set when it runs.
JOB: dict[str, Any] = {}
LOOKUPS: dict[str, int] = {}


def fake_getaddrinfo(host: Any, port: Any, family: int = 0, kind: int = 0, proto: int = 0, flags: int = 0) -> list[Any]:
    """DNS without a network: literals as they are, names as the job says."""
    name = host.decode() if isinstance(host, bytes) else str(host)
    LOOKUPS[name] = LOOKUPS.get(name, 0) + 1
    addresses = JOB.get("dns", {}).get(name.lower().rstrip("."))
    if addresses is None:
        return real_getaddrinfo(host, port, family, kind, proto, socket.AI_NUMERICHOST)
    return [
        (
            socket.AF_INET6 if ":" in address else socket.AF_INET,
            socket.SOCK_STREAM,
            6,
            "",
            (address, port, 0, 0) if ":" in address else (address, port),
        )
        for address in addresses
    ]


real_getaddrinfo = socket.getaddrinfo

HANDLER = "searchcrawl.http.download_handler.GuardedHandler"
SETTINGS: dict[str, Any] = {
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "DOWNLOAD_VERIFY_CERTIFICATES": True,
    "DOWNLOADER_MIDDLEWARES_BASE": {},
    # As they are wired in earnest: their order matters. A replay and files of archives request nothing.
    "DOWNLOADER_MIDDLEWARES": {
        component: number
        for component, number in COMPONENTS["DOWNLOADER_MIDDLEWARES"]
        if component not in {ReplayMiddleware, ArchiveMiddleware}
    },
    "SPIDER_MIDDLEWARES_BASE": {},
    "LOG_LEVEL": "WARNING",
}


class NotingRateLimiter(RateLimiter):
    """Lets every request go at once, and notes it."""

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.delays: dict[str, float] = {}

    async def wait_until_allowed(self, host: str) -> None:
        self.turns.append(host)

    def set_crawl_delay(self, host: str, *, delay_seconds: float, starts: bool = True) -> None:
        self.delays[host] = delay_seconds

    def pause(self, host: str, *, seconds: float) -> None:
        self.delays[host] = seconds


class VisitingSpider(Spider):
    """Visits each URL of the job once, and follows each meta refresh it sees."""

    name = "visiting"
    visits: list[dict[str, Any]] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> VisitingSpider:
        spider = super().from_crawler(crawler, *args, **kwargs)
        robots = Robots(**JOB.get("robots", {}))
        run: Any = SimpleNamespace(
            source=SimpleNamespace(
                kind=WEB,
                forgotten=(),
                fetch=Fetch(**JOB.get("fetch", {})),
                robots=robots,
                obeys_robots=robots.obey,
                keep=Keep(),
                login=Login(**JOB.get("login", {})),
                render=Render(),
                scope=Scope(allow_all=True),
                start=Start(urls=JOB["urls"][:1]) if "login" in JOB else Start(),
            ),
            project=Project(root=Path.cwd(), contact="crawl@example.test"),
            index_filter=None,
            boundary=Boundary(**JOB.get("scope", {"allow_all": True})),
            rewriting=Rewriting(),
            row=SimpleNamespace(horizon_ms=0),
            read=lambda work: None,
            write=lambda work: None,
        )
        spider.stages = stages = Stages()  # type: ignore[attr-defined]
        traps = TrapWatch(1, trap_after=0, max_urls_per_pattern=0)
        add_fetching(stages, crawler, run, NotingRateLimiter(), traps)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        for number, url in enumerate(JOB["urls"]):
            for request in self.requests(url, number):
                yield request

    def requests(self, url: str, number: int) -> Iterator[Request]:
        verbatim = bool(JOB.get("resolve_first"))
        try:
            target = urls.resolve(url) if verbatim else url
            claim = Claim(url_id=number, url=target, host_id=1, depth=1, **JOB.get("claim", {}))
            meta = {"claim": claim, "wanted": url, "verbatim_url": verbatim}
            yield Request(target, self.page, errback=self.ended, meta=meta, dont_filter=True)
        except (InvalidUrl, ValueError) as error:
            self.visits.append({"wanted": url, "code": 1004, "error": str(error)})

    def page(self, response: Response) -> Iterator[Request]:
        size = len(response.body)
        self.visits.append({"wanted": response.meta["wanted"], "code": response.status, "bytes": size})
        mark = b'http-equiv="refresh" content="0;url='
        if mark in response.body:
            target = response.body.split(mark)[1].split(b'"')[0].decode()
            yield from self.requests(target, 10_000)

    def ended(self, failure: Failure) -> None:
        wanted = failure.request.meta["wanted"]  # type: ignore[attr-defined]
        error = failure.value
        if isinstance(error, VisitEnded):
            outcome = asdict(error.outcome)
            outcome["redirects"] = [list(hop) for hop in error.outcome.redirects]
            self.visits.append(outcome | {"wanted": wanted})
        else:
            self.visits.append({"wanted": wanted, "code": None, "error": repr(error)})


def read_memory_mb(name: str) -> float:
    """``VmRSS`` is what this program has, ``VmHWM`` the most that it had; getrusage tells of the parent's where it was larger."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) / 1024


def main() -> None:
    """Runs the job, where nothing was looked up yet."""
    at_start = read_memory_mb("VmRSS")
    JOB.update(json.load(sys.stdin))
    socket.getaddrinfo = fake_getaddrinfo  # type: ignore[assignment]
    handlers = {"http": HANDLER, "https": HANDLER, "data": None, "file": None, "ftp": None, "s3": None}
    process = CrawlerProcess({**SETTINGS, **JOB.get("settings", {}), "DOWNLOAD_HANDLERS": handlers})
    crawler = process.create_crawler(VisitingSpider)
    process.crawl(crawler)
    process.start()
    noted = crawler.spider.stages.get(RateLimiter)  # type: ignore[union-attr]
    answer = {
        "visits": VisitingSpider.visits,
        "turns": noted.turns,
        "delays": noted.delays,
        "lookups": LOOKUPS,
        # Beyond the modules, of which there are more each year.
        "grown_mb": read_memory_mb("VmHWM") - at_start,
    }
    sys.stdout.write(json.dumps(answer, default=str))
