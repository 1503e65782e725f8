"""The power fails at every failpoint that a run reaches, and at syncs: what was not synced is lost, and nothing else.

The next run ends where an undisturbed one does. It asks for nothing again but what was in hand, and the run after it
sends nothing; ``verify`` finds no difference between store and index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from tests import kill_rounds, kill_site, power_loss, power_rounds
from tests.crawl_forks import Forks
from tests.kill_rounds import Cut
from tests.power_rounds import PowerKind
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

#: It comes every five seconds, in longer runs only.
_BEAT: Final = "lease.renew"
#: One loss in each start, in the order in which a run passes them: each start recovers from the one before it.
_CHAIN: Final = (
    "tables.mid lease.taken fetch.sent:3 fetch.headers segment.append:2 segment.append.mid links.mid:4 segment.synced"
    " row.updated links.committed batch.sealed:2 batch.post.begin batch.post.mid index.acked batch.marked commit.sent"
    " delete.selected delete.sent delete.marked shutdown.begin shutdown.drain"
)
#: What is decided once, when nothing more comes.
_LAST_CHAIN: Final = "blocks.frozen closing.step languages.frozen near.signed near.resolved anchors.frozen"
_FORGETFUL_CHAIN: Final = "cache.freed batch.marked commit.sent"
#: Of hundreds of passings (requests, records) not all are tried.
_SOAK_PASSINGS: Final = 10
#: Tests that share the rounds of a way: together they take hours.
_PIECES: Final = 6


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, part_missing: Callable[[str], NoReturn]) -> Path:
    if power_loss.find_compiler() is None:
        part_missing("not installed: a C compiler (cc)")
    return power_loss.build_recorder(tmp_path_factory.mktemp("recorder"))


@pytest.fixture(scope="module")
def forks(library: Path) -> Iterator[Forks]:
    with Forks(1, preload=library) as forks:
        yield forks


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    kill_site.fill(site)
    return site


Rounds = Callable[..., PowerKind]


@pytest.fixture(scope="module")
def rounds(forks: Forks, library: Path, site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> Rounds:
    """Makes first crawls of ``pages`` generated pages and all others of the site."""

    def build(name: str, *, pages: int = 12, cache: dict[str, Any] | None = None, **more: Any) -> PowerKind:
        plain = kill_rounds.initial(forks, site, tmp_path_factory.mktemp(name), cache=cache, pages=pages)
        kind = PowerKind(
            forks,
            site,
            plain.folder,
            plain.prepare,
            plain.source,
            exact=plain.exact,
            verifies=True,
            library=library,
            **more,
        )
        kind.reference(name)
        return kind

    return build


def test_initial_crawl_when_the_power_fails_at_each_failpoint_then_ends_as_if_undisturbed(rounds: Rounds) -> None:
    tried = {blow.partition(":")[0] for chain in (_CHAIN, _LAST_CHAIN) for blow in chain.split()}
    # On a busy machine copies may be found before they are sent, and nothing is removed.
    kinds = (rounds(f"undisturbed{number}") for number in range(3))
    kind = next((kind for kind in kinds if tried == kind.passed.keys() - {_BEAT}), None)
    assert kind is not None

    assert kind.rounds([Cut(tuple(_CHAIN.split()), name="each"), Cut(tuple(_LAST_CHAIN.split()), name="last")]) == []


@pytest.mark.soak
@pytest.mark.parametrize("piece", range(_PIECES))
@pytest.mark.parametrize("way", power_loss.WAYS)
def test_crawls_when_the_power_fails_at_all_passings_then_end_as_if_undisturbed(
    rounds: Rounds, way: str, piece: int
) -> None:
    kind = rounds(f"undisturbed-{way}-{piece}", pages=40, ways=(way,))
    cuts = kill_rounds.cuts(kind.passed, first=_SOAK_PASSINGS, skip=[_BEAT])

    assert kind.rounds(cuts[piece::_PIECES]) == []


@pytest.mark.soak
@pytest.mark.parametrize("piece", range(_PIECES))
@pytest.mark.parametrize("way", power_loss.WAYS)
def test_crawls_when_the_power_fails_at_syncs_then_end_as_if_undisturbed(rounds: Rounds, way: str, piece: int) -> None:
    kind = rounds(f"undisturbed-{way}-syncs-{piece}", pages=40, ways=(way,))

    assert kind.rounds(power_rounds.sync_cuts(range(1 + 3 * piece, int(kind.count_syncs() * 0.9), 3 * _PIECES))) == []


@pytest.mark.soak
def test_crawl_that_preserves_nothing_when_the_power_fails_then_ends_as_if_undisturbed(rounds: Rounds) -> None:
    forgetful = rounds("forgetful", cache={"threshold_mb": 0.1, "preserve": False}, ways=power_loss.WAYS)
    assert "cache.freed" in forgetful.passed

    lines = forgetful.rounds(kill_rounds.chains([_FORGETFUL_CHAIN], forgetful.passed))
    lines += forgetful.rounds(kill_rounds.cuts(forgetful.passed, first=3, skip=[_BEAT]))

    assert lines == []


@pytest.mark.soak
def test_maintenance_when_the_power_fails_at_each_failpoint_then_ends_as_if_undisturbed(
    forks: Forks, library: Path, tmp_path: Path
) -> None:
    with SiteProcess() as site:
        kill_site.fill(site)
        template = kill_site.project(tmp_path / "template", site, "demo")
        assert forks.run(template, "crawl", "demo") == 0
        kill_site.change(site)
        plain = kill_rounds.maintenance(forks, site, tmp_path, template)
        kind = PowerKind(
            forks, site, tmp_path, plain.prepare, "demo", verifies=True, library=library, ways=power_loss.WAYS
        )
        kind.reference()

        assert kind.rounds(kill_rounds.cuts(kind.passed, first=3, skip=[_BEAT])) == []


@pytest.mark.soak
def test_crawl_whose_cache_is_full_when_the_power_fails_around_compaction_then_ends_as_if_undisturbed(
    forks: Forks, library: Path, tmp_path: Path
) -> None:
    with SiteProcess() as site:
        plain = kill_rounds.with_full_cache(forks, site, tmp_path)
        kind = PowerKind(
            forks, site, tmp_path, plain.prepare, "demo", verifies=True, library=library, ways=power_loss.WAYS
        )
        kind.reference()
        points = ("segment.copied", "segment.moved", "cache.freed")
        others = kind.passed.keys() - {*points}

        assert kind.rounds(kill_rounds.cuts(kind.passed, first=5, skip=sorted(others))) == []
