"""What the integration tests share: stores that a test fills, and receivers of the scripted and of the real Solr."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import SearchIndex
from searchcrawl.index.solr.receiver import SolrReceiver
from searchcrawl.scheduling import launching
from searchcrawl.sources.project import Project
from tests.filled_store import CachedStore, FilledStore
from tests.integration.support_ticking import World
from tests.page_wall import RunningBrowser


@pytest.fixture
def filled(tmp_path: Path, store_url: str) -> Iterator[FilledStore]:
    """A store of each kind with a run, for a test to fill."""
    store = FilledStore(tmp_path, store_url)
    yield store
    store.close()


@pytest.fixture
def cached(tmp_path: Path, store_url: str) -> Iterator[CachedStore]:
    """The same, whose documents have records in a cache."""
    store = CachedStore(tmp_path, store_url)
    yield store
    store.close()


@pytest.fixture
def solr_receiver(solr_core: str) -> Iterator[SolrReceiver]:
    """A receiver of an empty core of the real Solr."""
    receiver = SolrReceiver(solr_core, timeout_seconds=30)
    yield receiver
    receiver.close()


@pytest.fixture(params=["local", "solr"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SearchIndex]:
    """An empty index of each kind."""
    if request.param == "solr":
        yield request.getfixturevalue("solr_receiver")
        return
    receiver = LocalReceiver(tmp_path / "index")
    yield receiver
    receiver.close()


@pytest.fixture
def make(tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """Makes a project whose crawls are not real."""
    made: list[World] = []

    def start(project: Project, name: str, token: str) -> Any:
        made[-1].launched.append((name, token))
        return SimpleNamespace(pid=os.getpid(), poll=lambda: None)

    def build(**settings: Any) -> World:
        made.append(World(tmp_path, store_url, **settings))
        return made[-1]

    monkeypatch.setattr(launching, "start_process", start)
    yield build
    for world in made:
        world.database.close()


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBrowser]:
    """A browser that shows what a test gives it."""
    with RunningBrowser() as browser:
        yield browser
