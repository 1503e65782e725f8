"""Whatever a site answers for a day, or happens to certificate or disk: each document is found by its phrase, and again
in its present text (D4, D8, L3, L9, X-S5).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from tests import backends, live_pages
from tests.acceptance.support_project import new_project
from tests.certificates import DAY, write_certificate
from tests.live_pages import HOST, LivePages, document
from tests.site.client import SiteProcess, configure
from tests.small_disk import may_mount, small_disk
from tests.tls_relay import TlsRelay

pytestmark = pytest.mark.extended

Strike = Callable[[LivePages], None]

HTML: Final = {"Content-Type": "text/html"}
LOGIN: Final = (
    "<html><title>Sign in</title><body><h1>Sign in</h1><form method=post action=/login>"
    "Please sign in to see our sheets. <input name=user><input type=password name=password>{hidden}</form>{shown}"
)
BACK_SOON: Final = (
    "<html><title>Sheets</title><body><h1>We are back soon</h1><p>Our site is being repaired at the moment, and we are "
    "sorry for that. Please come again in an hour or two, or call us.</p>{hidden}{shown}"
)
NOT_HERE: Final = (
    "<html><title>Sheets</title><body><h1>Oh dear</h1><p>The page that you look for is not here, or not any more. "
    "Try the search, or begin at the start page of this site.</p>{hidden}{shown}"
)
#: What makes each answer another one: in no text, and in the text.
DIFFERENCES: Final = {
    "same": {"hidden": "", "shown": ""},
    "nonce": {"hidden": "<input type=hidden name=token value={nonce}>", "shown": "<p>Reference {nonce}</p>"},
    "date": {"hidden": "<!-- {moment} -->", "shown": "<footer>It is now {moment}.</footer>"},
}


@dataclass(frozen=True)
class Disaster:
    """What becomes of a site. ``codes`` are how each run may end while it is so; before each ``strike`` is called."""

    strike: Strike
    codes: tuple[set[int], ...]
    options: tuple[str, ...] = ()
    #: so many documents may have the text of the disaster until it is seen what it is
    free: int = 0
    #: so many of a hundred may go meanwhile: that is within the limits on deleting
    percent: int = 0


def _answers(body: str = "", *, status: int = 200, known: bool = True, **headers: str) -> Strike:
    """Every page that there is has this answer; others are 404."""

    def strike(live: LivePages) -> None:
        target = {name.replace("_", "-"): text.format(site=live.site.url(HOST, "")) for name, text in headers.items()}
        live.site.set_behaviour(HOST, status=status, body=body, headers={**HTML, **target}, known=known)

    return strike


def _below_start(body: str) -> Strike:
    """The same, but the start page is as always."""

    def strike(live: LivePages) -> None:
        _answers(body)(live)
        live.site.set_behaviour(HOST, path="/")

    return strike


def _headers(name: str, value: str) -> Strike:
    """Every page is as always, with one header more."""
    return lambda live: live.site.set_behaviour(
        HOST, headers={name: value.format(site=live.site.url(HOST, ""))}, known=True
    )


def _templates(head: str) -> Strike:
    """Every page, newly made each time, has this in its head."""

    def strike(live: LivePages) -> None:
        token = f"<meta name=token content={random.randrange(10**12)}>"
        full = head.format(site=live.site.url(HOST, "")) + token
        live.fill(lambda number, edition: document(number, edition, full), full)

    return strike


def _moved(live: LivePages) -> None:
    """Every page leads to the start page, for good."""
    _answers(status=301, Location="{site}/")(live)
    live.site.set_behaviour(HOST, path="/")


def _unlinked(live: LivePages) -> None:
    live.site.set_page(HOST, "/", live_pages.start_page(0))


def _sitemap(body: str | None, status: int = 200) -> Strike:
    """Nothing but the sitemap leads to the pages, and it is as it is; None: cut in its middle."""

    def strike(live: LivePages) -> None:
        _unlinked(live)
        whole = live_pages.sitemap(live.site, live.size)
        text = whole[: len(whole) // 2] if body is None else body
        live.site.set_page(HOST, "/sitemap.xml", text, content_type="application/xml", status=status)

    return strike


def _down(live: LivePages) -> None:
    live.site.down()


def _no_name(live: LivePages) -> None:
    plain = live_pages.source(live.site)
    live.project.edit(**{**plain, "fetch": {**plain["fetch"], "resolve": {}}})


def _robots(status: int, body: str = "") -> Strike:
    return lambda live: live.site.set_behaviour(HOST, path="/robots.txt", status=status, body=body)


EMPTY_SITEMAP: Final = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></urlset>'
#: So many known pages of a host may turn into one text.
FREE: Final = 10
FAILED: Final = {8}
HELD_BACK: Final = {9}
#: Where it is known what such an answer is: it fails. Where it is not: the change waits.
FAILED_OR_HELD_BACK: Final = {8, 9}
LIMITED: Final = {3, 8, 9}

DISASTERS: dict[str, Disaster] = {
    "down three times": Disaster(_down, (FAILED,) * 3),
    "no address": Disaster(_no_name, (FAILED,)),
    "robots 500": Disaster(_robots(500), (FAILED,)),
    "robots 429": Disaster(_robots(429), (FAILED,)),
    "robots forbids": Disaster(_robots(200, "User-agent: *\nDisallow: /\n"), (HELD_BACK | FAILED,)),
    "pages 503": Disaster(_answers(status=503), (FAILED,)),
    "pages 403": Disaster(_answers(status=403), (FAILED,)),
    "pages 404": Disaster(_answers(status=404), (HELD_BACK | FAILED, HELD_BACK | FAILED)),
    "pages 302 to a login": Disaster(_answers(status=302, Location="{site}/login"), (FAILED,)),
    "pages empty": Disaster(_answers(" "), ({0, 8},)),
    "seed lost its links": Disaster(_unlinked, ({0},)),
    "sitemap empty": Disaster(_sitemap(EMPTY_SITEMAP), ({0},)),
    "sitemap cut": Disaster(_sitemap(None), ({0},)),
    "sitemap gone": Disaster(_sitemap("", 404), ({0},)),
    "canonical in pages": Disaster(_templates("<link rel=canonical href=/>"), (HELD_BACK, HELD_BACK)),
    "canonical in headers": Disaster(_headers("Link", '<{site}/>; rel="canonical"'), (HELD_BACK | {0},) * 2),
    "noindex in pages": Disaster(_templates("<meta name=robots content=noindex>"), (HELD_BACK, HELD_BACK)),
    "noindex in headers": Disaster(_headers("X-Robots-Tag", "noindex"), (HELD_BACK, HELD_BACK)),
    "moved to start": Disaster(_moved, (HELD_BACK, HELD_BACK)),
    "limit, down": Disaster(_down, (LIMITED,) * 6, ("-a", "limit=20")),
    "limit, pages 503": Disaster(_answers(status=503), (LIMITED,) * 6, ("-a", "limit=20")),
    "limit, pages 404": Disaster(_answers(status=404), (LIMITED,) * 6, ("-a", "limit=20"), percent=10),
} | {
    f"{name}, {kind}": Disaster(_answers(body.format(**parts), known=known), (FAILED_OR_HELD_BACK,) * 2)
    for kind, parts in DIFFERENCES.items()
    for name, body, known in (
        ("login form", LOGIN, True),
        ("back soon", BACK_SOON, True),
        ("soft 404", NOT_HERE, False),
    )
}
DISASTERS |= {
    f"limit {limit}, {name}": Disaster(
        _answers(body.format(**DIFFERENCES[kind])),
        (LIMITED,) * 6,
        ("-a", f"limit={limit}"),
        FREE if limit < FREE else 0,
    )
    for limit, name, body, kind in (
        (20, "login form", LOGIN, "same"),
        (20, "login form with a nonce", LOGIN, "nonce"),
        (4, "back soon with a date", BACK_SOON, "date"),
    )
} | {
    f"all but the start page, {name}": Disaster(_below_start(body.format(**DIFFERENCES[kind])), ({0, 9},) * 2)
    for name, body, kind in (
        ("login form", LOGIN, "same"),
        ("login form with a nonce", LOGIN, "nonce"),
        ("back soon with a date", BACK_SOON, "date"),
    )
}


#: Left to the soak: like another one, or seldom.
VARIANTS: Final = (
    "robots 429", "robots forbids", "pages 403", "pages 302 to a login", "pages empty", "sitemap gone",
    "canonical in headers", "noindex in headers", "limit, pages 503", "limit, pages 404", "login form, date",
    "login form, same", "back soon, same", "back soon, nonce", "soft 404, date", "soft 404, nonce", "limit 20, login form", "limit 4, back soon with a date",
    "all but the start page, login form", "all but the start page, back soon with a date",
)  # fmt: skip


@pytest.fixture(scope="module", params=live_pages.SIZES, ids=str)
def crawled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePages]:
    with live_pages.crawled_once(tmp_path_factory.mktemp("crawled") / "project", request.param) as live:
        yield live


@pytest.fixture
def live(crawled: LivePages, tmp_path: Path) -> LivePages:
    return crawled.copy(tmp_path / "project")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] if name in VARIANTS else []) for name in DISASTERS]
)
def test_documents_when_a_disaster_meets_the_site_then_all_are_found_and_again_in_their_present_text(
    live: LivePages, name: str
) -> None:
    disaster = DISASTERS[name]
    missed = disaster.free + live.size * disaster.percent // 100
    for number, codes in enumerate(disaster.codes):
        disaster.strike(live)
        ended = live.crawl(*disaster.options)
        assert (number, live.wrong()[missed:]) == (number, [])
        assert (number, ended.exit_code in codes, ended.exit_code) == (number, True, ended.exit_code)
        assert live.differences() == ""

    live.heal()
    live.project.edit(**live_pages.source(live.site))
    if disaster.options:
        # The run that a limit ended goes on, and ends; it asks for no page twice.
        live.crawl()
    after = live.crawl()

    assert (after.exit_code, after.errors, live.wrong()) == (0, "", [])
    assert (after.status["quarantined"], after.status["waiting"], live.differences()) == (0, 0, "")
    assert live.found_by_command(live.size - 1)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["seed lost its links", "sitemap empty", "sitemap cut", "sitemap gone"])
def test_documents_when_orphans_are_deleted_and_what_names_them_is_lost_then_they_wait_until_it_is_back(
    live: LivePages, name: str
) -> None:
    orphans_leave = {**live_pages.source(live.site), "lifecycle": {"orphans": "delete"}}
    live.project.edit(**orphans_leave)
    for _ in range(2):
        DISASTERS[name].strike(live)
        lost = live.crawl()
        # The sitemap names them, and its list stays known until another one was read whole.
        code = 9 if name == "sitemap empty" else 0
        assert (lost.exit_code, live.wrong(), live.differences()) == (code, [], "")

    live.heal()
    live.project.edit(**orphans_leave)
    after = live.crawl()

    assert (after.exit_code, after.status["quarantined"], live.wrong(), live.differences()) == (0, 0, [], "")


TO_THE_LAST: Final = ("-s", "SEARCHCRAWL_MIN_FREE_MB=0")
#: More than all of a project takes.
ROOM: Final = 60_000

of_files = pytest.mark.usefixtures("files_alone")


@pytest.fixture
def files_alone() -> None:
    """For tests of disks and locks."""
    if backends.current.postgres is not None or backends.current.solr is not None:
        pytest.skip("the store or the index is no file")


def is_as_in_good_times(live: LivePages) -> bool:
    """After one run more all documents are found in their present text; nothing is left to be done."""
    live.heal()
    after = live.crawl()
    assert (after.exit_code, after.errors, live.wrong()) == (0, "", [])
    assert (after.status["quarantined"], after.status["waiting"], live.differences()) == (0, 0, "")
    return live.found_by_command(live.size - 1)


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
