"""What the acceptance tests share: a test site, forked commands and told stories, for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.support_stories import Tell, told_together
from tests.crawl_forks import Forks
from tests.site.client import SiteProcess

#: Commands at once; a test that wants fewer starts fewer.
_AT_ONCE = 4


@pytest.fixture(scope="module")
def site() -> Iterator[SiteProcess]:
    """The test site, in its first stage; a file that has pages of its own sets them in a fixture of the same name."""
    with SiteProcess() as site:
        yield site


@pytest.fixture
def clean_site(site: SiteProcess) -> SiteProcess:
    """The same, without what earlier tests have set or asked for."""
    site.reset()
    site.clear_log()
    return site


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """Starts commands."""
    with Forks(_AT_ONCE) as forks:
        yield forks


@pytest.fixture(scope="module")
def tell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tell]:
    """Tells the ``STORIES`` of the file."""
    with told_together(request.module.STORIES, tmp_path_factory) as tell:
        yield tell
