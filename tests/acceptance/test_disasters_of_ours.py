"""Whatever happens to our clock, certificate or disk: each document is found by its phrase (D8, L3, X-S5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from tests import backends, live_pages
from tests.acceptance.support_project import new_project
from tests.certificates import DAY, write_certificate
from tests.crawl_forks import CLOCK
from tests.live_pages import HOST, LivePages
from tests.site.client import SiteProcess, configure
from tests.small_disk import may_mount, small_disk
from tests.tls_relay import TlsRelay

pytestmark = pytest.mark.extended

TO_THE_LAST: Final = ("-s", "SEARCHCRAWL_MIN_FREE_MB=0")
#: More than all of a project takes.
ROOM: Final = 60_000

of_files = pytest.mark.usefixtures("files_alone")


@pytest.fixture
def files_alone() -> None:
    """For tests of disks and locks."""
    if backends.current.postgres is not None or backends.current.solr is not None:
        pytest.skip("the store or the index is no file")


@pytest.fixture(scope="module", params=live_pages.SIZES, ids=str)
def crawled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePages]:
    with live_pages.crawled_once(tmp_path_factory.mktemp("crawled") / "project", request.param) as live:
        yield live


@pytest.fixture
def live(crawled: LivePages, tmp_path: Path) -> LivePages:
    return crawled.copy(tmp_path / "project")


def is_as_in_good_times(live: LivePages) -> bool:
    """After one run more all documents are found in their present text; nothing is left to be done."""
    live.heal()
    after = live.crawl()
    assert (after.exit_code, after.errors, live.wrong()) == (0, "", [])
    assert (after.status["quarantined"], after.status["waiting"], live.differences()) == (0, 0, "")
    return live.found_by_command(live.size - 1)


@pytest.mark.few(1)
@pytest.mark.parametrize("days", [(-1, -1, 0), (1, 0), (1, -1, 1), (0, 400, 0)])
def test_documents_when_the_clock_is_wrong_then_all_are_found(live: LivePages, days: tuple[int, ...]) -> None:
    for number in days:
        ended = live.crawl(**{CLOCK: str(number * 86_400)})
        assert (ended.exit_code, live.wrong(), live.differences()) == (0, [], "")

    assert is_as_in_good_times(live)


@pytest.mark.few(1)
@pytest.mark.parametrize("expired", [DAY * 3, DAY * 400])
def test_documents_when_the_certificate_expired_then_all_are_found(tmp_path: Path, expired: Any) -> None:
    good, old = (write_certificate(tmp_path, host=HOST, age=age) for age in (DAY * 0, expired))
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(good.read_bytes() + old.read_bytes())
    with SiteProcess() as site, TlsRelay(site.port, good) as relay:
        plain = live_pages.source(site)
        # The one that there is lists pages without TLS.
        start = {"urls": [f"https://{HOST}:{relay.port}/"], "sitemaps": "off"}
        told = {**plain, "start": start, "fetch": {**plain["fetch"], "ca_file": str(trusted)}}
        live = LivePages(new_project(tmp_path / "project", site, **told), 60)
        live.fill()
        first = live.crawl()
        before = live.wrong()
        relay.use(old)
        during = live.crawl()
        while_expired = (live.wrong(), live.differences(), {*live.project.codes().values()})
        relay.use(good)

        assert (first.exit_code, before, during.exit_code, while_expired) == (0, [], 8, ([], "", {962}))
        assert is_as_in_good_times(live)


@pytest.fixture(scope="module")
def mounting(part_missing: Callable[[str], NoReturn]) -> None:
    if not may_mount():
        part_missing("only root of this machine, with unshare and nsenter of util-linux, may mount small disks")


@of_files
@pytest.mark.few(1)
@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize(
    ("where", "free"), [("var/cache", 12), ("var/store", 40), ("var/index", 40), ("var/log", 0), ("var", 60)]
)
def test_documents_when_a_disk_is_full_then_all_are_found(
    live: LivePages, tmp_path: Path, where: str, free: int
) -> None:
    folder = live.project.folder
    (folder / "var" / "store").mkdir()
    for file in (folder / "var").glob("searchcrawl.db*"):
        file.rename(folder / "var" / "store" / file.name)
    configure(folder, store={"url": "sqlite:///var/store/searchcrawl.db"})
    live.change(range(0, live.size, 2))
    with small_disk(folder / where, ROOM) as disk:
        disk.fill()
        disk.leave(free)
        codes = [disk.searchcrawl(folder, "crawl", "demo", *TO_THE_LAST).returncode for _ in range(2)]
        full = live.inside(disk.copy(folder, tmp_path / "full"))
        disk.grow(ROOM)
        last = disk.searchcrawl(folder, "crawl", "demo", *TO_THE_LAST).returncode
        found = live.inside(disk.copy(folder, tmp_path / "found"))

    assert set(codes) <= ({7} if where != "var/log" else {0, 7})
    assert full.wrong(on_the_way=True) == []
    assert (last, found.wrong(), found.differences()) == (0, [], "")
    assert is_as_in_good_times(found)
