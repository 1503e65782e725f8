"""kill -9 at each passing of each failpoint, and again while the next start recovers: the last one ends as if undisturbed.

For five kinds of crawls of a site with few pages, so that no passing is left out; with each store and each index (L10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests import kill_rounds, kill_site
from tests.crawl_forks import Forks
from tests.kill_rounds import Kind
from tests.site.client import SiteProcess

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


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks(kill_rounds.PROCESSES) as forks:
        yield forks


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
