"""What the integration tests share: receivers of the scripted and of the real Solr."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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
