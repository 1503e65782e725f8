"""The power of a real Solr fails after its receipts: what it had not synced is lost, its documents are not (X-I8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from searchcrawl.index.solr.receiver import SolrReceiver
from tests import power_loss
from tests.index_documents import batch, document, when_up
from tests.power_loss import Disk
from tests.solr_server import QUICK_START, PartMissing, RunningSolr, start_solr

pytestmark = [pytest.mark.solr, pytest.mark.soak]

_LEVEL = '<str name="syncLevel">FSYNC</str>'


@pytest.fixture
def solr(tmp_path: Path, part_missing: Callable[[str], NoReturn]) -> RunningSolr:
    """A Solr with an empty core, not running."""
    try:
        solr = start_solr(tmp_path / "home", core="pages", jvm_options=QUICK_START)
    except PartMissing as error:
        part_missing(str(error))
    solr.stop()
    return solr


@pytest.mark.parametrize("level", ["FSYNC", "FLUSH"])
def test_i8_documents_when_the_power_fails_after_their_receipts_then_are_there(
    solr: RunningSolr,
    level: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    part_missing: Callable[[str], NoReturn],
) -> None:
    if power_loss.find_compiler() is None:
        part_missing("not installed: a C compiler (cc)")
    library = power_loss.build_recorder(tmp_path)
    config = solr.home / "configsets" / "searchcrawl" / "conf" / "solrconfig.xml"
    text = config.read_text("utf-8")
    assert _LEVEL in text
    config.write_text(text.replace(_LEVEL, _LEVEL.replace("FSYNC", level)), "utf-8")
    disk = Disk(library, solr.home, tmp_path / "disk")
    disk.begin()
    with monkeypatch.context() as environment:
        for name, value in {**disk.variables, "LD_PRELOAD": str(library)}.items():
            environment.setenv(name, value)
        solr.start()
    receiver = SolrReceiver(solr.core_url("pages"), timeout_seconds=30)
    receipts = receiver.deliver(batch(*(document(f"d{number}", content="word " * 500) for number in range(200))))
    solr.kill()
    # Java does not sync folders: a file system that keeps the name of a file that was synced is taken for granted.
    disk.fail(power_loss.NAMED)

    solr.start()
    with solr:
        when_up(receiver.commit)
        scanned = list(receiver.scan("site"))
        receiver.close()

    assert all(receipt.accepted for receipt in receipts)
    assert len(scanned) == 200
