"""kill -9 at every failpoint that a run reaches, and at random moments: the next run ends where an undisturbed one does.

Also that it asks for nothing again but what was in hand, and that the run after it sends nothing. The soak kills at each
passing of each failpoint, and again while the next start recovers, with each store and each index (L10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl import failpoints
from tests import kill_rounds, kill_site
from tests.acceptance.support_command_kills import OF_COMMANDS
from tests.crawl_forks import Forks
from tests.kill_rounds import Cut, Kind
from tests.kill_site import HOST
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

#: It comes every five seconds: in longer runs only, and not to be counted on. It has a test of its own.
_BEAT = "lease.renew"
#: What these crawls don't pass: documents went out before it was known what is on most pages (test_c8_whole_hosts.py).
_MARKED = ("blocks.marked", "languages.marked")
#: What only hosts pass whose pages share titles (test_c8_whole_hosts.py).
_TITLES = ("titles.frozen", "titles.marked")
#: What only sources that share copies pass (test_f4_shared_copies.py).
_SHARED = ("shared.resolved", "shared.listed")
FORGETFUL = {"threshold_mb": 0.1, "preserve": False}
#: Without what has no bearing on the index, which the initial crawl covers.
_SOLR_MAINTENANCE = ("delete.selected", "delete.sent", "delete.marked", "index.acked", "batch.marked", "commit.sent")

#: One kill in each start, then to the end: in the order in which a run passes them, so that each start recovers from
#: the kill before it. At the last passing of a run most is at stake; the soak tries each failpoint alone.
_CHAINS = (
    "tables.mid lease.taken fetch.sent:last fetch.headers",
    "segment.append:last segment.append.mid segment.synced row.updated",
    "links.mid:4 segment.append.mid:3 links.committed",
    "links.mid:last links.committed blocks.frozen languages.frozen anchors.frozen batch.sealed",
    "batch.sealed:last batch.post.begin batch.post.mid index.acked lease.taken batch.marked",
    "batch.sealed:2 batch.post.mid:2 commit.sent",
    "delete.selected delete.sent:last delete.marked shutdown.begin shutdown.drain",
    "near.signed near.resolved",
    "closing.step closing.step:last",
)
_MAINTENANCE_CHAINS = (
    "lease.taken fetch.sent fetch.headers segment.append",
    "segment.append.mid segment.synced row.updated links.mid",
    "links.committed blocks.frozen languages.frozen anchors.frozen batch.sealed batch.post.begin batch.post.mid",
    "index.acked batch.marked commit.sent shutdown.begin",
    "delete.selected delete.sent delete.marked shutdown.drain",
    "near.signed near.resolved closing.step:last",
)
#: Where store and index may come to differ: tried with each pair of both.
_MAIN = ("tables.mid row.updated links.mid links.committed", "batch.post.mid index.acked batch.marked")
_MAIN_MAINTENANCE = ("delete.sent delete.marked commit.sent",)
#: Around each step that takes superseded records out of a cache that is full.
_COMPACTING_CHAINS = (
    "segment.copied segment.moved cache.freed",
    "segment.moved:last cache.freed:last",
    "segment.copied:last",
)
#: What other tests kill.
_OF_OTHERS = (
    *(*failpoints.OF_TICKS, *failpoints.OF_NAMES, *failpoints.OF_FEEDS),
    *(*failpoints.OF_RECEIVERS, *failpoints.OF_LISTINGS, *failpoints.OF_LARGE_BODIES),
)
_FORGETFUL_CHAINS = ("cache.freed batch.marked commit.sent", "cache.freed:last batch.marked commit.sent")


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks(kill_rounds.PROCESSES) as forks:
        yield forks


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    """The site before it changes."""
    kill_site.fill(site)
    return site


@pytest.fixture(scope="module")
def initial(forks: Forks, site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> Kind:
    kind = kill_rounds.initial(forks, site, tmp_path_factory.mktemp("initial"))
    kind.reference()
    return kind


@pytest.fixture(scope="module")
def forgetful(forks: Forks, site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> Kind:
    """First crawls whose cache keeps nothing that the index has."""
    kind = kill_rounds.initial(forks, site, tmp_path_factory.mktemp("forgetful"), cache=FORGETFUL)
    kind.reference("undisturbed-forgetful")
    return kind


@pytest.fixture(scope="module")
def maintenance(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kind]:
    """Second crawls, of a site that changed."""
    with SiteProcess() as site:
        kill_site.fill(site)
        kind = kill_rounds.after_change(forks, site, tmp_path_factory.mktemp("maintenance"))
        kind.reference()
        yield kind


@pytest.fixture(scope="module")
def compacting(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kind]:
    """Third crawls whose cache was full after the second: for what changed since, superseded records have to go."""
    with SiteProcess() as site:
        kill_site.fill(site)
        kind = kill_rounds.with_full_cache(forks, site, tmp_path_factory.mktemp("compacting"))
        kind.reference()
        yield kind


def test_failpoints_when_runs_are_counted_then_each_is_passed(
    initial: Kind, forgetful: Kind, maintenance: Kind, compacting: Kind
) -> None:
    passed = {*initial.passed, *forgetful.passed, *maintenance.passed, *compacting.passed}

    assert set(failpoints.NAMES) - {_BEAT, *_MARKED, *_TITLES, *_SHARED, *OF_COMMANDS, *_OF_OTHERS} == passed - {_BEAT}


def test_initial_crawl_when_killed_at_each_failpoint_then_ends_as_if_undisturbed(initial: Kind) -> None:
    assert _names(_CHAINS) == initial.passed.keys() - {_BEAT}

    assert initial.rounds(kill_rounds.chains(_CHAINS, initial.passed)) == []


def test_maintenance_crawl_when_killed_at_each_failpoint_then_ends_as_if_undisturbed(maintenance: Kind) -> None:
    assert _names(_MAINTENANCE_CHAINS) == maintenance.passed.keys() - {_BEAT}

    assert maintenance.rounds(kill_rounds.chains(_MAINTENANCE_CHAINS, maintenance.passed)) == []


@pytest.mark.matrix
@pytest.mark.other_backends
def test_crawls_when_killed_at_the_main_failpoints_then_end_as_if_undisturbed(initial: Kind, maintenance: Kind) -> None:
    lines = initial.rounds(kill_rounds.chains(_MAIN, initial.passed))
    lines += maintenance.rounds(kill_rounds.chains(_MAIN_MAINTENANCE, maintenance.passed))

    assert lines == []


def test_crawl_that_preserves_nothing_when_killed_around_freeing_then_ends_as_if_undisturbed(forgetful: Kind) -> None:
    assert forgetful.rounds(kill_rounds.chains(_FORGETFUL_CHAINS, forgetful.passed)) == []


def test_crawl_whose_cache_is_full_when_killed_around_compaction_then_ends_as_if_undisturbed(compacting: Kind) -> None:
    assert compacting.rounds(kill_rounds.chains(_COMPACTING_CHAINS, compacting.passed)) == []


def test_crawl_when_killed_at_a_heartbeat_then_ends_as_if_undisturbed(initial: Kind) -> None:
    initial.site.set_behaviour(HOST, "/target.html", delay_seconds=8)

    lines = initial.cut_off(Cut((_BEAT,)))
    initial.site.set_behaviour(HOST, "/target.html", delay_seconds=0)
    lines += initial.resume(Cut((_BEAT,)))

    assert lines == []


def test_crawl_when_the_disk_is_full_or_the_store_fails_then_exit_7_and_recovers(initial: Kind) -> None:
    lines = initial.rounds(
        [
            Cut(("segment.append:20:enospc", "segment.synced:2:enospc"), code=7),
            Cut(("row.updated:3:raise", "links.mid:4:raise", "batch.marked:2:raise"), code=7),
        ]
    )

    assert lines == []


def _names(chains: Sequence[str]) -> set[str]:
    return {blow.partition(":")[0] for chain in chains for blow in chain.split()}


@pytest.mark.soak
@pytest.mark.solr
def test_crawl_into_solr_when_killed_at_each_failpoint_then_ends_as_if_undisturbed(
    forks: Forks, site: SiteProcess, solr_core: str, tmp_path: Path
) -> None:
    kind = kill_rounds.in_solr(forks, site, tmp_path, solr_core)
    kind.reference("undisturbed-solr")

    assert kind.rounds(kill_rounds.cuts(kind.passed, last=False, skip=[_BEAT])) == []


@pytest.mark.soak
@pytest.mark.solr
def test_maintenance_in_solr_when_killed_around_deliveries_then_ends_as_if_undisturbed(
    forks: Forks, solr_core: str, tmp_path: Path
) -> None:
    cuts = [Cut((name,)) for name in _SOLR_MAINTENANCE]
    with SiteProcess() as site:
        kill_site.fill(site)
        kind = kill_rounds.in_solr(forks, site, tmp_path, solr_core)
        with ThreadPoolExecutor(kill_rounds.PROCESSES) as pool:
            list(pool.map(kind.crawl, ["undisturbed", *(cut.name for cut in cuts)]))
        kill_site.change(site)
        site.clear_log()
        kind.reference()

        assert kind.rounds(cuts) == []


#: Tests that share the passings of a kind.
_PIECES: Final = 4
#: A cache of this size is full a few times in a crawl of so many generated pages.
_CACHE: Final = {"threshold_mb": 0.04}
_GENERATED: Final = 9
_KINDS: Final[dict[str, tuple[Callable[..., Kind], dict[str, Any]]]] = {
    "initial": (kill_rounds.initial, {}),
    "maintenance": (kill_rounds.after_change, {}),
    "forgetful": (kill_rounds.initial, {"preserve": False}),
    "forgetful_maintenance": (kill_rounds.after_change, {"preserve": False}),
    "compacting": (kill_rounds.with_full_cache, {}),
}


@pytest.fixture(scope="module", params=_KINDS)
def kind(request: pytest.FixtureRequest, forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kind]:
    """Crawls of one kind, of which one was not disturbed."""
    build, more = _KINDS[request.param]
    with SiteProcess() as site:
        kill_site.fill(site, few=True)
        folder = tmp_path_factory.mktemp(request.param)
        kind = build(forks, site, folder, cache={**_CACHE, **more}, pages=_GENERATED)
        kind.reference()
        yield kind


@pytest.mark.soak
@pytest.mark.pairs
@pytest.mark.parametrize("piece", range(_PIECES))
def test_crawl_when_killed_at_each_passing_and_again_during_recovery_then_ends_as_if_undisturbed(
    kind: Kind, piece: int
) -> None:
    assert kind.rounds(kill_rounds.cuts_at_any(kind.passed, first=piece + 1, step=_PIECES)) == []


@pytest.mark.soak
@pytest.mark.pairs
def test_crawl_when_killed_at_many_random_moments_then_ends_as_if_undisturbed(kind: Kind) -> None:
    assert kind.rounds(kill_rounds.random_cuts(20, kind.seconds, seed=len(kind.passed))) == []
