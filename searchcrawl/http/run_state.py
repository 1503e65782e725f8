"""What the fetch stage needs to know of the run: found on the spider as ``run``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar, cast
from urllib.parse import urlsplit

from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.proxy_route import ProxyRoute
from searchcrawl.items import Claim
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import Decision
from searchcrawl.rules.index_filter import IndexFilter
from searchcrawl.rules.rewriting import Rewriting
from searchcrawl.run import RobotsRules
from searchcrawl.sources.fetch_table import TlsFiles
from searchcrawl.store.engine.database import Transaction

T = TypeVar("T")


class FetchSettings(Protocol):
    """The ``[fetch]`` table of a source (interface.md §1)."""

    @property
    def timeout_seconds(self) -> float: ...
    @property
    def max_bytes(self) -> int: ...
    @property
    def max_redirects(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def resolve(self) -> Mapping[str, object]: ...
    @property
    def verify_certificates(self) -> bool: ...
    def tls_files(self, root: Path) -> TlsFiles:
        """The files for TLS; relative paths start at ``root``."""

    @property
    def proxy(self) -> str | None: ...
    @property
    def private_networks(self) -> Iterable[object]: ...


class RobotsSettings(Protocol):
    """The ``[robots]`` table of a source."""

    @property
    def obey(self) -> bool: ...
    @property
    def user_agent(self) -> str | None: ...
    @property
    def crawl_delay(self) -> bool: ...
    @property
    def max_crawl_delay_seconds(self) -> float: ...


class KeepSettings(Protocol):
    """The ``[keep]`` table of a source, as far as a 304 is judged by it."""

    @property
    def meta_robots(self) -> bool: ...


class Source(Protocol):
    """A source file, as far as fetching goes."""

    @property
    def fetch(self) -> FetchSettings: ...
    @property
    def robots(self) -> RobotsSettings: ...
    @property
    def keep(self) -> KeepSettings: ...


class Project(Protocol):
    """Who asks, and where the paths of its files start."""

    @property
    def user_agent(self) -> str: ...
    @property
    def user_agent_header(self) -> str: ...
    @property
    def root(self) -> Path: ...


class Politeness(Protocol):
    """The host table's clock."""

    async def wait_until_allowed(self, origin: str) -> None:
        """Waits until ``host:port`` may be asked once more, and books that request."""

    def set_crawl_delay(self, origin: str, *, delay_seconds: float) -> None:
        """The robots.txt of ``host:port`` asks for at least so long between requests (Crawl-delay)."""

    async def acquire_host(self, origin: str) -> None:
        """Waits until the robots.txt of ``host:port`` may be asked for under the cap on sites."""

    def release_host(self, origin: str) -> None:
        """That robots.txt was had."""

    def pause(self, origin: str, *, seconds: float) -> None:
        """Asks nothing of ``host:port`` for so long (Retry-After)."""

    def start_delay(self, origin: str) -> None:
        """A request to ``host:port`` is over: its delay begins now."""


class Traps(Protocol):
    """Patterns of URLs that are cut."""

    def refusal(self, claim: Claim) -> Decision | None:
        """Why a claimed row is not to be requested."""


class Wires(Protocol):
    """Where the fetch stage tells and asks (``searchcrawl.run.Wires``)."""

    robots_of: Callable[[str], Awaitable[RobotsRules]] | None

    @property
    def traps(self) -> Traps | None: ...
    @property
    def robots_read(self) -> Sequence[Callable[[str, Sequence[str]], None]]: ...


class Row(Protocol):
    """The row of a run."""

    @property
    def horizon_ms(self) -> int:
        """When the run, or the one that it goes on with, began."""


class Store(Protocol):
    """A run, as far as its store goes."""

    @property
    def row(self) -> Row: ...
    def read(self, work: Callable[[Transaction], T]) -> T:
        """What ``work`` answers in a reading transaction."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """What ``work`` answers in a writing transaction."""


class Run(Store, Protocol):
    """One run over one source."""

    @property
    def source(self) -> Source: ...
    @property
    def project(self) -> Project: ...
    @property
    def boundary(self) -> Boundary: ...
    @property
    def index_filter(self) -> IndexFilter | None: ...
    @property
    def rewriting(self) -> Rewriting: ...
    @property
    def politeness(self) -> Politeness | None: ...
    @property
    def wires(self) -> Wires: ...


def run_of(spider: object) -> Run:
    """The run of a spider; AttributeError for a spider of another make."""
    return cast(Run, spider.run)  # type: ignore[attr-defined]


def guard_of(run: Run) -> AddressGuard:
    """The policy on addresses of the run's source."""
    fetch = run.source.fetch
    host = urlsplit(fetch.proxy).hostname if fetch.proxy else None
    return AddressGuard(private_networks=fetch.private_networks, resolve=fetch.resolve, proxy_host=host)


def proxy_of(run: Run) -> ProxyRoute | None:
    """The proxy of the run's source, None where there is none."""
    fetch = run.source.fetch
    if not fetch.proxy:
        return None
    return ProxyRoute(fetch.proxy, AddressGuard(private_networks=fetch.private_networks, resolve=fetch.resolve))
