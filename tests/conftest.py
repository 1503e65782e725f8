"""What all tests share: how a missing part of the machine is reported, and one real Solr for all that need it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from tests.scripted_solr import ScriptedSolr
from tests.solr_server import QUICK_START, PartMissing, RunningSolr, start_solr


@pytest.fixture(scope="session")
def ci() -> bool:
    """Whether the tests run under CI, where nothing may be missing."""
    return os.environ.get("CI") == "true"


@pytest.fixture(scope="session")
def part_missing(ci: bool) -> Callable[[str], NoReturn]:
    """Ends a test whose system part is missing: a failure under CI, a skip with its reason elsewhere."""

    def report(reason: str) -> NoReturn:
        if ci:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    return report


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
