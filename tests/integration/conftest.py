"""What the integration tests share: receivers of the scripted and of the real Solr."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import SearchIndex
from searchcrawl.index.solr.receiver import SolrReceiver
from tests.scripted_solr import ScriptedSolr


@pytest.fixture
def scripted_receiver(scripted_solr: ScriptedSolr) -> Iterator[SolrReceiver]:
    """A receiver of the scripted server, which waits two seconds at most."""
    receiver = SolrReceiver(scripted_solr.url, timeout_seconds=2, max_answer_bytes=100_000)
    yield receiver
    receiver.close()


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
