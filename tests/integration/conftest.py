"""What the integration tests share: a real Solr, one process for all of them and a fresh core for each."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from searchcrawl.index.solr_receiver import SolrReceiver
from tests.scripted_solr import ScriptedSolr
from tests.solr_server import QUICK_START, PartMissing, RunningSolr, start_solr


@pytest.fixture(scope="session")
def solr_server(
    tmp_path_factory: pytest.TempPathFactory, part_missing: Callable[[str], NoReturn]
) -> Iterator[RunningSolr]:
    """A real Solr; a test that kills it starts it again."""
    try:
        solr = start_solr(tmp_path_factory.mktemp("solr"), jvm_options=QUICK_START)
    except PartMissing as error:
        part_missing(str(error))
    with solr:
        yield solr


@pytest.fixture
def solr_core(solr_server: RunningSolr) -> Iterator[str]:
    """The URL of an empty core (what ``index.url`` names)."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield solr_server.create_core(name)
    solr_server.delete_core(name)


@pytest.fixture
def scripted_solr() -> Iterator[ScriptedSolr]:
    """A server that answers as a test tells it."""
    with ScriptedSolr() as server:
        yield server


@pytest.fixture
def scripted_receiver(scripted_solr: ScriptedSolr) -> Iterator[SolrReceiver]:
    """A receiver of the scripted server, which waits a second at most."""
    receiver = SolrReceiver(scripted_solr.url, timeout_seconds=1, max_answer_bytes=100_000)
    yield receiver
    receiver.close()


@pytest.fixture
def solr_receiver(solr_core: str) -> Iterator[SolrReceiver]:
    """A receiver of an empty core of the real Solr."""
    receiver = SolrReceiver(solr_core, timeout_seconds=30)
    yield receiver
    receiver.close()
