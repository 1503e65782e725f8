"""Many hosts in one crawl, some of which redirect in rings, are slow, ask for an hour, or are away (C2, C3, L6)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_outages import BACK, PATIENT, WAITING, log
from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_shared_hosts import at, gaps, sources_of
from tests.acceptance.support_stories import page
from tests.crawl_forks import LEASE, Forks, started
from tests.postgres_server import PASSWORD, USER, RunningPostgres
from tests.site.client import SiteProcess, configure
from tests.store_outages import CuttableProxy

DELAY_SECONDS: Final = 0.3
#: The site notes when it has read a request.
TOLERANCE_SECONDS: Final = 0.002
RING: Final = [f"ring{number}.acme.test" for number in range(9)]
GOOD: Final = [f"good{number}.acme.test" for number in range(24)]
SLOW: Final = [f"slow{number}.acme.test" for number in range(3)]
BUSY: Final = [f"busy{number}.acme.test" for number in range(3)]
AWAY: Final = [f"away{number}.acme.test" for number in range(3)]
PATHS: Final = ("/0.html", "/1.html", "/2.html")


def build(site: SiteProcess, folder: Path) -> CrawlProject:
    """Rings of three hosts each for each path, and hosts of the other sorts with three pages each."""
    for number, host in enumerate(RING):
        target = RING[number - 2 if number % 3 == 2 else number + 1]
        for path in PATHS:
            site.set_page(host, path, "", status=302, headers={"Location": site.url(target, path)})
    for host in (*GOOD, *SLOW, *BUSY, *AWAY):
        site.set_pages(host, {path: page(f"{host} {path}") for path in PATHS})
    for host in SLOW:
        site.set_behaviour(host, prefix="/", delay_seconds=1.0)
    for host in BUSY:
        for path in PATHS:
            site.set_behaviour(host, path, status=429, headers={"Retry-After": "3600"})
    for host in AWAY:
        site.set_behaviour(host, mode="reset")
    hosts = [*RING, *GOOD, *SLOW, *BUSY, *AWAY]
    fetch = {"delay_seconds": DELAY_SECONDS, "retries": 1, "concurrency": 32}
    return sources_of(site, folder, demo=at(site, hosts, *PATHS, **fetch))


@pytest.mark.matrix
def test_c2_hosts_when_some_are_rings_slow_busy_or_away_then_all_others_are_read_at_their_pace(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(site, tmp_path)
    site.clear_log()

    ended = project.crawl()

    codes = Counter[tuple[str, int]]()
    for url, code in project.codes().items():
        codes[url[:4], code] += 1
    assert ended.exit_code == 0, ended.errors
    assert codes["good", 200] == len(GOOD) * len(PATHS)
    assert codes["slow", 200] == len(SLOW) * len(PATHS)
    assert codes["ring", 963] == len(RING) * len(PATHS)
    assert codes["busy", 429] == len(BUSY) * len(PATHS)
    assert codes["away", 200] == 0
    for host in (*RING, *GOOD, *SLOW):
        assert min(gaps(site.log(host=host))) >= DELAY_SECONDS - TOLERANCE_SECONDS, host


@pytest.fixture
def proxy(postgres: RunningPostgres) -> Iterator[CuttableProxy]:
    with CuttableProxy(postgres.folder / ".s.PGSQL.5432") as proxy:
        yield proxy


@pytest.mark.extended
def test_c2_hosts_when_the_store_is_away_for_longer_than_a_lease_then_each_is_asked_on_at_its_pace(
    site: SiteProcess, forks: Forks, tmp_path: Path, postgres: RunningPostgres, proxy: CuttableProxy
) -> None:
    """The lease is a fifteenth of that of a real crawl, and the store away for two of them: a minute there."""
    paths = [f"/{number}.html" for number in range(10)]
    for host in GOOD:
        site.set_pages(host, {path: page(f"{host} {path}") for path in paths})
    project = sources_of(site, tmp_path, demo=at(site, GOOD, *paths, delay_seconds=DELAY_SECONDS, concurrency=32))
    database = f"hosts_{proxy.port}"
    postgres.create_database(database)
    configure(tmp_path, store={"url": f"postgresql+psycopg://{USER}:{PASSWORD}@127.0.0.1:{proxy.port}/{database}"})
    site.clear_log()

    with started(forks.start(tmp_path, "crawl", "demo", *PATIENT, **{LEASE: "2"})) as running:
        running.until(lambda: len(site.log()) > 3 * len(GOOD))
        proxy.cut()
        cut_at = time.time()
        running.until(lambda: WAITING in log(tmp_path) and time.time() > cut_at + 4.5)
        late = [entry["time"] for entry in site.log() if entry["time"] > cut_at + 3]
        proxy.restore()
        code = running.wait()

    assert code == 0
    # Nobody knows whether another process asks the hosts by now.
    assert late == []
    assert BACK in log(tmp_path)
    assert Counter(project.codes().values()) == {200: len(GOOD) * len(paths)}
    for host in GOOD:
        assert min(gaps(site.log(host=host))) >= DELAY_SECONDS - TOLERANCE_SECONDS, host
    postgres.drop_database(database)
